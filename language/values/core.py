"""
Puppet values in Python.

    Integer int · Float float · String str · Boolean bool · undef None · default DEFAULT · Array list · Hash dict
    Regexp, Sensitive, Binary, Timestamp, Timespan, SemVer, SemVerRange, URI, Deferred, Instance: classes
    types, and resource and class references: `PuppetType` · lambdas: Closure · lazy sequences: Iterator

Arrays and hashes are never changed once they are a value; code builds a new one instead.

Hash keys: 1, 1.0 and True are one key in Python and three in Puppet, and lists and dicts can be keys in Puppet but not in Python. The
dict of a Hash therefore has `key_of(value)` as its key: str, int, None and the classes of this module represent themselves, at no
cost, and bool, float, list and dict are wrapped in a HashKey. `value_of(key)` returns the value of a key, and `entries` iterates over
a hash with plain keys. The same wrapping implements the strict equality (1 and 1.0 differ) of `unique` and `-`.

`Value` is the union of all these classes, so that mypy refuses what is not a value, and asks for the class of a value before it is used.
`value.__class__ is list` narrows a value as `isinstance` does, in a third of the time, and excludes subclasses: a bool is no int. The union
is shallow, with `list[Any]` and `dict[Any, Any]`, because a `list[str]` is no `list[Value]` for mypy: lists can be changed. A function
whose signature has checked the elements may therefore take a `list[str]`; one that takes any array says `list[Value]`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Iterator as PythonIterator
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias

from shared.errors import EvaluationError

if TYPE_CHECKING:
    from shared.regexps import Regexp

    from .times import Timespan, Timestamp
    from .uris import URI
    from .versions import SemVer, SemVerRange


Value: TypeAlias = (
    "bool | int | float | str | Default | list[Any] | dict[Any, Any] | Regexp | Sensitive | Binary | Timestamp | Timespan"
    " | SemVer | SemVerRange | URI | Deferred | Instance | Iterator | PuppetType | LambdaValue | ForeignObject | None"
)
"""Any Puppet value; the module's docstring has the table, and says why the elements of arrays and hashes are not named."""

Key: TypeAlias = "Value | HashKey"
"""A key of the dict of a Hash; see `key_of`."""

MaybeValue: TypeAlias = "Value | Missing"
"""A value, or MISSING."""


class Default(Enum):
    """The class of the value `default`; its only member, so that `is DEFAULT` works in every process."""

    DEFAULT = "default"

    def __repr__(self) -> str:
        return "DEFAULT"


DEFAULT: Final = Default.DEFAULT


class Missing(Enum):
    """The class of MISSING: there is no value, not even undef."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING


# --- hash keys ----------------------------------------------------------------------------------------------------


class HashKey:
    """A key of a hash that Python would confuse with another key or refuse; `value` is the Puppet value."""

    __slots__ = ("hash", "identity", "value")

    def __init__(self, value: Value) -> None:
        self.value = value
        self.identity = _identity(value)
        self.hash = hash(self.identity)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return other.__class__ is HashKey and self.identity == other.identity

    def __repr__(self) -> str:
        return f"HashKey({self.value!r})"


_WRAPPED: Final = frozenset((bool, float, list, dict))


def _identity(value: Value) -> object:
    if value.__class__ is list:
        return ("array", tuple([key_of(item) for item in value]))
    if value.__class__ is dict:
        return ("hash", frozenset([(key, key_of(item)) for key, item in value.items()]))
    return (value.__class__, value)


def key_of(value: Value) -> Key:
    """Return the object that represents `value` as a key of a dict."""
    return HashKey(value) if value.__class__ in _WRAPPED else value


def value_of(key: Any) -> Value:
    """Return the Puppet value of a key of a dict."""
    return key.value if key.__class__ is HashKey else key


def entries(hash_: Mapping[Any, Value]) -> Iterable[tuple[Value, Value]]:
    """Return the keys, as Puppet values, and the values of a Hash, in order."""
    return [(key.value if key.__class__ is HashKey else key, value) for key, value in hash_.items()]


def refill(collection: Value, content: Value) -> None:
    """Give an array or a hash the content of another one."""
    if isinstance(collection, list) and isinstance(content, list):
        collection[:] = content
    elif isinstance(collection, dict) and isinstance(content, dict):
        collection.clear()
        collection.update(content)


def own(value: Value) -> Value:
    """Return the value for a parameter: each has an array or a hash of its own, which Ruby may change in place."""
    return value.copy() if isinstance(value, list | dict) else value


def is_same(left: Value, right: Value) -> bool:
    """
    Return whether Ruby's `==` holds: strings are compared with their case, 1 equals 1.0, true differs from 1.

    `-` on arrays and `unique` compare by `key_of` instead, as Ruby's `eql?` does.
    """
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_same(value, right[key]) for key, value in left.items())
    return bool(left == right)


# --- values that Python has no class for --------------------------------------------------------------------------


ON_UNWRAP: ContextVar[Callable[[Value], None] | None] = ContextVar("on_unwrap", default=None)
"""Set by who shows what is made of secrets: it is called with each value that is taken out of a Sensitive."""


class Sensitive:
    """A value that no log, report or error shows. Two are equal when their wrapped values are."""

    __slots__ = ("_value",)

    def __init__(self, value: Value) -> None:
        self._value = value

    def unwrap(self) -> Value:
        note = ON_UNWRAP.get()
        if note is not None:
            note(self._value)
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sensitive) and is_same(self._value, other._value)

    def __hash__(self) -> int:
        return hash((Sensitive, key_of(self._value)))

    def __repr__(self) -> str:
        return "Sensitive [value redacted]"


@dataclass(frozen=True, slots=True)
class Binary:
    """Octets. The text of a Binary is its strict base64."""

    data: bytes

    @classmethod
    def from_base64(cls, text: str, *, urlsafe: bool = False, strict: bool = True) -> Binary:
        """
        Return the octets of a base64 text.

        Args:
            strict: whether line breaks and missing padding are errors.
        Raises:
            EvaluationError: the text is not base64.
        """
        try:
            if urlsafe:
                return cls(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            if strict:
                return cls(base64.b64decode(text, validate=True))
            digits = "".join(text.split()).rstrip("=")
            return cls(base64.b64decode(digits + "=" * (-len(digits) % 4)))
        except ValueError as error:
            raise EvaluationError("invalid base64", hint=str(error)) from error

    def __str__(self) -> str:
        return base64.b64encode(self.data).decode("ascii")


@dataclass(frozen=True, slots=True)
class Deferred:
    """A call that the agent is to make: the name of a function (or `$variable`) and its arguments."""

    name: str
    arguments: list[Value] | None = None

    def __hash__(self) -> int:
        return hash((self.name, key_of(self.arguments)))


class LambdaValue:
    """A lambda as a value: the base class of `callables.signatures.Closure`."""

    __slots__ = ()

    @property
    def type(self) -> PuppetType:
        """The CallableType of the lambda."""
        raise NotImplementedError

    def __call__(self, *args: Value) -> Value:
        """Check the arguments, run the lambda and return its value."""
        raise NotImplementedError


class InstanceMethods:
    """Implements the methods of an instance that the master itself made."""

    __slots__ = ()

    def call(self, name: str, args: Sequence[Value], block: LambdaValue | None) -> Value:
        """Return the result of a method; raise KeyError when there is no such method."""
        raise NotImplementedError


class Instance:
    """
    An instance of an Object type.

    Attributes:
        attributes: the values of the attributes by name, in the order of their declaration.
        behind: implements the methods of an instance that the master itself made; else None.
    """

    __slots__ = ("attributes", "behind", "type")

    def __init__(self, type_: InstanceType, attributes: dict[str, Value], behind: InstanceMethods | None = None) -> None:
        self.type = type_
        self.attributes = attributes
        self.behind = behind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instance) and self.type.same_instance(self, other)

    def __hash__(self) -> int:
        names = self.type.equality if self.type.equality is not None else self.attributes
        return hash((self.type.name, *[key_of(self.attributes.get(name)) for name in names]))

    def __repr__(self) -> str:
        return f"Instance({self.type.name}, {self.attributes!r})"


@dataclass(frozen=True, slots=True)
class ForeignObject:
    """
    An object of a module's Ruby that the language has no form for. It may be stored and handed back; a catalog has its text.

    Attributes:
        number: Ruby's, by which it finds the object; None for a Symbol, which is made again from its text.
    """

    ruby_class: str
    text: str
    number: int | None = None

    def __str__(self) -> str:
        return self.text


def name_of(key: Value) -> str | None:
    """Return an attribute's name, the key of a hash, which may be a Symbol of Ruby's; None for a value that is not a name."""
    if key.__class__ is ForeignObject and key.ruby_class == "Symbol":
        return key.text
    return key if key.__class__ is str else None


@dataclass(eq=False, repr=False, slots=True)
class Iterator:
    """
    A lazy sequence (of `step`, `reverse_each`, `tree_each`); every loop over it begins at its first element.

    Attributes:
        element_type: the type of its elements, None for Any.
        pairs: whether its elements are the `[key, value]` pairs of a Hash.
    """

    start: Callable[[], PythonIterator[Value]]
    _: KW_ONLY
    name: str = "Iterator-Value"
    element_type: PuppetType | None = None
    pairs: bool = False
    back: Callable[[], PythonIterator[Value]] | None = None

    def __iter__(self) -> PythonIterator[Value]:
        return self.start()

    def __reversed__(self) -> PythonIterator[Value]:
        return self.back() if self.back is not None else iter(list(self.start())[::-1])


# --- types as values ----------------------------------------------------------------------------------------------


Guard: TypeAlias = "set[tuple[int, int]] | None"
"""Pairs of (alias, other type) that are being compared: where a recursive alias leads back to itself, the types are taken to fit."""

Expansion: TypeAlias = "frozenset[str] | None"
"""The form of printed aliases: None: by name; else by name and definition, except the aliases whose names are in the set."""


class Types(Protocol):
    """Finds the types that are not built in, by name: aliases, Object types, resource types."""

    def find_type(self, name: str) -> PuppetType | None:
        """Return the type called `name` (in any case, with `::` between its segments), or None."""


class PuppetType:
    """
    A type of the language. Types are immutable, and two are equal when their structures are.

    Attributes:
        is_selected_by_equality: whether this type, as an option of `case` or of a selector, selects the values that equal it
            instead of its instances.
    """

    __slots__ = ()
    is_selected_by_equality: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The name in the language, without parameters; most types set it in their class."""
        return "Any"

    @property
    def pcore_name(self) -> str:
        """The name that the type's class has in Pcore, Puppet's object model; messages and inspection put a `P` in front."""
        return self.__class__.__name__

    @property
    def label(self) -> str:
        """The type as messages name it."""
        return f"{self}-Type"

    def instance(self, value: Value) -> bool:
        """Return whether `value` is of this type."""
        raise NotImplementedError

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        """Return whether `other` is this type or narrower; `other` is not a Variant, Optional, NotUndef, alias or Unit."""
        raise NotImplementedError

    def assignable(self, other: PuppetType, guard: Guard = None) -> bool:
        """Return whether every value of `other` is a value of this type."""
        return other.assign_to(self, guard)

    def assign_to(self, target: PuppetType, guard: Guard) -> bool:
        """Return whether `target` accepts this type; wrappers override this and ask for each of their parts."""
        return target.accepts(self, guard)

    def generalized(self) -> PuppetType:
        """Return this type without ranges, sizes and literal values."""
        return self

    def notation(self, expansion: Expansion = None) -> str:
        """Return the type as the language writes it."""
        parameters = self.parameters(expansion)
        return f"{self.name}[{', '.join(parameters)}]" if parameters else self.name

    def parameters(self, expansion: Expansion) -> list[str]:
        """Return the texts between the brackets; an empty list for the bare type."""
        return []

    def resolved(self) -> PuppetType:
        """Return the target of an alias, through further aliases; any other type unchanged."""
        return self

    def parts(self) -> Iterable[PuppetType]:
        """Return the types that this one contains."""
        return ()

    def key(self) -> tuple[object, ...]:
        """Return the data by which two types of one class are equal or not."""
        return ()

    def expanded(self) -> str:
        """Return the type as text, aliases with their definitions."""
        return self.notation(frozenset())

    @property
    def iterable_of(self) -> PuppetType | None:
        """The type of the elements if values of this type can be iterated over; else None."""
        return None

    @property
    def is_callable(self) -> bool:
        """True for a Callable, or a wrapper around one."""
        return False

    def __eq__(self, other: object) -> bool:
        return self is other or (self.__class__ is other.__class__ and self.key() == other.key())

    def __hash__(self) -> int:
        return hash((self.__class__, self.key()))

    def __str__(self) -> str:
        return self.notation()

    def __repr__(self) -> str:
        return f"<{self}>"


class InstanceType(PuppetType):
    """The services that an Instance needs from its Object type: the base class of `types.kinds.objects.ObjectType`."""

    __slots__ = ()

    @property
    def equality(self) -> tuple[str, ...] | None:
        """The names of the attributes by which two instances are equal or not; None for all attributes."""
        raise NotImplementedError

    def same_instance(self, one: Instance, two: Instance) -> bool:
        """Return whether two instances are equal; `one` is of this type."""
        raise NotImplementedError

    def member(self, instance: Instance, name: str) -> Value:
        """Return the attribute or constant `name`; raise KeyError when there is none, EvaluationError when only Ruby implements it."""
        raise NotImplementedError

    def init_hash(self, instance: Instance) -> dict[str, Value]:
        """Return the attributes of an instance that differ from their defaults."""
        raise NotImplementedError


# --- strictness ---------------------------------------------------------------------------------------------------


class Strictness(Enum):
    """The values of the setting `strict`."""

    OFF = "off"
    WARNING = "warning"
    ERROR = "error"


class Reporter:
    """
    Receives the leniencies of operators and conversions. The runtime passes a subclass that knows the place of the evaluation.

    Attributes:
        strict: whether `lenient` does nothing, warns, or raises an EvaluationError.
        operand: the number of the operand that the next report is about, counted as in BadOperand.
    """

    __slots__ = ("operand", "strict")

    def __init__(self, strict: Strictness = Strictness.WARNING) -> None:
        self.strict = strict
        self.operand: int | None = None

    def warn(self, message: str) -> None:
        """Log a warning at the place that is being evaluated. This class has no log and drops it."""

    def lenient(self, message: str) -> None:
        """Report something that the language tolerates, as the setting `strict` demands."""
        if self.strict is Strictness.WARNING:
            self.warn(message)
        elif self.strict is Strictness.ERROR:
            raise EvaluationError(message)

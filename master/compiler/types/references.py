"""Types of types, of what may be called, of catalog entries, and of what `new` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import is_
from typing import Any, Final

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ..values.core import Binary, Iterator, LambdaValue, Value, entries, key_of
from ..values.text import inspect, program, quoted
from ..values.times import Timespan, Timestamp
from ..values.versions import SemVer, SemVerRange
from .aliases import AliasType
from .base import ANY, UNDEF, UNIT, AnyType, Expansion, Guard, PuppetType, Range, UnitType, Wrapper, range_texts
from .containers import TupleType
from .scalars import EnumType, IntegerType


class TypeType(Wrapper):
    __slots__ = ()
    name = "Type"

    def instance(self, value: Value) -> bool:
        return isinstance(value, PuppetType) and (self.type is None or self.type.assignable(value))

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        if not isinstance(other, TypeType):
            return False
        return self.type is None or (other.type is not None and self.type.assignable(other.type, guard))

    @property
    def iterable_of(self) -> PuppetType | None:
        inner = self.type.resolved() if isinstance(self.type, AliasType) else self.type
        if isinstance(inner, EnumType):
            return inner
        return inner if isinstance(inner, IntegerType) and inner.finite else None


class CallableType(PuppetType):
    """
    What may be called with arguments `params` (None: any) and a block, and what it gives.

    Wider in what it is called with is narrower as a type: parameters are contravariant.
    """

    __slots__ = ("block", "params", "returns")
    name = "Callable"

    def __init__(self, params: TupleType | None = None, block: PuppetType | None = None, returns: PuppetType | None = None) -> None:
        self.params = params
        self.block = block
        self.returns = None if isinstance(returns, AnyType) else returns

    def instance(self, value: Value) -> bool:
        return isinstance(value, LambdaValue) and ((self.params is None and self.returns is None) or self.assignable(value.type))

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        if not isinstance(other, CallableType):
            return False
        if self.returns is not None and not self.returns.assignable(other.returns or ANY, guard):
            return False
        if self.params is None:
            return True
        if other.params is None or not other.params.assignable(self.params, guard):
            return False
        return (other.block or UNDEF).assignable(self.block or UNDEF, guard)

    def generalized(self) -> PuppetType:
        params = self.params.generalized() if self.params is not None else None
        return CallableType(params, self.block and self.block.generalized(), self.returns and self.returns.generalized())  # type: ignore[arg-type]

    def normalized(self) -> PuppetType:
        params = self.params.normalized() if self.params is not None else None
        return CallableType(params, self.block and self.block.normalized(), self.returns and self.returns.normalized())  # type: ignore[arg-type]

    def parameters(self, expansion: Expansion) -> list[str]:
        if self.returns is None:
            return [] if self.params is None else self._call(self.params, expansion)
        call = "[]" if self.params is None else "[" + ", ".join(self._call(self.params, expansion)) + "]"
        return [call, self.returns.shown(expansion)]

    def _call(self, params: TupleType, expansion: Expansion) -> list[str]:
        texts = [t.shown(expansion) for t in params.types if not isinstance(t, UnitType)]
        texts += range_texts(params.size) if params.types else ["0", "0"]
        return texts + ([self.block.shown(expansion)] if self.block is not None else [])

    def key(self) -> tuple[Any, ...]:
        return (self.params, self.block, self.returns)

    def parts(self) -> Iterable[PuppetType]:
        return [t for t in (self.params, self.block, self.returns) if t is not None]

    @property
    def is_callable(self) -> bool:
        return True


class CatalogEntryType(PuppetType):
    __slots__ = ()
    name = "CatalogEntry"

    def instance(self, value: Value) -> bool:
        return False  # a reference is a type, an instance of Type[CatalogEntry]

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        return isinstance(other, CatalogEntryType)


class ClassType(CatalogEntryType):
    """`Class`, or the class `class_name` (lower case, no leading `::`)."""

    __slots__ = ("class_name",)
    name = "Class"

    def __init__(self, class_name: str | None = None) -> None:
        self.class_name = class_name

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        return isinstance(other, ClassType) and (self.class_name is None or self.class_name == other.class_name)

    def parameters(self, expansion: Expansion) -> list[str]:
        return [] if self.class_name is None else [self.class_name]

    def key(self) -> tuple[Any, ...]:
        return (self.class_name,)


class ResourceType(CatalogEntryType):
    """`Resource`, a resource type (`File`), or one resource of it (`File['/a']`); `type_name` as `Foo::Bar`."""

    __slots__ = ("lower", "title", "type_name")
    name = "Resource"

    def __init__(self, type_name: str | None = None, title: str | None = None) -> None:
        self.type_name = None if type_name is None else capitalized(type_name)
        self.lower = None if type_name is None else type_name.lower()
        self.title = title

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        if not isinstance(other, ResourceType):
            return False
        return self.lower is None or (self.lower == other.lower and (self.title is None or self.title == other.title))

    def shown(self, expansion: Expansion = None) -> str:
        if self.type_name is None:
            return "Resource"
        return self.type_name if self.title is None else f"{self.type_name}[{quoted(self.title)}]"

    def key(self) -> tuple[Any, ...]:
        return (self.lower, self.title)


def capitalized(type_name: str) -> str:
    """`foo::bar` as `Foo::Bar`; a name that starts with a capital stays as it is."""
    if "A" <= type_name[:1] <= "Z":
        return type_name
    return "::".join(segment[:1].upper() + segment[1:].lower() for segment in type_name.split("::"))


class InitType(Wrapper):
    """Values that `new` of `type` takes, with further `arguments` given."""

    __slots__ = ("arguments",)
    name = "Init"

    def __init__(self, type_: PuppetType | None = None, arguments: Sequence[Value] = ()) -> None:
        super().__init__(type_)
        self.arguments = tuple(arguments)

    def instance(self, value: Value) -> bool:
        from ..callables.conversions import check_constructible, convertible
        from .builtin import RICH_DATA

        if self.type is None:
            return RICH_DATA.instance(value)
        check_constructible(self.type)
        if self.type.instance(value) or convertible(self.type, [value, *self.arguments]):
            return True
        return not self.arguments and value.__class__ is list and convertible(self.type, value, several=True)

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        from ..callables.conversions import check_constructible, converts_type
        from .builtin import RICH_DATA

        if self.type is None:
            return isinstance(other, InitType) or RICH_DATA.assignable(other, guard)
        check_constructible(self.type)
        if isinstance(other, InitType):
            return other.type is not None and self.type.assignable(other.type, guard)
        if self.type.assignable(other, guard):
            return True
        return not self.arguments and converts_type(self.type, other)

    def generalized(self) -> PuppetType:
        return self

    def normalized(self) -> PuppetType:
        return self

    def parameters(self, expansion: Expansion) -> list[str]:
        return [] if self.type is None else [self.type.shown(expansion), *map(program, self.arguments)]

    def key(self) -> tuple[Any, ...]:
        return (self.type, self.arguments)


NO_PARAMETERS: Final = TupleType((), (0, 0))


def callable_of(
    types: Sequence[PuppetType], size: Range | None = None, block: PuppetType | None = None, returns: PuppetType | None = None
) -> CallableType:
    return CallableType(TupleType(types, size) if types or size else TupleType((UNIT,), (0, 0)), block, returns)


def reference_text(value: ResourceType | ClassType) -> str | None:
    """`PuppetType[title]`, as references stand in catalogs; None for the bare type `Resource`."""
    if isinstance(value, ClassType):
        return "Class[]" if value.class_name is None else f"Class[{_catalog_name(value.class_name) or 'main'}]"
    return None if value.type_name is None else f"{_catalog_name(value.type_name)}[{value.title or ''}]"


def _catalog_name(name: str) -> str:
    return "::".join(segment.capitalize() for segment in name.removeprefix("::").split("::"))


@lru_cache
def _namevar(type_name: str) -> str:
    """The attribute that the title of a resource stands for; of types that are not Puppet's own `name`."""
    from ..loading.nativetypes import NativeTypes

    native = NativeTypes().find(type_name)
    return native.namevars[0] if native is not None and len(native.namevars) == 1 else "name"


class AttributeReference(ResourceType):
    """
    A reference to a resource that went through an attribute: it is shown as `File[/a]`, and selected by equality.

    Source: puppet 7.23, asked; the cases reference-in-attribute-… of generated.yaml.
    """

    __slots__ = ()
    is_selected_by_equality = True

    def __str__(self) -> str:
        return str(reference_text(self))

    def inspected(self) -> str:
        """What `text.inspect` shows: the resource with the attribute that its title stands for."""
        if self.lower is None:
            return str(self)
        name = _namevar(self.lower)
        if self.title is None:
            return f'{self}{{:{name}=>""}}'
        value = (self.title.rstrip("/") or self.title) if self.lower == "file" else self.title
        return f"{self}{{:{name}=>{inspect(value)}}}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResourceType) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash((ResourceType, self.key()))


class AttributeClassReference(ClassType):
    """As AttributeReference, of a class: it is shown as `Class[Two]`."""

    __slots__ = ()
    is_selected_by_equality = True

    def __str__(self) -> str:
        return str(reference_text(self))

    def inspected(self) -> str:
        """What `text.inspect` shows."""
        return f"{self}{{:name=>{inspect(str(self)[len('Class[') : -1])}}}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClassType) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash((ClassType, self.key()))


def as_attribute(value: Value) -> Value:
    """Return `value` as an attribute of a resource holds it: references in it, at any depth, become those of attributes."""
    return _mapped(value, _ATTRIBUTES)


def as_legacy_argument(value: Value) -> Value:
    """
    Return `value` as functions of the 3.x API get it: what they have no value for comes as text, references as in attributes.

    Raises:
        EvaluationError: an Iterator is in it.
    """
    return _mapped(value, _LEGACY_ARGUMENTS)


def _mapped(value: Value, forms: Mapping[type, Callable[[Any], Value]]) -> Value:
    """`value`, or, where anything in it has another form, a copy with that form."""
    kind = value.__class__
    form = forms.get(kind)
    if form is not None:
        return form(value)
    if kind is list:
        items = [_mapped(item, forms) for item in value]
        return value if all(map(is_, items, value)) else items
    if kind is dict:
        old = [part for entry in entries(value) for part in entry]
        new = [_mapped(part, forms) for part in old]
        return value if all(map(is_, new, old)) else {key_of(key): item for key, item in zip(new[::2], new[1::2], strict=True)}
    return value


def _attribute_reference(value: ResourceType) -> Value:
    return value if value.type_name is None else AttributeReference(value.type_name, value.title)


def _attribute_class_reference(value: ClassType) -> Value:
    return value if value.class_name is None else AttributeClassReference(value.class_name)


def _refused_iterator(value: Iterator) -> Value:
    raise EvaluationError("Use of an Iterator is not supported here")


def _limited_integer(value: int) -> Value:
    if value in _INTEGERS:
        return value
    # As Ruby writes such numbers, negative ones with endless leading digits.
    side, text = ("max", f"{value:x}") if value > 0 else ("min", "..f" + f"{value & ((1 << (4 * (len(f'{value:x}') - 1))) - 1):x}")
    raise EvaluationError(f"Use of a Ruby Integer outside of Puppet Integer {side} range, got '0x{text}'")


_INTEGERS: Final = range(-(2**63), 2**63)
"""What is a number of the language; calculations, and functions more so, can leave that range."""
_ATTRIBUTES: Final[Mapping[type, Callable[[Any], Value]]] = {
    ResourceType: _attribute_reference,
    ClassType: _attribute_class_reference,
    Iterator: _refused_iterator,
    int: _limited_integer,
}
_LEGACY_ARGUMENTS: Final[Mapping[type, Callable[[Any], Value]]] = {
    **_ATTRIBUTES,
    **dict.fromkeys((Regexp, SemVer, SemVerRange, Timespan, Timestamp, Binary), str),
}

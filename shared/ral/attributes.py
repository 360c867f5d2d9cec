"""The attributes of a type: parameters, properties and their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypedDict, TypeVar, cast, overload

from typing_extensions import Unpack

from ..errors import PuppetError, ResourceError
from .messages import ABSENT, REDACTED, change_message, displayed

Resource = Any  # a Type: types are made of attributes, so that this module cannot import it; overriding methods declare it as Type
State = Mapping[str, Any]  # the state of a thing on the system: flat, by attribute name; a missing key is ABSENT

T = TypeVar("T")
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Value:
    """One listed value of an attribute, with its effect."""

    value: Any
    aliases: tuple[str, ...] = ()
    event: str = ""  # name of the event in place of `<attribute>_changed`
    requires: tuple[str, ...] = ()  # features that the provider must have
    invalidate_refreshes: bool = False  # a change to this value drops a waiting refresh (a service just started)


class ParamOptions(TypedDict, total=False):
    """The options that every attribute accepts."""

    doc: str
    values: Sequence[Any]  # plain ones or `Value`; a value is matched by its text, True matches "true"
    match: str | Sequence[str]  # regexes that a whole value may match instead
    check: Callable[[Any], None]  # raises ValueError; gets the value before it is converted
    munge: Callable[[Any], Any]  # converts a checked value, in place of the conversion to the attribute's kind
    requires: Sequence[str]  # features; without them the attribute is dropped with a line at the level `unsupported`
    sensitive: bool  # shown as [redacted], always
    meta: bool  # a parameter of every type


def text_of(value: Any) -> str:
    """
    Return a value as Puppet's `to_s` gives it: `true`, `5`, `text`; None is ''; arrays and hashes as Ruby shows them.

    Of a Binary it is the text that it holds; bytes that are not UTF-8 become surrogate escapes, as in other texts.
    """
    if value is None:
        return ""
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return _ruby_inspect(value) if isinstance(value, list | tuple | Mapping) else str(value)


def ruby_class(value: Any) -> str:
    """Return the name of a value's class in Ruby, by which Puppet's messages call it."""
    if isinstance(value, bool):
        return "TrueClass" if value else "FalseClass"
    if isinstance(value, Mapping):
        return "Hash"
    names = {int: "Integer", float: "Float", str: "String", bytes: "String", list: "Array", tuple: "Array", type(None): "NilClass"}
    return names.get(type(value), type(value).__name__)


def as_list(raw: Any) -> list[Any]:
    """Return the elements of an array; a single value as a list of one."""
    return list(raw) if isinstance(raw, list | tuple) else [raw]


class Param(Generic[T]):
    """
    An attribute that steers: `path = Param(Path, namevar=True, doc="…")`; on a resource it reads as its value or None.

    The class body's name is the attribute's; one trailing underscore is dropped (`pass_`). `kind` converts: `str` takes
    numbers and booleans as text, `int` digits, `bool` also yes and no, `Path` an absolute path, `object` anything.
    With `many` the value is a list, and a single value becomes a list of one. `default` is a value, or a function of
    the resource that may read attributes declared before; None from it means none.
    """

    name: str = ""
    is_property = False
    unsupported = "debug"  # the level at which is said that the provider lacks the features for it

    @overload
    def __init__(
        self: Param[list[K]],
        kind: type[K],
        *,
        many: Literal[True],
        default: Any = ...,
        namevar: bool = ...,
        **options: Unpack[ParamOptions],
    ) -> None: ...

    @overload
    def __init__(self: Param[K], kind: type[K], *, namevar: Literal[True], **options: Unpack[ParamOptions]) -> None: ...

    @overload
    def __init__(self: Param[K], kind: type[K], *, default: K | Callable[[Any], K], **options: Unpack[ParamOptions]) -> None: ...

    @overload
    def __init__(
        self: Param[K | None], kind: type[K], *, default: Callable[[Any], K | None] = ..., **options: Unpack[ParamOptions]
    ) -> None: ...

    def __init__(
        self, kind: type[Any], *, many: bool = False, default: Any = None, namevar: bool = False, **options: Unpack[ParamOptions]
    ) -> None:
        self.kind = kind
        self.many = many
        self.default = default
        self.namevar = namevar
        self.doc = options.get("doc", "")
        self.values = tuple(v if isinstance(v, Value) else Value(v) for v in options.get("values", ()))
        patterns = options.get("match", ())
        self.patterns = (patterns,) if isinstance(patterns, str) else tuple(patterns)
        self.requires = tuple(options.get("requires", ()))
        self.sensitive = options.get("sensitive", False)
        self.meta = options.get("meta", False)
        self._check = options.get("check")
        self._munge = options.get("munge")
        self._listed = {text_of(name): v for v in self.values for name in (v.value, *v.aliases)}

    def __set_name__(self, owner: type[Any], name: str) -> None:
        if not self.name:
            self.name = name.removesuffix("_")

    @overload
    def __get__(self, resource: None, owner: type[Any]) -> Param[T]: ...

    @overload
    def __get__(self, resource: Resource, owner: type[Any]) -> T: ...

    def __get__(self, resource: Any, owner: type[Any]) -> Param[T] | T:
        if resource is None:
            return self
        return cast(T, resource.value_of(self.name))

    def __set__(self, resource: Resource, value: T) -> None:
        resource.assign(self.name, value)

    # --- from the manifest's value to the stored one; override for what options cannot express

    def validate(self, resource: Resource, value: Any) -> None:
        """Raise ValueError when one value, in the form of the manifest, is not acceptable."""
        if self.values or self.patterns:
            self._validate_listed(value)
        if self._check:
            self._check(value)

    def munge(self, resource: Resource, value: Any) -> Any:
        """Return one acceptable value, converted."""
        listed = self._listed.get(text_of(value))
        if listed is not None:
            return listed.value
        return self._munge(value) if self._munge else convert(self.kind, value)

    def accept(self, resource: Resource, raw: Any) -> Any:
        """Return the value to store for a manifest's value: validated, then munged; raise ValueError with the reason."""
        if self.many:
            return [self._accept_one(resource, value) for value in as_list(raw)]
        return self._accept_one(resource, raw)

    def _accept_one(self, resource: Resource, value: Any) -> Any:
        self.validate(resource, value)
        try:
            return self.munge(resource, value)
        except (TypeError, KeyError, IndexError, AttributeError) as err:
            raise ValueError(f"Munging failed for value {displayed(value)} in class {self.name}: {err}") from err

    def _validate_listed(self, value: Any) -> None:
        text = text_of(value)
        if text in self._listed or self._matches_pattern(text):
            return
        message = f"Invalid value {_ruby_inspect(value)}."
        if self.values:
            message += f" Valid values are {', '.join(text_of(v.value) for v in self.values)}."
        if self.pattern_texts:
            message += f" Valid values match {', '.join(self.pattern_texts)}."
        raise ValueError(message)

    def _matches_pattern(self, text: str) -> bool:
        if not self.patterns:
            return False
        from ..regexps import match_whole  # the engine takes 1.5 MB, and most values are listed ones

        return any(match_whole(pattern, text) for pattern in self.patterns)

    @property
    def pattern_texts(self) -> Sequence[str]:
        """Return the patterns of values as messages show them."""
        return [f"/{pattern}/" for pattern in self.patterns]

    def listed(self, value: Any) -> Value | None:
        """Return the declaration of a listed value."""
        return self._listed.get(text_of(value))

    def default_for(self, resource: Resource) -> Any:
        """Return the value to store when the manifest sets none; None: no value."""
        return self.default(resource) if callable(self.default) else self.default


class Property(Param[T]):
    """
    An attribute that is read back from the system and kept in sync: `email = Property(str, match=r".+@.+", doc="…")`.

    An array for a property without `many` lists alternatives: any of them is in sync, the first is set, and reading the
    attribute gives the first. With `many` whole arrays are compared and set.
    """

    is_property = True

    @overload
    def __init__(
        self: Property[list[K] | None],
        kind: type[K],
        *,
        many: Literal[True],
        default: Any = ...,
        idempotent: bool = ...,
        read_only: bool = ...,
        **options: Unpack[ParamOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: Property[K | None],
        kind: type[K],
        *,
        default: Any = ...,
        idempotent: bool = ...,
        read_only: bool = ...,
        **options: Unpack[ParamOptions],
    ) -> None: ...

    def __init__(
        self,
        kind: type[Any],
        *,
        many: bool = False,
        default: Any = None,
        idempotent: bool = True,
        read_only: bool = False,
        **options: Unpack[ParamOptions],
    ) -> None:
        Param.__init__(cast("Param[Any]", self), kind, many=many, default=default, **options)  # type: ignore[call-overload]
        self.idempotent = idempotent  # False: a change never counts as a repair of drift
        self.read_only = read_only

    def accept(self, resource: Resource, raw: Any) -> list[Any]:
        """Return all desired values as a list: the alternatives, or with `many` the whole array."""
        if self.read_only:
            raise ValueError(f"{self.name} is read-only")
        return [self._accept_one(resource, value) for value in as_list(raw)]

    # --- comparing; pure

    def insync(self, resource: Resource, state: State, desired: list[Any]) -> bool:
        """Return whether the current `state` (of the whole resource) satisfies the desired values of this property."""
        current = state.get(self.name, ABSENT)
        if not desired:
            return True
        if self.many:
            return isinstance(current, list | tuple) and (
                list(current) == desired or [text_of(c) for c in current] == [text_of(w) for w in desired]
            )
        return any(self.matches(current, value) for value in desired)

    def matches(self, current: Any, desired: Any) -> bool:
        """Return whether one current value is equivalent to one desired value."""
        return bool(current == desired) or current == text_of(desired)

    def needs_for(self, desired: Any) -> tuple[str, ...]:
        """Return the features that a provider must have for one desired value."""
        listed = self.listed(desired)
        return listed.requires if listed else ()

    def should(self, resource: Resource, state: State, desired: list[Any]) -> Any:
        """Return the value to set, which messages show too: the whole array with `many`, else the first desired value."""
        if self.many:
            return desired
        return desired[0] if desired else None

    # --- messages

    def is_text(self, resource: Resource, value: Any) -> str:
        """Return the current value, as a change message shows it."""
        return displayed(value)

    def should_text(self, resource: Resource, value: Any) -> str:
        """Return the desired value, as a change message shows it."""
        return displayed(value)

    def change_text(self, resource: Resource, current: Any, desired: Any) -> str:
        """Return the message of a successful change."""
        return change_message(self.name, current, desired, self.is_text(resource, current), self.should_text(resource, desired))

    def event_name(self, resource: Resource, desired: Any) -> str:
        """Return the name of the event that a change to `desired` causes."""
        listed = self.listed(desired)
        return listed.event if listed and listed.event else f"{self.name}_changed"


class Ensure(Property[str | None]):
    """`ensure`: whether the thing exists, or in which of several forms."""

    def change_text(self, resource: Resource, current: Any, desired: Any) -> str:
        if current in (ABSENT, None):
            return "created"
        if desired == ABSENT:
            return "removed"
        return f"ensure changed {self.is_text(resource, current)} to {self.should_text(resource, desired)}"

    def event_name(self, resource: Resource, desired: Any) -> str:
        listed = self.listed(desired)
        if listed and listed.event:
            return listed.event
        return str(resource.declaration.name) + {"present": "_created", ABSENT: "_removed"}.get(text_of(desired), "_changed")


def ensurable(*values: str | Value, default: str | None = "present", match: Sequence[str] = (), doc: str = "") -> Ensure:
    """
    Return the usual `ensure`: present and absent, or the listed values.

    `default` holds only for a resource that manages something (has a property with a desired value); None: no default.
    """

    def when_managed(resource: Resource) -> str | None:
        return default if resource.manages_anything else None

    listed = values or ("present", ABSENT)
    return Ensure(str, values=listed, match=match, default=when_managed, doc=doc or "Whether the resource should exist.")


_TRUE = frozenset(("true", "yes"))
_FALSE = frozenset(("false", "no"))


def convert(kind: type[Any], value: Any) -> Any:
    """Return `value` as `kind`, by Puppet's rules for each; raise ValueError with the reason."""
    if kind is object or (kind not in (str, int, float, bool, Path) and isinstance(value, kind)):
        return value
    if isinstance(value, list | tuple | Mapping) or value is None:
        raise ValueError(f"Invalid value {_ruby_inspect(value)}.")
    text = text_of(value)
    if kind is str:
        return text
    if kind is bool:
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        raise ValueError(f"Invalid value {_ruby_inspect(value)}. Valid values are true, false, yes, no.")
    if kind is Path:
        if not text.startswith("/"):
            raise ValueError(f"File paths must be fully qualified, not '{text}'")
        return Path(text)
    try:
        return kind(text)
    except ValueError as err:
        raise ValueError(f"Invalid value {_ruby_inspect(value)}.") from err


def _ruby_inspect(value: Any) -> str:
    """Return a value as error texts quote it."""
    if isinstance(value, str | bytes):
        value = text_of(value)
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return f'"{escaped}"'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_ruby_inspect(v) for v in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_ruby_inspect(k)}=>{_ruby_inspect(v)}" for k, v in value.items()) + "}"
    return text_of(value) if value is not None else "nil"


def refusal(name: str, resource: Resource, value: Any, err: ValueError | PuppetError) -> ResourceError:
    """Return the error that a resource shows for a value it does not accept; it contains no secret value."""
    detail = err.message if isinstance(err, PuppetError) else str(err)
    if resource.is_sensitive(name) and (not text_of(value) or resource.redaction.reveals(detail)):
        detail = f"Invalid value {REDACTED}"
    return ResourceError(f"Parameter {name} failed on {resource.ref}: {detail}")


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """The content of a type's class body, in its order; attributes have the names of the wire."""

    name: str
    doc: str
    attributes: Mapping[str, Param[Any]]  # namevars, `provider`, `ensure`, properties, parameters, metaparameters
    features: Mapping[str, str] = field(default_factory=dict)  # feature -> what it means
    isomorphic: bool = True  # False: two resources may name the same thing (exec)
    refreshable: bool = False  # its provider answers `refresh`
    self_refresh: bool = False  # a change of its own also refreshes it
    depth_first: bool = False  # the resources that it generates come before it
    apply_to: str = "host"  # host, device, both
    ensure_retrieved: bool = True  # False: `ensure` is read only when it is managed

    # Computed once: every resource of a catalog reads them several times.
    namevars: tuple[str, ...] = field(init=False)
    properties: tuple[Property[Any], ...] = field(init=False)  # `ensure` first, then in declaration order
    parameters: tuple[Param[Any], ...] = field(init=False)  # without properties and metaparameters
    defaulted: tuple[Param[Any], ...] = field(init=False)  # those that may have a value that the manifest does not set
    particular: tuple[Param[Any], ...] = field(init=False)  # those that not every provider can manage

    def __post_init__(self) -> None:
        every = tuple(self.attributes.values())
        picked = {
            "namevars": tuple(a.name for a in every if a.namevar),
            "properties": tuple(a for a in every if isinstance(a, Property)),
            "parameters": tuple(a for a in every if not isinstance(a, Property) and not a.meta),
            "defaulted": tuple(a for a in every if a.default is not None or type(a).default_for is not Param.default_for),
            "particular": tuple(a for a in every if a.requires),
        }
        for name, attributes in picked.items():
            object.__setattr__(self, name, attributes)

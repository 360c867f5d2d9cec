"""Object types: attributes, constants, parents, equality and type parameters; and TypeSet, as a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from shared.errors import EvaluationError

from ..regexps import Regexp
from ..text import program
from ..values import DEFAULT, Deferred, Instance, Value, same
from .aliases import AliasType
from .base import INF, UNDEF, Expansion, Guard, OptionalType, Type
from .containers import ArrayType, StructElement, StructType
from .scalars import STRING, PatternType, StringType

_MISSING: Final = object()
_KEYS = (
    "name", "parent", "type_parameters", "attributes", "constants", "functions", "equality", "equality_include_type", "checks",
    "annotations", "serialization",
)  # fmt: skip
_ATTRIBUTE_KEYS = ("type", "value", "kind", "final", "override", "annotations")
_KINDS = ("constant", "derived", "given_or_derived", "reference")


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    type: Type
    default: Value = _MISSING
    kind: str = ""
    override: bool = False
    final: bool = False

    @property
    def optional(self) -> bool:
        return self.default is not _MISSING

    def shown(self, expansion: Expansion) -> str:
        if not self.optional and not self.kind:
            return self.type.shown(expansion)
        parts = [f"type => {self.type.shown(expansion)}"]
        parts += [f"kind => {self.kind}"] if self.kind else []
        parts += [f"value => {program(self.default)}"] if self.optional else []
        return "{" + ", ".join(parts) + "}"


class ObjectType(Type):
    """
    An Object type; the one called `Object` without attributes is the widest.

    Defined by `define(hash)`, once, so that its attributes may refer to it.
    """

    __slots__ = ("_name", "constants", "equality", "functions", "include_type", "own", "parent", "pending", "type_parameters")

    def __init__(self, name: str, definition: Mapping[str, Value] | None = None) -> None:
        self._name = name
        self.parent: ObjectType | None = None
        self.own: dict[str, Attribute] = {}
        self.constants: dict[str, Attribute] = {}
        self.functions: dict[str, Attribute] = {}
        self.type_parameters: dict[str, Type] = {}
        self.equality: tuple[str, ...] | None = None  # None: all attributes
        self.include_type = True
        self.pending: Mapping[str, Value] | None = None
        if definition is not None:
            self.define(definition)

    @property
    def name(self) -> str:  # type: ignore[override]
        return self._name

    @classmethod
    def unnamed(cls, definition: Mapping[str, Value]) -> ObjectType:
        """`Object[{…}]` as it stands in a type declaration: its definition is read when `named` says what it is called."""
        made = cls(definition.get("name") or "Object")
        made.pending = definition
        return made

    def named(self, name: str) -> ObjectType:
        """This type under its name, its definition read; EvaluationError says what is wrong with that."""
        if self.pending is not None:
            definition, self.pending = self.pending, None
            self._name = name
            self.define(definition)
        return self

    def settle(self) -> None:
        """Read the definition of a type that nobody gave a name."""
        if self.pending is not None:
            self.named(self._name)

    def define(self, definition: Mapping[str, Value]) -> None:
        """Take over the initializer hash of `Object[{…}]`; EvaluationError says what is wrong with it."""
        for key in definition:
            if key not in _KEYS:
                raise EvaluationError(f"object initializer has wrong type, unrecognized key '{key}'")
        parent = definition.get("parent")
        if parent is not None:
            parent = parent.resolved() if hasattr(parent, "resolved") else parent
            if not isinstance(parent, ObjectType):
                raise EvaluationError(f"object initializer has wrong type, entry 'parent' expects an Object value, got {parent}")
            self.parent = parent
        for name, type_ in (definition.get("type_parameters") or {}).items():
            self.type_parameters[name] = type_["type"] if isinstance(type_, dict) else type_
        for name, given in (definition.get("attributes") or {}).items():
            attribute = self._attribute(name, given)
            if attribute.kind == "constant":
                self.constants[name] = attribute
            else:
                self._check_override(attribute)
                self.own[name] = attribute
        for name, given in (definition.get("functions") or {}).items():
            self.functions[name] = self._function(name, given)
        for name, value in (definition.get("constants") or {}).items():
            from .infer import infer

            self.constants[name] = Attribute(name, infer(value).generalized(), value, "constant")
        equality = definition.get("equality")
        if equality is not None:
            self.equality = (equality,) if isinstance(equality, str) else tuple(equality)
        self.include_type = definition.get("equality_include_type", True) is not False

    def _attribute(self, name: str, given: Value) -> Attribute:
        if isinstance(given, Type):
            # What is written as Optional may be left out; an alias or variant that takes undef may not.
            return Attribute(name, given, None) if given.__class__ is OptionalType else Attribute(name, given)
        label = f"initializer for attribute {self._name}[{name}] has wrong type"
        if not isinstance(given, dict):
            from .infer import infer

            raise EvaluationError(f"{label}, expects a value of type Type or Struct, got {infer(given).generalized()}")
        for key in given:
            if key not in _ATTRIBUTE_KEYS:
                raise EvaluationError(f"{label}, unrecognized key '{key}'")
        type_, kind = given.get("type"), given.get("kind", "")
        if not isinstance(type_, Type):
            raise EvaluationError(f"{label}, expects a value for key 'type'")
        if kind and kind not in _KINDS:
            raise EvaluationError(f"{label}, entry 'kind' expects a match for Enum{program(sorted(_KINDS))}, got '{kind}'")
        default = given.get("value", _MISSING)
        if default is not _MISSING and default is not DEFAULT and not type_.instance(default):
            from .describe import describe_mismatch
            from .infer import infer_set

            raise EvaluationError(describe_mismatch(f"attribute {self._name}[{name}] value has wrong type,", type_, infer_set(default)))
        return Attribute(name, type_, default, kind, given.get("override", False), given.get("final", False))

    def _function(self, name: str, given: Value) -> Attribute:
        """A method that is declared; what implements it would have to be Ruby, so that it cannot be called."""
        mine = f"function {self._name}[{name}]"
        from .references import CallableType

        options = given if isinstance(given, dict) else {"type": given}
        type_ = options.get("type")
        callable_type = type_.resolved() if isinstance(type_, AliasType) else type_
        if not isinstance(callable_type, CallableType):
            from .infer import infer

            raise EvaluationError(f"{mine} has wrong type, expects a Type[Callable] value, got {infer(type_)}")
        if name in self.own or name in self.constants:
            raise EvaluationError(f"{mine} conflicts with attribute with the same name")
        inherited = self.parent.function(name) if self.parent is not None else None
        if inherited is not None and not options.get("override", False):
            raise EvaluationError(f"{mine} attempts to override function {inherited[0]}[{name}] without having override => true")
        if inherited is None and options.get("override", False):
            raise EvaluationError(f"expected {mine} to override an inherited function, but no such function was found")
        return Attribute(name, callable_type, override=options.get("override", False), final=options.get("final", False))

    def function(self, name: str) -> tuple[str, Attribute] | None:
        """The function `name` with the name of the type that declares it, this one or one that it inherits from."""
        if name in self.functions:
            return self.name, self.functions[name]
        return self.parent.function(name) if self.parent is not None else None

    def _check_override(self, attribute: Attribute) -> None:
        inherited = self.parent.attributes.get(attribute.name) if self.parent is not None else None
        mine = f"attribute {self._name}[{attribute.name}]"
        if inherited is None:
            if attribute.override:
                raise EvaluationError(f"expected {mine} to override an inherited attribute, but no such attribute was found")
            return
        theirs = f"attribute {self.owner(attribute.name)}[{attribute.name}]"
        if inherited.final:
            raise EvaluationError(f"{mine} attempts to override final {theirs}")
        if not attribute.override:
            raise EvaluationError(f"{mine} attempts to override {theirs} without having override => true")
        if not inherited.type.assignable(attribute.type):
            raise EvaluationError(f"{mine} attempts to override {theirs} with a type that does not match")

    def owner(self, attribute: str) -> str:
        found: ObjectType | None = self.parent
        while found is not None and attribute not in found.own:
            found = found.parent
        return found.name if found is not None else self._name

    @property
    def attributes(self) -> dict[str, Attribute]:
        """Inherited ones first."""
        return (self.parent.attributes if self.parent is not None else {}) | self.own

    @property
    def settable(self) -> list[Attribute]:
        """What `new` takes by position: the required ones first."""
        found = [a for a in self.attributes.values() if a.kind not in ("derived", "constant")]
        return [a for a in found if not a.optional] + [a for a in found if a.optional]

    @property
    def init_struct(self) -> StructType:
        """The type of the hash that `new` takes."""
        return StructType(
            [StructElement(_key(a.name, a.optional), a.type) for a in self.attributes.values() if a.kind not in ("derived", "constant")]
        )

    def new(self, values: Mapping[str, Value]) -> Value:
        """An instance with these attributes, which have been checked; missing ones get their defaults."""
        given = {a.name: values.get(a.name, a.default) for a in self.attributes.values() if a.kind != "derived"}
        if self is DEFERRED:
            return Deferred(given["name"], given.get("arguments"))
        return Instance(self, given)

    def member(self, instance: Instance, name: str) -> Value:
        """The attribute or constant `name`; KeyError when there is none."""
        if name in instance.attributes:
            return instance.attributes[name]
        found: ObjectType | None = self
        while found is not None:
            if name in found.constants:
                return found.constants[name].default
            found = found.parent
        function = self.function(name)
        if function is not None:
            raise EvaluationError(f"no method is implemented for function {function[0]}[{name}]")
        raise KeyError(name)

    def init_hash(self, instance: Instance) -> dict[str, Value]:
        """The attributes that are not at their defaults."""
        defaults = {a.name: a.default for a in self.attributes.values()}
        return {n: v for n, v in instance.attributes.items() if defaults.get(n, _MISSING) is _MISSING or not same(v, defaults[n])}

    def same_instance(self, one: Instance, two: Instance) -> bool:
        if self.include_type and one.type != two.type:
            return False
        names = self.equality if self.equality is not None else tuple(self.attributes)
        return all(n in two.attributes and same(one.attributes[n], two.attributes[n]) for n in names)

    def instance(self, value: Value) -> bool:
        kind = value.__class__
        if kind is Instance:
            return self.accepts(value.type, None)
        return kind is Deferred and self.name in ("Deferred", "Object")

    def accepts(self, other: Type, guard: Guard) -> bool:
        if isinstance(other, ObjectExtension):
            other = other.base
        if not isinstance(other, ObjectType):
            return False
        if self.name == "Object" and not self.own and not self.pending:
            return True
        found: ObjectType | None = other
        while found is not None:
            if found.name == self.name:
                return True
            found = found.parent
        return False

    def shown(self, expansion: Expansion = None) -> str:
        return self.name

    def __str__(self) -> str:
        return self.described()

    def described(self) -> str:
        """As `Object[{…}]`: what `String` makes of the type."""
        self.settle()
        parts = [f"name => {program(self.name)}"] if self.name != "Object" else []
        if self.parent is not None:
            parts.append(f"parent => {self.parent.name}")
        if self.type_parameters:
            shown = ", ".join(f"{program(n)} => {t}" for n, t in self.type_parameters.items())
            parts.append("type_parameters => {" + shown + "}")
        if self.own:
            parts.append("attributes => {" + ", ".join(f"{program(a.name)} => {a.shown(None)}" for a in self.own.values()) + "}")
        if self.constants:
            parts.append("constants => {" + ", ".join(f"{program(n)} => {program(a.default)}" for n, a in self.constants.items()) + "}")
        if self.functions:
            parts.append("functions => {" + ", ".join(f"{program(n)} => {f.shown(None)}" for n, f in self.functions.items()) + "}")
        if self.equality is not None:
            parts.append(f"equality => {program(list(self.equality))}")
        return "Object[{" + ", ".join(parts) + "}]"

    def key(self) -> tuple[Any, ...]:
        return (self.name, tuple(self.own))


class ObjectExtension(Type):
    """An Object type whose type parameters are given: `Box[3]`."""

    __slots__ = ("base", "given")
    name = "Object"

    def __init__(self, base: ObjectType, given: Mapping[str, Value]) -> None:
        self.base = base
        self.given = dict(given)

    @classmethod
    def of(cls, base: ObjectType, keys: Sequence[Value]) -> ObjectExtension:
        """Parameters by position, or one hash of names."""
        names = list(base.type_parameters)
        if not names:
            raise EvaluationError(f"The {base.name}-Type cannot be parameterized using []")
        if len(keys) == 1 and isinstance(keys[0], dict) and all(isinstance(k, str) for k in keys[0]):
            given = keys[0]
        else:  # surplus ones do not count
            given = {n: v for n, v in zip(names, keys, strict=False) if v is not DEFAULT}
        for name, value in given.items():
            if name not in base.type_parameters:
                raise EvaluationError(f"'{name}' is not a known type parameter for {base.name}-Type")
            if not base.type_parameters[name].instance(value) and not isinstance(value, Type):
                from .describe import describe_mismatch
                from .infer import infer_set

                raise EvaluationError(
                    describe_mismatch(f"{base.name}-Type parameter '{name}'", base.type_parameters[name], infer_set(value))
                )
        if not given:
            raise EvaluationError(f"The {base.name}-Type cannot be parameterized using an empty parameter list")
        return cls(base, given)

    def instance(self, value: Value) -> bool:
        from ..comparison import matches

        if not self.base.instance(value):
            return False
        return all(matches(value.attributes.get(n), wanted) for n, wanted in self.given.items())

    def accepts(self, other: Type, guard: Guard) -> bool:
        if not isinstance(other, ObjectExtension) or not self.base.accepts(other.base, guard):
            return False
        return all(name in other.given and _takes(wanted, other.given[name]) for name, wanted in self.given.items())

    def shown(self, expansion: Expansion = None) -> str:
        names = list(self.base.type_parameters)
        last = max((names.index(name) for name in self.given), default=-1)
        return f"{self.base.name}[{', '.join(program(self.given.get(name, DEFAULT)) for name in names[: last + 1])}]"

    def key(self) -> tuple[Any, ...]:
        return (self.base, program(self.given))


def _takes(wanted: Value, value: Value) -> bool:
    """Whether a type parameter takes what another has: types by what they accept, anything else as an option of `case`."""
    from ..comparison import matches

    if isinstance(wanted, Type) and isinstance(value, Type):
        return wanted.assignable(value)
    return bool(matches(value, wanted))


_BARE_TYPE_SET: Final = (
    "TypeSet[{pcore_uri => 'http://puppet.com/2016.1/pcore', pcore_version => '1.0.0', "
    "name_authority => 'http://puppet.com/2016.1/runtime', name => 'DefaultTypeSet', version => '0.0.0'}]"
)


class TypeSetType(Type):
    """A set of types under one namespace: only the bare type exists here."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:  # type: ignore[override]
        return self._name

    def instance(self, value: Value) -> bool:
        return False

    def accepts(self, other: Type, guard: Guard) -> bool:
        return isinstance(other, TypeSetType)

    def described(self) -> str:
        """As the reference prints it."""
        return _BARE_TYPE_SET

    def __str__(self) -> str:
        return self.described()


def _key(name: str, optional: bool) -> Type:
    literal = StringType(None, name)
    return OptionalType(literal) if optional else literal


_FUNCTION_NAME = PatternType([Regexp(r"\A[$]?[a-z][a-z0-9_]*(?:::[a-z][a-z0-9_]*)*\z")])
DEFERRED: Final = ObjectType(
    "Deferred", {"attributes": {"name": _FUNCTION_NAME, "arguments": {"type": OptionalType(ArrayType()), "value": None}}}
)


def _optional(type_: Type) -> dict[str, Value]:
    return {"type": OptionalType(type_), "value": None}


ERROR: Final = ObjectType(
    "Error",
    {
        "attributes": {
            "msg": STRING,
            "kind": _optional(StringType((1, INF))),
            "details": _optional(UNDEF),
            "issue_code": _optional(StringType((1, INF))),
            "partial_result": _optional(UNDEF),
        }
    },
)
TARGET: Final = ObjectType("Target", {"attributes": {"host": STRING, "options": _optional(UNDEF)}})
LOOKUP_CONTEXT: Final = ObjectType(
    "Puppet::LookupContext",
    {
        "attributes": {
            "environment_name": {"type": StringType((1, INF)), "kind": "derived"},
            "module_name": OptionalType(StringType((1, INF))),
        }
    },
)
BUILTIN_OBJECTS: Final = (DEFERRED, ERROR, TARGET, LOOKUP_CONTEXT)

"""Object types: attributes, constants, parents, equality and type parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ..values.core import DEFAULT, Deferred, Instance, Value, same
from ..values.text import program
from .aliases import AliasType
from .base import INF, Expansion, Guard, OptionalType, PuppetType
from .containers import ArrayType, StructElement, StructType
from .scalars import PatternType, StringType

_MISSING: Final = object()
_KEYS = (
    "name", "parent", "type_parameters", "attributes", "constants", "functions", "equality", "equality_include_type", "checks",
    "annotations",
)  # fmt: skip
_ATTRIBUTE_KEYS = ("type", "value", "kind", "final", "override", "annotations")
_KINDS = ("constant", "derived", "given_or_derived", "reference")


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    type: PuppetType
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


class ObjectType(PuppetType):
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
        self.type_parameters: dict[str, PuppetType] = {}
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
            self._check_override(attribute)
            (self.constants if attribute.kind == "constant" else self.own)[name] = attribute
        for name, given in (definition.get("functions") or {}).items():
            self.functions[name] = self._function(name, given)
        for name, value in (definition.get("constants") or {}).items():
            from .infer import infer

            self.constants[name] = Attribute(name, infer(value).generalized(), value, "constant")
        equality = definition.get("equality")
        if equality is not None:
            self.equality = (equality,) if isinstance(equality, str) else tuple(equality)
            self._check_equality(self.equality)
        self.include_type = definition.get("equality_include_type", True) is not False

    def _attribute(self, name: str, given: Value) -> Attribute:
        if isinstance(given, PuppetType):
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
        if not isinstance(type_, PuppetType):
            raise EvaluationError(f"{label}, expects a value for key 'type'")
        if kind != "" and kind not in _KINDS:
            got = f"'{kind}'" if isinstance(kind, str) else _generalized(kind)
            raise EvaluationError(f"{label}, entry 'kind' expects a match for Enum{program(sorted(_KINDS))}, got {got}")
        default = given.get("value", _MISSING)
        self._check_kind(f"attribute {self._name}[{name}] of kind '{kind}'", given)
        if default is not _MISSING and default is not DEFAULT and not type_.instance(default):
            from .descriptions.describe import describe_mismatch
            from .infer import infer_set

            raise EvaluationError(describe_mismatch(f"attribute {self._name}[{name}] value has wrong type,", type_, infer_set(default)))
        return Attribute(name, type_, default, kind, given.get("override", False), given.get("final", False))

    def _check_kind(self, mine: str, given: Mapping[str, Value]) -> None:
        """What an attribute's kind asks for, and what it rules out."""
        kind = given.get("kind", "")
        if kind == "constant" and given.get("final") is False:
            raise EvaluationError(f"{mine} cannot be combined with final => false")
        if kind == "constant" and "value" not in given:
            raise EvaluationError(f"{mine} requires a value")
        if kind in ("derived", "given_or_derived") and "value" in given:
            raise EvaluationError(f"{mine} cannot be combined with an attribute value")

    def _check_equality(self, names: Sequence[str]) -> None:
        """Only attributes can be in an equality, and only those that are in no parent's."""
        for name in names:
            if self._constant(name) is not None:
                mine = f"{self._name} equality is referencing constant attribute {self.owner_of(name)}[{name}]"
                raise EvaluationError(f"{mine}. Reference to constant is not allowed in equality")
            if name not in self.attributes:
                raise EvaluationError(f"{self._name} equality is referencing non existent attribute '{name}'")
            ancestor = self.parent
            while ancestor is not None:
                if name in (ancestor.equality or ()):
                    theirs = f"attribute {self.owner(name)}[{name}] which is included in equality of {ancestor.name}"
                    raise EvaluationError(f"{self._name} equality is referencing {theirs}")
                ancestor = ancestor.parent

    def _constant(self, name: str) -> Attribute | None:
        """The constant of that name, here or inherited."""
        if name in self.constants:
            return self.constants[name]
        return self.parent._constant(name) if self.parent is not None else None

    def owner_of(self, name: str) -> str:
        """The name of the type that declares the attribute or constant, this one or one that it inherits from."""
        if name in self.own or name in self.constants or self.parent is None:
            return self._name
        return self.parent.owner_of(name)

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
        if self.parent is not None and (name in self.parent.attributes or self.parent._constant(name) is not None):
            raise EvaluationError(f"{mine} attempts to override attribute {self.parent.owner_of(name)}[{name}]")
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
        inherited: Attribute | None = None
        if self.parent is not None:
            inherited = self.parent.attributes.get(attribute.name) or self.parent._constant(attribute.name)
        mine = f"attribute {self._name}[{attribute.name}]"
        if inherited is None:
            if attribute.override:
                raise EvaluationError(f"expected {mine} to override an inherited attribute, but no such attribute was found")
            return
        assert self.parent is not None
        theirs = f"attribute {self.parent.owner_of(attribute.name)}[{attribute.name}]"
        if inherited.final or (inherited.kind == "constant" != attribute.kind):
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
        attribute = self.attributes.get(name)
        if attribute is not None and attribute.kind == "derived" and self is not LOOKUP_CONTEXT and instance.behind is None:
            raise EvaluationError(f"no method is implemented for derived attribute {self.owner_of(name)}[{name}]")
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
        if kind is Deferred:
            return self.name in ("Deferred", "Object")
        # A type is an object of the type that describes it, as every type of the language has one.
        return self._is_any_object and isinstance(value, PuppetType)

    @property
    def _is_any_object(self) -> bool:
        return self.name == "Object" and not self.own and not self.pending

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        if isinstance(other, ObjectExtension):
            other = other.base
        if not isinstance(other, ObjectType):
            return False
        if self._is_any_object:
            return True
        found: ObjectType | None = other
        while found is not None:
            if found.name == self.name:
                return True
            found = found.parent
        return False

    def shown(self, expansion: Expansion = None) -> str:
        # Where the definition of an alias is shown, that of an Object type is, too.
        return self.described() if expansion else self.name

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


class ObjectExtension(PuppetType):
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
            if not base.type_parameters[name].instance(value) and not isinstance(value, PuppetType):
                from .descriptions.describe import describe_mismatch
                from .infer import infer_set

                mine = f"type_parameter {base.name}[{name}] has wrong type,"
                raise EvaluationError(describe_mismatch(mine, base.type_parameters[name], infer_set(value)))
        if not given:
            raise EvaluationError(f"The {base.name}-Type cannot be parameterized using an empty parameter list")
        return cls(base, given)

    def instance(self, value: Value) -> bool:
        from ..values.comparison import matches

        if not self.base.instance(value):
            return False
        return all(matches(value.attributes.get(n), wanted) for n, wanted in self.given.items())

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
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
    from ..values.comparison import matches

    if isinstance(wanted, PuppetType) and isinstance(value, PuppetType):
        return wanted.assignable(value)
    return bool(matches(value, wanted))


def _generalized(value: Value) -> PuppetType:
    from .infer import infer

    return infer(value).generalized()


def _key(name: str, optional: bool) -> PuppetType:
    literal = StringType(None, name)
    return OptionalType(literal) if optional else literal


_FUNCTION_NAME = PatternType([Regexp(r"\A[$]?[a-z][a-z0-9_]*(?:::[a-z][a-z0-9_]*)*\z")])
DEFERRED: Final = ObjectType(
    "Deferred", {"attributes": {"name": _FUNCTION_NAME, "arguments": {"type": OptionalType(ArrayType()), "value": None}}}
)


LOOKUP_CONTEXT: Final = ObjectType(
    "Puppet::LookupContext",
    {
        "attributes": {
            "environment_name": {"type": StringType((1, INF)), "kind": "derived"},
            "module_name": OptionalType(StringType((1, INF))),
        }
    },
)
ANNOTATION: Final = ObjectType("Annotation", {})
BUILTIN_OBJECTS: Final = (DEFERRED, LOOKUP_CONTEXT, ANNOTATION)

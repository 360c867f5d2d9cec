"""Object types: attributes, constants, parents, equality and type parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ...values.comparison import matches
from ...values.core import DEFAULT, Deferred, Expansion, Guard, Instance, InstanceType, PuppetType, Sensitive, Value, is_same
from ...values.text import program
from .base import INF, OptionalType
from .containers import ArrayType, StructElement, StructType
from .scalars import PatternType, StringType

NO_DEFAULT: Final[Value] = Sensitive(None)  # only its identity counts, and no manifest can have this object


@dataclass(frozen=True, slots=True)
class ObjectAttribute:
    """
    An attribute, constant or function of an Object type.

    Attributes:
        default: NO_DEFAULT for one that `new` requires.
        kind: `constant`, `derived`, `given_or_derived`, `reference`, or empty.
        override: whether it replaces an inherited one.
        final: whether no descendant may replace it.
    """

    name: str
    type: PuppetType
    default: Value = NO_DEFAULT
    kind: str = ""
    override: bool = False
    final: bool = False

    @property
    def optional(self) -> bool:
        return self.default is not NO_DEFAULT

    def notation(self, expansion: Expansion) -> str:
        """Return the attribute in the form of a definition."""
        if not self.optional and not self.kind:
            return self.type.notation(expansion)
        parts = [f"type => {self.type.notation(expansion)}"]
        parts += [f"kind => {self.kind}"] if self.kind else []
        parts += [f"value => {program(self.default)}"] if self.optional else []
        return "{" + ", ".join(parts) + "}"


class ObjectType(InstanceType):
    """
    An Object type; the type called `Object` without attributes accepts every other one.

    `types.declare` fills it from its definition, after it was made, so that its attributes may refer to it.

    Attributes:
        pending: reads the definition of a type that has no name yet, for `Object[{…}]` in a type declaration; else None.
    """

    __slots__ = ("_name", "constants", "equality", "functions", "include_type", "own", "parent", "pending", "type_parameters")

    def __init__(self, name: str, attributes: Iterable[ObjectAttribute] = ()) -> None:
        self._name = name
        self.parent: ObjectType | None = None
        self.own: dict[str, ObjectAttribute] = {attribute.name: attribute for attribute in attributes}
        self.constants: dict[str, ObjectAttribute] = {}
        self.functions: dict[str, ObjectAttribute] = {}
        self.type_parameters: dict[str, PuppetType] = {}
        self.equality: tuple[str, ...] | None = None  # None: all attributes
        self.include_type = True
        self.pending: Callable[[ObjectType], None] | None = None

    @property
    def name(self) -> str:
        return self._name

    def take_name(self, name: str) -> ObjectType:
        """
        Give this type its name, by which messages call it, and read its definition if that is still to be done.

        Raises:
            EvaluationError: the definition is wrong.
        """
        if self.pending is not None:
            define, self.pending = self.pending, None
            self._name = name
            define(self)
        return self

    def read_definition(self) -> None:
        """Read the definition of a type that was not given a name."""
        if self.pending is not None:
            self.take_name(self._name)

    def constant(self, name: str) -> ObjectAttribute | None:
        """Return the constant of that name, the type's own or an inherited one; None when there is none."""
        if name in self.constants:
            return self.constants[name]
        return self.parent.constant(name) if self.parent is not None else None

    def owner_of(self, name: str) -> str:
        """Return the name of the type that declares the attribute or constant: this one or an ancestor."""
        if name in self.own or name in self.constants or self.parent is None:
            return self._name
        return self.parent.owner_of(name)

    def function(self, name: str) -> tuple[str, ObjectAttribute] | None:
        """Return the function `name` with the name of the type that declares it, this one or an ancestor; None when there is none."""
        if name in self.functions:
            return self.name, self.functions[name]
        return self.parent.function(name) if self.parent is not None else None

    def inherited_owner_of(self, attribute: str) -> str:
        """Return the name of the nearest ancestor that declares the attribute, or of this type when none does."""
        ancestor = self.parent
        while ancestor is not None and attribute not in ancestor.own:
            ancestor = ancestor.parent
        return ancestor.name if ancestor is not None else self._name

    @property
    def attributes(self) -> dict[str, ObjectAttribute]:
        """All attributes by name, inherited ones first."""
        return (self.parent.attributes if self.parent is not None else {}) | self.own

    @property
    def settable(self) -> list[ObjectAttribute]:
        """The attributes that `new` takes by position: the required ones first."""
        attributes = [attribute for attribute in self.attributes.values() if attribute.kind not in ("derived", "constant")]
        return sorted(attributes, key=lambda attribute: attribute.optional)

    @property
    def init_struct(self) -> StructType:
        """The type of the hash that `new` takes."""
        return StructType(
            [StructElement(_key(a.name, a.optional), a.type) for a in self.attributes.values() if a.kind not in ("derived", "constant")]
        )

    def new(self, values: Mapping[str, Value]) -> Value:
        """Return an instance with these attributes, which are checked already; missing ones get their defaults."""
        attributes = {a.name: values.get(a.name, a.default) for a in self.attributes.values() if a.kind != "derived"}
        if self is DEFERRED:
            name, arguments = attributes["name"], attributes.get("arguments")
            assert isinstance(name, str)
            assert arguments is None or isinstance(arguments, list)
            return Deferred(name, arguments)
        return Instance(self, attributes)

    def member(self, instance: Instance, name: str) -> Value:
        if name in instance.attributes:
            return instance.attributes[name]
        constant = self.constant(name)
        if constant is not None:
            return constant.default
        attribute = self.attributes.get(name)
        if attribute is not None and attribute.kind == "derived" and self is not LOOKUP_CONTEXT and instance.behind is None:
            raise EvaluationError(f"no method is implemented for derived attribute {self.owner_of(name)}[{name}]")
        function = self.function(name)
        if function is not None:
            raise EvaluationError(f"no method is implemented for function {function[0]}[{name}]")
        raise KeyError(name)

    def init_hash(self, instance: Instance) -> dict[str, Value]:
        defaults = {a.name: a.default for a in self.attributes.values()}
        return {n: v for n, v in instance.attributes.items() if defaults.get(n, NO_DEFAULT) is NO_DEFAULT or not is_same(v, defaults[n])}

    def same_instance(self, one: Instance, two: Instance) -> bool:
        if self.include_type and one.type != two.type:
            return False
        names = self.equality if self.equality is not None else tuple(self.attributes)
        return all(n in two.attributes and is_same(one.attributes[n], two.attributes[n]) for n in names)

    def instance(self, value: Value) -> bool:
        if value.__class__ is Instance:
            return self.accepts(value.type, None)
        if value.__class__ is Deferred:
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
        ancestor: ObjectType | None = other
        while ancestor is not None:
            if ancestor.name == self.name:
                return True
            ancestor = ancestor.parent
        return False

    def notation(self, expansion: Expansion = None) -> str:
        # The definition of an Object type is shown wherever that of an alias is.
        return self.definition_text() if expansion else self.name

    def __str__(self) -> str:
        return self.definition_text()

    def definition_text(self) -> str:
        """Return the type as `Object[{…}]`, which is its text."""
        self.read_definition()
        parts = [f"name => {program(self.name)}"] if self.name != "Object" else []
        if self.parent is not None:
            parts.append(f"parent => {self.parent.name}")
        if self.type_parameters:
            shown = ", ".join(f"{program(n)} => {t}" for n, t in self.type_parameters.items())
            parts.append("type_parameters => {" + shown + "}")
        if self.own:
            parts.append("attributes => {" + ", ".join(f"{program(a.name)} => {a.notation(None)}" for a in self.own.values()) + "}")
        if self.constants:
            parts.append("constants => {" + ", ".join(f"{program(n)} => {program(a.default)}" for n, a in self.constants.items()) + "}")
        if self.functions:
            parts.append("functions => {" + ", ".join(f"{program(n)} => {f.notation(None)}" for n, f in self.functions.items()) + "}")
        if self.equality is not None:
            parts.append(f"equality => {program(list(self.equality))}")
        return "Object[{" + ", ".join(parts) + "}]"

    def key(self) -> tuple[object, ...]:
        return (self.name, tuple(self.own))


class ObjectExtension(PuppetType):
    """An Object type with values for its type parameters: `Box[3]`."""

    __slots__ = ("arguments", "base")
    name = "Object"

    def __init__(self, base: ObjectType, arguments: Mapping[str, Value]) -> None:
        self.base = base
        self.arguments = dict(arguments)

    def instance(self, value: Value) -> bool:
        if not isinstance(value, Instance) or not self.base.instance(value):
            return False
        return all(matches(value.attributes.get(name), argument) for name, argument in self.arguments.items())

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        if not isinstance(other, ObjectExtension) or not self.base.accepts(other.base, guard):
            return False
        return all(name in other.arguments and _takes(argument, other.arguments[name]) for name, argument in self.arguments.items())

    def notation(self, expansion: Expansion = None) -> str:
        names = list(self.base.type_parameters)
        last = max((names.index(name) for name in self.arguments), default=-1)
        return f"{self.base.name}[{', '.join(program(self.arguments.get(name, DEFAULT)) for name in names[: last + 1])}]"

    def key(self) -> tuple[object, ...]:
        return (self.base, program(self.arguments))


def _takes(argument: Value, other: Value) -> bool:
    """Return whether the value of a type parameter accepts another one: a type by assignability, anything else as an option of `case`."""
    if isinstance(argument, PuppetType) and isinstance(other, PuppetType):
        return argument.assignable(other)
    return bool(matches(other, argument))


def _key(name: str, optional: bool) -> PuppetType:
    literal = StringType(None, name)
    return OptionalType(literal) if optional else literal


_FUNCTION_NAME = PatternType([Regexp(r"\A[$]?[a-z][a-z0-9_]*(?:::[a-z][a-z0-9_]*)*\z")])
DEFERRED: Final = ObjectType(
    "Deferred", [ObjectAttribute("name", _FUNCTION_NAME), ObjectAttribute("arguments", OptionalType(ArrayType()), None)]
)
LOOKUP_CONTEXT: Final = ObjectType(
    "Puppet::LookupContext",
    [
        ObjectAttribute("environment_name", StringType((1, INF)), kind="derived"),
        ObjectAttribute("module_name", OptionalType(StringType((1, INF))), None),
    ],
)
ANNOTATION: Final = ObjectType("Annotation")
BUILTIN_OBJECTS: Final = (DEFERRED, LOOKUP_CONTEXT, ANNOTATION)

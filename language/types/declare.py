"""
The declarations `Object[{…}]` and `TypeSet[{…}]` in manifests: their definitions are read and checked here.

The texts of errors are those of the reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ..values.core import DEFAULT, PuppetType, Value
from ..values.text import program, to_s
from ..values.versions import SemVer, SemVerRange
from .descriptions.describe import describe_mismatch
from .inference.infer import infer, infer_set
from .kinds.base import ANY, INF, NotUndefType, OptionalType, VariantType
from .kinds.containers import HashType, StructElement, StructType
from .kinds.objects import NO_DEFAULT, ObjectAttribute, ObjectExtension, ObjectType
from .kinds.references import CallableType
from .kinds.scalars import STRING, PatternType, StringType
from .named.type_sets import TypeSetType

_KEYS: Final = (
    "name", "parent", "type_parameters", "attributes", "constants", "functions", "equality", "equality_include_type", "checks",
    "annotations",
)  # fmt: skip
_ATTRIBUTE_KEYS: Final = ("type", "value", "kind", "final", "override", "annotations")
_WRONG_INITIALIZER: Final = "object initializer has wrong type"
_TYPE_NAME: Final = r"Pattern[/\A[A-Z][\w]*(?:::[A-Z][\w]*)*\z/]"
_EQUALITY: Final = r"Variant[Pattern[/\A[a-z_]\w*\z/], Array[Pattern[/\A[a-z_]\w*\z/]]]"
_KINDS: Final = ("constant", "derived", "given_or_derived", "reference")


# --- Object types -------------------------------------------------------------------------------------------------


def unnamed_object(definition: Mapping[str, Value]) -> ObjectType:
    """Return `Object[{…}]` as it is in a type declaration: its definition is read when it gets its name."""
    name = definition.get("name") or "Object"
    if not isinstance(name, str):
        raise EvaluationError(f"{_WRONG_INITIALIZER}, entry 'name' expects a match for {_TYPE_NAME}, got {infer_set(name).name}")
    type_ = ObjectType(name)
    type_.pending = partial(_define, definition=definition)
    return type_


def define_object(name: str, definition: Mapping[str, Value]) -> ObjectType:
    """
    Return the Object type of an initializer hash.

    Raises:
        EvaluationError: the definition is wrong.
    """
    type_ = ObjectType(name)
    _define(type_, definition)
    return type_


def _define(type_: ObjectType, definition: Mapping[str, Value]) -> None:
    """Fill an Object type from its initializer hash; raise EvaluationError when that is wrong."""
    for key in definition:
        if key not in _KEYS:
            raise EvaluationError(f"{_WRONG_INITIALIZER}, unrecognized key '{key}'")
    parent = definition.get("parent")
    if parent is not None:
        parent = parent.resolved() if isinstance(parent, PuppetType) else parent
        if not isinstance(parent, ObjectType):
            raise EvaluationError(f"{_WRONG_INITIALIZER}, entry 'parent' expects an Object value, got {parent}")
        type_.parent = parent
    for name, parameter in _hash_entry(definition, "type_parameters").items():
        parameter_type = parameter.get("type") if isinstance(parameter, dict) else parameter
        if not isinstance(parameter_type, PuppetType):
            got = infer_set(parameter_type).name
            raise EvaluationError(f"type_parameter {type_.name}[{name}] has wrong type, expects a Type value, got {got}")
        type_.type_parameters[name] = parameter_type
    attributes, constants = _hash_entry(definition, "attributes"), _hash_entry(definition, "constants")
    for name, initializer in attributes.items():
        if name in constants:
            raise EvaluationError(f"attribute {type_.name}[{name}] is defined as both a constant and an attribute")
        attribute = _attribute(type_, name, initializer)
        _check_override(type_, attribute)
        (type_.constants if attribute.kind == "constant" else type_.own)[name] = attribute
    for name, initializer in _hash_entry(definition, "functions").items():
        type_.functions[name] = _function(type_, name, initializer)
    for name, value in constants.items():
        type_.constants[name] = ObjectAttribute(name, infer(value).generalized(), value, "constant")
    equality = definition.get("equality")
    if equality is not None:
        if not isinstance(equality, str | list):
            raise EvaluationError(f"{_WRONG_INITIALIZER}, entry 'equality' expects a match for {_EQUALITY}, got {infer_set(equality).name}")
        type_.equality = (equality,) if isinstance(equality, str) else tuple(equality)
        _check_equality(type_, type_.equality)
    type_.include_type = definition.get("equality_include_type", True) is not False


def _hash_entry(definition: Mapping[str, Value], key: str) -> dict[str, Value]:
    """Return a part of an initializer that is a hash with names; empty when it is not there, EvaluationError when it is something else."""
    part = definition.get(key)
    if part is None:
        return {}
    expected = _STRUCTURE[key]
    if not expected.instance(part):
        wrong = {key: part}
        raise EvaluationError(describe_mismatch(f"{_WRONG_INITIALIZER},", _struct({key: expected}, {}), infer_set(wrong)))
    assert isinstance(part, dict)
    return part


def _flag(initializer: Mapping[str, Value], key: str, subject: str) -> bool:
    """Return an entry of the initializer of an attribute or function that is true or false, false when it is not there."""
    value = initializer.get(key, False)
    if not isinstance(value, bool):
        raise EvaluationError(
            f"initializer for {subject} has wrong type, entry '{key}' expects a Boolean value, got {infer_set(value).name}"
        )
    return value


def _attribute(owner: ObjectType, name: str, initializer: Value) -> ObjectAttribute:
    if isinstance(initializer, PuppetType):
        # An attribute that is written as Optional may be omitted; one of an alias or variant that accepts undef may not.
        return ObjectAttribute(name, initializer, None if initializer.__class__ is OptionalType else NO_DEFAULT)
    label = f"initializer for attribute {owner.name}[{name}] has wrong type"
    if not isinstance(initializer, dict):
        raise EvaluationError(f"{label}, expects a value of type Type or Struct, got {infer(initializer).generalized()}")
    for key in initializer:
        if key not in _ATTRIBUTE_KEYS:
            raise EvaluationError(f"{label}, unrecognized key '{key}'")
    type_, kind = initializer.get("type"), initializer.get("kind", "")
    if not isinstance(type_, PuppetType):
        raise EvaluationError(f"{label}, expects a value for key 'type'")
    if kind != "" and kind not in _KINDS:
        got = f"'{kind}'" if isinstance(kind, str) else infer(kind).generalized()
        raise EvaluationError(f"{label}, entry 'kind' expects a match for Enum{program(sorted(_KINDS))}, got {got}")
    default = initializer.get("value", NO_DEFAULT)
    _check_kind(f"attribute {owner.name}[{name}] of kind '{kind}'", initializer)
    if default is not NO_DEFAULT and default is not DEFAULT and not type_.instance(default):
        raise EvaluationError(describe_mismatch(f"attribute {owner.name}[{name}] value has wrong type,", type_, infer_set(default)))
    subject = f"attribute {owner.name}[{name}]"
    return ObjectAttribute(name, type_, default, kind, _flag(initializer, "override", subject), _flag(initializer, "final", subject))


def _check_kind(subject: str, initializer: Mapping[str, Value]) -> None:
    """Raise EvaluationError when an attribute lacks a key that its kind requires, or has a key that the kind forbids."""
    kind = initializer.get("kind", "")
    if kind == "constant" and initializer.get("final") is False:
        raise EvaluationError(f"{subject} cannot be combined with final => false")
    if kind == "constant" and "value" not in initializer:
        raise EvaluationError(f"{subject} requires a value")
    if kind in ("derived", "given_or_derived") and "value" in initializer:
        raise EvaluationError(f"{subject} cannot be combined with an attribute value")


def _check_equality(type_: ObjectType, names: Sequence[str]) -> None:
    """Raise EvaluationError for a name in an equality that is not an attribute, or that the equality of a parent includes."""
    for name in names:
        if type_.constant(name) is not None:
            subject = f"{type_.name} equality is referencing constant attribute {type_.owner_of(name)}[{name}]"
            raise EvaluationError(f"{subject}. Reference to constant is not allowed in equality")
        if name not in type_.attributes:
            raise EvaluationError(f"{type_.name} equality is referencing non existent attribute '{name}'")
        ancestor = type_.parent
        while ancestor is not None:
            if name in (ancestor.equality or ()):
                attribute = f"attribute {type_.inherited_owner_of(name)}[{name}] which is included in equality of {ancestor.name}"
                raise EvaluationError(f"{type_.name} equality is referencing {attribute}")
            ancestor = ancestor.parent


def _function(owner: ObjectType, name: str, initializer: Value) -> ObjectAttribute:
    """Return a declared method; only Ruby code could implement it, so that it cannot be called."""
    subject = f"function {owner.name}[{name}]"
    options = initializer if isinstance(initializer, dict) else {"type": initializer}
    override = _flag(options, "override", f"function '{name}'")
    type_ = options.get("type")
    callable_type = type_.resolved() if isinstance(type_, PuppetType) else type_
    if not isinstance(callable_type, CallableType):
        raise EvaluationError(f"{subject} has wrong type, expects a Type[Callable] value, got {infer(type_)}")
    if name in owner.own or name in owner.constants:
        raise EvaluationError(f"{subject} conflicts with attribute with the same name")
    parent = owner.parent
    if parent is not None and (name in parent.attributes or parent.constant(name) is not None):
        raise EvaluationError(f"{subject} attempts to override attribute {parent.owner_of(name)}[{name}]")
    inherited = parent.function(name) if parent is not None else None
    if inherited is not None and not override:
        raise EvaluationError(f"{subject} attempts to override function {inherited[0]}[{name}] without having override => true")
    if inherited is None and override:
        raise EvaluationError(f"expected {subject} to override an inherited function, but no such function was found")
    return ObjectAttribute(name, callable_type, override=override, final=_flag(options, "final", f"function '{name}'"))


def _check_override(type_: ObjectType, attribute: ObjectAttribute) -> None:
    """Raise EvaluationError when an attribute overrides an inherited one without permission, or declares an override without overriding."""
    parent = type_.parent
    inherited = None
    if parent is not None:
        inherited = parent.attributes.get(attribute.name) or parent.constant(attribute.name)
    subject = f"attribute {type_.name}[{attribute.name}]"
    if inherited is None:
        if attribute.override:
            raise EvaluationError(f"expected {subject} to override an inherited attribute, but no such attribute was found")
        return
    assert parent is not None
    overridden = f"attribute {parent.owner_of(attribute.name)}[{attribute.name}]"
    if inherited.final or (inherited.kind == "constant" != attribute.kind):
        raise EvaluationError(f"{subject} attempts to override final {overridden}")
    if not attribute.override:
        raise EvaluationError(f"{subject} attempts to override {overridden} without having override => true")
    if not inherited.type.assignable(attribute.type):
        raise EvaluationError(f"{subject} attempts to override {overridden} with a type that does not match")


def object_extension(base: ObjectType, keys: Sequence[Value]) -> ObjectExtension:
    """
    Return `base[keys]`; the keys are type parameters by position, or one hash of type parameters by name.

    Raises:
        EvaluationError: `base` has no such parameters, or a value is not of its parameter's type.
    """
    names = list(base.type_parameters)
    if not names:
        raise EvaluationError(f"The {base.name}-Type cannot be parameterized using []")
    if len(keys) == 1 and isinstance(keys[0], dict) and all(isinstance(k, str) for k in keys[0]):
        values = keys[0]
    else:  # surplus keys are ignored
        values = {name: value for name, value in zip(names, keys, strict=False) if value is not DEFAULT}
    for name, value in values.items():
        if name not in base.type_parameters:
            raise EvaluationError(f"'{name}' is not a known type parameter for {base.name}-Type")
        if not base.type_parameters[name].instance(value) and not isinstance(value, PuppetType):
            subject = f"type_parameter {base.name}[{name}] has wrong type,"
            raise EvaluationError(describe_mismatch(subject, base.type_parameters[name], infer_set(value)))
    if not values:
        raise EvaluationError(f"The {base.name}-Type cannot be parameterized using an empty parameter list")
    return ObjectExtension(base, values)


# --- type sets ----------------------------------------------------------------------------------------------------

_PCORE_VERSIONS: Final = SemVerRange.parse("1.x")
_SHORT_NAME: Final = PatternType([Regexp(r"\A[A-Z]\w*\z")])


def _struct(required: Mapping[str, PuppetType], optional: Mapping[str, PuppetType]) -> StructType:
    elements = [StructElement(StringType(None, name), type_) for name, type_ in required.items()]
    return StructType([*elements, *(StructElement(OptionalType(StringType(None, name)), type_) for name, type_ in optional.items())])


_MEMBER_NAME: Final = PatternType([Regexp(r"\A[a-z_]\w*\z")])
_STRUCTURE: Final[Mapping[str, HashType]] = {
    "type_parameters": HashType(_MEMBER_NAME, NotUndefType()),
    "attributes": HashType(_MEMBER_NAME, NotUndefType()),
    "constants": HashType(_MEMBER_NAME, ANY),
    "functions": HashType(VariantType([_MEMBER_NAME, StringType(None, "[]")]), NotUndefType()),
}
"""The types of those parts of an Object type's initializer that have names as keys."""

_TYPE_SET_INITIALIZER: Final = _struct(
    {"pcore_version": STRING},
    {
        "pcore_uri": STRING,
        "name_authority": STRING,
        "name": STRING,
        "version": STRING,
        "types": HashType(_SHORT_NAME, ANY, (1, INF)),
        "references": HashType(_SHORT_NAME, _struct({"name": STRING, "version_range": STRING}, {"name_authority": STRING}), (1, INF)),
        "annotations": ANY,
    },
)


def define_type_set(name: str, definition: dict[str, Value]) -> TypeSetType:
    """
    Return the type set of a definition; `TypeSetType.resolve` is still to find the types that it names.

    Raises:
        EvaluationError: the definition is wrong.
    """
    if not _TYPE_SET_INITIALIZER.instance(definition):
        subject = "TypeSet initializer has wrong type,"
        raise EvaluationError(describe_mismatch(subject, _TYPE_SET_INITIALIZER, infer_set(definition)))
    version = SemVer.parse(to_s(definition["pcore_version"]))
    if version not in _PCORE_VERSIONS:
        raise EvaluationError(
            f"The pcore version for TypeSet '{name}' is not understood by this runtime. Expected range {_PCORE_VERSIONS}, got {version}"
        )
    type_set = TypeSetType(name, definition)
    if "version" in definition:
        type_set.version = SemVer.parse(to_s(definition["version"]))
    for alias in type_set.part("references"):
        if alias in type_set.part("types"):
            raise EvaluationError(
                f"TypeSet '{name}' references a TypeSet using alias '{alias}'. The alias collides with the name of a declared type"
            )
    return type_set

"""
Types as `text.inspect` shows them: the class that the reference has for a type, and its attributes.

`sprintf('%p', Integer)` and collections that are turned into text by functions of the 3.x API show them so. Where the reference shows
more than the type itself (the syntax tree of an alias, where an Object type came from), the type is shown as the language writes it.
Source: puppet 7.23, asked; the cases inspect-… of generated.yaml.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ...values.core import Instance, PuppetType, Value
from ...values.text import inspect
from ..attributes import attributes_of
from ..init import InitType
from ..kinds.base import INF, UNDEF, TypeReference, UnitType, VariantType, entry_for
from ..kinds.containers import ArrayType, HashType
from ..kinds.objects import ObjectType
from ..kinds.references import ResourceEntryType, TypeType
from ..kinds.scalars import (
    STRING,
    BinaryType,
    BooleanType,
    DefaultType,
    RangeType,
    RegexpType,
    RuntimeType,
    ScalarDataType,
    ScalarType,
    SemVerRangeType,
    SensitiveType,
    TimeType,
    URIType,
)
from ..named.aliases import AliasType
from ..named.data import DATA, RICH_DATA, RICH_DATA_KEY
from ..named.type_sets import TypeSetType

Attributes = Iterable[tuple[str, str]]

_BARE_TYPE_SET: Final = (
    ("types", "{}"),
    ("references", "{}"),
    ("name", '"DefaultTypeSet"'),
    ("name_authority", '"http://puppet.com/2016.1/runtime"'),
    ("pcore_version", "1.0.0"),
    ("pcore_uri", '"http://puppet.com/2016.1/pcore"'),
    ("version", "0.0.0"),
    ("dc_to_cc_map", "{}"),
    ("annotations", "nil"),
)
_BARE_OBJECT: Final = (
    ("type_parameters", "{}"),
    ("attributes", "{}"),
    ("functions", "{}"),
    ("name", "nil"),
    ("parent", "nil"),
    ("equality_include_type", "true"),
    ("equality", "nil"),
    ("checks", "nil"),
    ("annotations", "nil"),
)
_ALIASES: Final = {
    "Data": ("Variant[ScalarData,Undef,Hash[String,Data],Array[Data]]", "(DependencyLoader 'environment private' [])"),
    "RichData": (
        "Variant[Scalar,SemVerRange,Binary,Sensitive,Type,TypeSet,URI,Object,Undef,Default,Hash[RichDataKey,RichData],Array[RichData]]",
        "(DependencyLoader 'environment private' [])",
    ),
    "RichDataKey": ("Variant[String,Numeric]", "(StaticLoader)"),
}
"""The reference's declarations of the builtin aliases, and which of its loaders has them."""
_DEFINITIONS: Final[dict[str, PuppetType]] = {
    "Data": VariantType(
        (
            ScalarDataType(),
            UNDEF,
            HashType(STRING, DATA),
            ArrayType(DATA),
        )
    ),
    "RichData": VariantType(
        (
            ScalarType(),
            SemVerRangeType(),
            BinaryType(),
            SensitiveType(),
            TypeType(),
            TypeSetType("TypeSet"),
            URIType(),
            ObjectType("Object"),
            UNDEF,
            DefaultType(),
            HashType(RICH_DATA_KEY, RICH_DATA),
            ArrayType(RICH_DATA),
        )
    ),
}
"""The definitions of these aliases in the reference's order, which is lost when aliases are simplified."""


def inspect_type(type_: PuppetType) -> str:
    """Return a type as Ruby's `inspect` shows it, with its attributes in the reference's order."""
    return _inspect(type_, ())


def _inspect(type_: PuppetType, open_aliases: tuple[PuppetType, ...]) -> str:
    def inner(part: PuppetType | None) -> str:
        return "nil" if part is None else _inspect(part, open_aliases)

    if isinstance(type_, AliasType):
        return _inspect_alias(type_, open_aliases)

    def shown(value: Value) -> str:
        if isinstance(value, PuppetType):
            return inner(value)
        if value.__class__ is list:
            return _items(map(shown, value))
        if value.__class__ is Instance:
            return _object("PStructElement", [(name, shown(part)) for name, part in value.attributes.items()])
        return inspect(value)

    describe = entry_for(type_, _ATTRIBUTES)
    attributes = [(name, shown(value)) for name, value in attributes_of(type_)] if describe is None else describe(type_, inner)
    return str(type_) if attributes is None else _object(_class_name(type_), attributes)


def _object(class_name: str, attributes: Attributes) -> str:
    shown = ", ".join(f"@{name}={value}" for name, value in attributes)
    return f"#<Puppet::Pops::Types::{class_name}{' ' if shown else ''}{shown}>"


def _class_name(type_: PuppetType) -> str:
    return f"P{type_.pcore_name}"


def _inspect_alias(alias: AliasType, open_aliases: tuple[PuppetType, ...]) -> str:
    declaration = _ALIASES.get(alias.alias) if alias.builtin else None
    if declaration is None:
        return str(alias)
    if any(alias is other for other in open_aliases):
        return "#<Puppet::Pops::Types::PTypeAliasType ...>"
    expression, loader = declaration
    attributes = (
        ("name", inspect(alias.alias)),
        ("type_expr", _object("PTypeReferenceType", (("type_string", inspect(expression)),))),
        ("resolved_type", _inspect(_DEFINITIONS.get(alias.alias, alias.definition), (*open_aliases, alias))),
        ("self_recursion", "true" if alias.recursive else "false"),
        ("loader", loader),
    )
    return _object("PTypeAliasType", attributes)


Inner = Callable[[PuppetType | None], str]


def _items(parts: Iterable[str]) -> str:
    return f"[{', '.join(parts)}]"


def _number(bound: float) -> str:
    return "Infinity" if bound == INF else "-Infinity" if bound == -INF else inspect(bound)


def _size(size: tuple[float, float] | None) -> str:
    return "nil" if size is None else _object("PIntegerType", (("from", _number(size[0])), ("to", _number(size[1]))))


def _time(type_: TimeType, inner: Inner) -> Attributes:
    low = "-Infinity" if type_.low is None else inspect(type_.low)
    return ("from", low), ("to", "Infinity" if type_.high is None else inspect(type_.high))


def _regexp(type_: RegexpType, inner: Inner) -> Attributes:
    if type_.regexp is None:
        return (("pattern", "nil"),)
    return ("pattern", inspect(type_.regexp.source)), ("regexp", inspect(type_.regexp))


def _init(type_: InitType, inner: Inner) -> Attributes:
    is_bare = type_.type is None
    return ("type", inner(type_.type)), ("init_args", inspect(list(type_.arguments))), ("initialized", inspect(is_bare))


def _resource(type_: ResourceEntryType, inner: Inner) -> Attributes:
    return ("type_name", inspect(type_.type_name)), ("title", inspect(type_.title)), ("downcased_name", inspect(type_.lower))


def _runtime(type_: RuntimeType, inner: Inner) -> Attributes:
    runtime = "nil" if type_.runtime is None else f":{type_.runtime}"
    return ("runtime", runtime), ("name_or_pattern", inspect(type_.pattern))


# What differs from the attributes by which `tree_each` walks through a type.
_ATTRIBUTES: Final[dict[type, Callable[[Any, Inner], Attributes | None]]] = {
    RangeType: lambda of, inner: (("from", _number(of.low)), ("to", _number(of.high))),
    TimeType: _time,
    BooleanType: lambda of, inner: (("value", inspect(of.value)),),
    RegexpType: _regexp,
    ArrayType: lambda of, inner: (("size_type", _size(of.size)), ("element_type", inner(of.element))),
    HashType: lambda of, inner: (("size_type", _size(of.size)), ("key_type", inner(of.key_type)), ("value_type", inner(of.value_type))),
    InitType: _init,
    SensitiveType: lambda of, inner: (("type", inner(of.type)),),
    URIType: lambda of, inner: () if of.matchers is None else (("parameters", inspect(of.matchers)),),
    ResourceEntryType: _resource,
    RuntimeType: _runtime,
    ObjectType: lambda of, inner: _BARE_OBJECT if of.notation() == "Object" else None,
    TypeReference: lambda of, inner: (("type_string", inspect(of.text)),),
    TypeSetType: lambda of, inner: _BARE_TYPE_SET if of.definition is None else None,
    UnitType: lambda of, inner: (),
}

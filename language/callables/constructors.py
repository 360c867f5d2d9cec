"""
The signatures of `new` for each builtin type, with the reference's names of types in them.

Source: language reference 9.2; names as its error messages show them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ..types.kinds.base import NotUndefType
from ..types.kinds.containers import ArrayType, HashType, StructType, TupleType
from ..types.kinds.references import TypeType
from ..types.kinds.scalars import (
    BinaryType,
    BooleanType,
    FloatType,
    IntegerType,
    NumericType,
    RegexpType,
    SemVerRangeType,
    SemVerType,
    SensitiveType,
    StringType,
    TimespanType,
    TimestampType,
    URIType,
)
from ..values.core import PuppetType
from .declarations import signature_of
from .signatures import Signature

_SIGN: Final = r"\A[+-]?\s*"
INTEGER_FROM: Final = (
    rf"Variant[Numeric, Boolean, Pattern[/{_SIGN}(?:(?:\d+)|(?:0[xX][0-9A-Fa-f]+)|(?:0[bB][01]+))\z/], Timespan, Timestamp]"
)
_DECIMAL: Final = r"(?:(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE]-?\d+)?)"
_FLOAT_FROM: Final = (
    rf"Variant[Numeric, Boolean, Pattern[/{_SIGN}(?:{_DECIMAL}|(?:0[xX][0-9A-Fa-f]+)|(?:0[0-7]+)|(?:0[bB][01]+))\z/], Timespan, Timestamp]"
)
_FORMATS: Final = {"Formats": "Variant[String[2],Array[String[2], 1]]"}
SEMVER: Final = (
    r"\A(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?\Z"
)
_BOUND: Final = "Variant[Default, SemVer]"
_TEXT: Final = "String[1]"


@dataclass(slots=True, eq=False)
class Constructor:
    """
    The function `new` for a class of types.

    Attributes:
        name: the name in error messages.
        declared: the parameters of each signature, as `declarations` reads them.
        aliases: the names of types in them.
    """

    name: str
    declared: tuple[tuple[str, ...], ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    _read: list[Signature] | None = field(default=None, init=False)

    def signatures(self) -> list[Signature]:
        """Return the signatures, which are parsed at the first call."""
        if self._read is None:
            self._read = [signature_of(declared, aliases=self.aliases) for declared in self.declared]
        return self._read


_ARRAY: Final = Constructor(
    "new_array", (("Variant[Array,Hash,Binary,Iterable] from", "Boolean[false] wrap?"), ("Any from", "Boolean[true] wrap"))
)
_HASH: Final = Constructor(
    "new_hash",
    (("TreeArray from", "NewHashOption build_option?"), ("KeyValueArray from",), ("Any from",)),
    {"KeyValueArray": "Array[Tuple[Any,Any],1]", "TreeArray": "Array[Tuple[Array,Any],1]", "NewHashOption": "Enum[tree, hash_tree]"},
)
_REAL: Final = (("Convertible from", "Boolean abs?"), ("NamedArgs hash_args",))
_REAL_TYPES: Final = {"Convertible": _FLOAT_FROM, "NamedArgs": "Struct[{from => Convertible, Optional[abs] => Boolean}]"}

CONSTRUCTORS: Final[Mapping[type[PuppetType], Constructor]] = {
    IntegerType: Constructor(
        "new",
        (("Convertible from", "Radix radix?", "Boolean abs?"), ("NamedArgs hash_args",)),
        {
            "Radix": "Variant[Default, Integer[2,2], Integer[8,8], Integer[10,10], Integer[16,16]]",
            "Convertible": INTEGER_FROM,
            "NamedArgs": "Struct[{from => Convertible, Optional[radix] => Radix, Optional[abs] => Boolean}]",
        },
    ),
    FloatType: Constructor("new_float", _REAL, _REAL_TYPES),
    NumericType: Constructor("new_numeric", _REAL, _REAL_TYPES),
    BooleanType: Constructor("new_boolean", (("Variant[Integer, Float, Boolean, Enum['false','true','yes','no','y','n',true]] from",),)),
    StringType: Constructor(
        "new_string",
        (("Convertible from", "Formats string_formats?"),),
        {
            "Format": r"Pattern[/^%([\s\[+#0{<(|-]*)([1-9][0-9]*)?(?:\.([0-9]+))?([a-zA-Z])$/]",
            "ContainerFormat": "Struct[{Optional[format] => Format, Optional[separator] => String, Optional[separator2] => String, "
            "Optional[string_formats] => Hash[Type, Format]}]",
            "TypeMap": "Hash[Type, Variant[Format, ContainerFormat]]",
            "Convertible": "Any",
            "Formats": "Variant[Default, String[1], TypeMap]",
        },
    ),
    ArrayType: _ARRAY,
    TupleType: _ARRAY,
    HashType: _HASH,
    StructType: _HASH,
    RegexpType: Constructor("new_float", (("String pattern", "Boolean escape?"),)),  # sic
    TypeType: Constructor("new_type", (("String[1] type_string",),)),
    SensitiveType: Constructor("new_Sensitive", (("Sensitive value",), ("Any value",))),
    SemVerType: Constructor(
        "new_Version",
        (
            ("SemVerPattern str",),
            (
                "PositiveInteger major", "PositiveInteger minor", "PositiveInteger patch", "SemVerQualifier prerelease?",
                "SemVerQualifier build?",
            ),
            ("SemVerHash hash_args",),
        ),
        {
            "PositiveInteger": "Integer[0,default]",
            "SemVerQualifier": r"Pattern[/\A(?<part>[0-9A-Za-z-]+)(?:\.\g<part>)*\Z/]",
            "SemVerPattern": f"Pattern[/{SEMVER}/]",
            "SemVerHash": "Struct[{major => PositiveInteger, minor => PositiveInteger, patch => PositiveInteger, "
            "Optional[prerelease] => SemVerQualifier, Optional[build] => SemVerQualifier}]",
        },
    ),
    SemVerRangeType: Constructor(
        "new_VersionRange",
        (("SemVerRangeString str",), (f"{_BOUND} min", f"{_BOUND} max", "Boolean exclude_max?"), ("SemVerRangeHash hash_args",)),
        {
            "SemVerRangeString": _TEXT,
            "SemVerRangeHash": f"Struct[{{min => {_BOUND}, Optional[max] => {_BOUND}, Optional[exclude_max] => Boolean}}]",
        },
    ),
    TimespanType: Constructor(
        "new_timespan",
        (
            ("Variant[Integer, Float] seconds",),
            ("String[1] string", "Formats format?"),
            (
                "Integer days", "Integer hours", "Integer minutes", "Integer seconds", "Integer milliseconds?", "Integer microseconds?",
                "Integer nanoseconds?",
            ),
            ("Struct[{string => String[1], Optional[format] => Formats}] hash_arg",),
            (
                "Struct[{Optional[negative] => Boolean, Optional[days] => Integer, Optional[hours] => Integer, "
                "Optional[minutes] => Integer, Optional[seconds] => Integer, Optional[milliseconds] => Integer, "
                "Optional[microseconds] => Integer, Optional[nanoseconds] => Integer}] hash_arg",
            ),
        ),
        _FORMATS,
    ),
    TimestampType: Constructor(
        "new_timestamp",
        (
            (),
            ("Variant[Integer, Float] seconds",),
            ("String[1] string", "Formats format?", "String[1] timezone?"),
            ("Struct[{string => String[1], Optional[format] => Formats, Optional[timezone] => String[1]}] hash_arg",),
        ),
        _FORMATS,
    ),
    BinaryType: Constructor(
        "new_Binary",
        (("String str", "Base64Format format?"), ("Array[ByteInteger] byte_array",), ("BinaryArgsHash hash_args",)),
        {
            "ByteInteger": "Integer[0,255]",
            "Base64Format": 'Enum["%b", "%u", "%B", "%s", "%r"]',
            "StringHash": 'Struct[{value => String, "format" => Optional[Base64Format]}]',
            "ArrayHash": "Struct[{value => Array[ByteInteger]}]",
            "BinaryArgsHash": "Variant[StringHash, ArrayHash]",
        },
    ),
    URIType: Constructor(
        "new_error",  # sic
        (
            ("String[1] uri",),
            (
                "Struct[{Optional[scheme] => String[1], Optional[userinfo] => String[1], Optional[host] => String[1], "
                "Optional[port] => Integer[0], Optional[path] => String[1], Optional[query] => String[1], "
                "Optional[fragment] => String[1], Optional[opaque] => String[1]}] hash",
            ),
        ),
    ),
    NotUndefType: Constructor("new_unit", (("Any from",),)),
}  # fmt: skip


def signatures(kind: type[PuppetType]) -> list[Signature]:
    """Return the signatures of `new` for a class of types that is in CONSTRUCTORS."""
    return CONSTRUCTORS[kind].signatures()

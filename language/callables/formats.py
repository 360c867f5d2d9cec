"""
`String.new(value, format)`: conversion of values to text, with a format for each type.

Source: language reference 8.3; layout of `#` in containers as of the reference implementation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cmp_to_key
from typing import Any, Final

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ..types.inference.infer import infer_set
from ..types.kinds.base import ANY
from ..types.kinds.containers import ArrayType, HashType, StructType, TupleType
from ..types.kinds.objects import ObjectType
from ..types.kinds.scalars import BinaryType, EnumType, FloatType, NumericType, PatternType, StringType
from ..types.named.type_sets import TypeSetType
from ..values.core import DEFAULT, Binary, Deferred, Instance, Iterator, PuppetType, Sensitive, Value, entries
from ..values.text import double_quoted, float_text, program, quoted, to_s
from ..values.times import Timespan, Timestamp
from ..values.uris import URI
from ..values.versions import SemVerRange
from .sprintf import Directive, character, format_value

_PATTERN: Final = re.compile(r"%([\s\[+#0{<(|-]*)([1-9][0-9]*)?(?:\.([0-9]+))?([a-zA-Z])", re.ASCII)
_DELIMITERS: Final = {"[": "[]", "{": "{}", "(": "()", "<": "<>", "|": "||"}


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """One format; for containers also the separators of elements and the formats of elements (None: the usual ones)."""

    text: str
    flags: str
    width: int | None
    precision: int | None
    letter: str
    separator: str | None = None
    separator2: str | None = None
    inner: Formats | None = None

    @classmethod
    def parse(cls, text: str) -> ValueFormat:
        match = _PATTERN.fullmatch(text)
        if not match:
            raise EvaluationError(f"The format '{text}' is not a valid format on the form '%<flags><width>.<prec><format>'")
        flags = match[1]
        if len(set(flags)) != len(flags):
            raise EvaluationError(f"The same flag can only be used once, got '{text}'")
        if sum(d in flags for d in _DELIMITERS) > 1:
            raise EvaluationError(f"Only one of the delimiters [ {{ ( < | can be given in the format flags, got '{text}'")
        return cls(text, flags, int(match[2]) if match[2] else None, int(match[3]) if match[3] else None, match[4])

    @property
    def alt(self) -> bool:
        return "#" in self.flags

    @property
    def spec(self) -> Directive:
        return Directive("".join(f for f in self.flags if f in "-+ #0"), self.width, self.precision, self.letter)

    def with_letter(self, letter: str, *, plain: bool = False) -> Directive:
        spec = replace(self.spec, letter=letter)
        return replace(spec, flags=spec.flags.replace("#", "")) if plain else spec

    def delimiters(self, usual: str) -> str:
        for mark, pair in _DELIMITERS.items():
            if mark in self.flags:
                return pair
        return "" if " " in self.flags else usual

    def over(self, lower: ValueFormat | None) -> ValueFormat:
        """Return this format, with missing parts from `lower`."""
        if lower is None:
            return self
        return replace(
            self,
            separator=self.separator if self.separator is not None else lower.separator,
            separator2=self.separator2 if self.separator2 is not None else lower.separator2,
            inner=_merged(lower.inner, self.inner),
        )


Formats = dict[PuppetType, ValueFormat]
_ELEMENTS: Final[Formats] = {ANY: ValueFormat.parse("%p")}
_DEFAULTS: Final[Formats] = {
    ObjectType("Object"): ValueFormat.parse("%p"),
    FloatType(): ValueFormat.parse("%f"),
    NumericType(): ValueFormat.parse("%d"),
    ArrayType(): replace(ValueFormat.parse("%a"), separator=", ", separator2=", ", inner=_ELEMENTS),
    HashType(): replace(ValueFormat.parse("%h"), separator=", ", separator2=" => ", inner=_ELEMENTS),
    BinaryType(): ValueFormat.parse("%B"),
    ANY: ValueFormat.parse("%s"),
}


def _merged(lower: Formats | None, higher: Formats | None) -> Formats | None:
    if not lower or not higher:
        return lower or higher
    lower_only = {t: f for t, f in lower.items() if not any(h != t and h.assignable(t) for h in higher)}
    united = {t: higher[t].over(lower_only.get(t)) if t in higher else lower_only[t] for t in [*lower_only, *higher]}
    return {t: united[t] for t in sorted(united, key=cmp_to_key(_rank))}


_RANKS: Final = ((StructType, 1), (HashType, 2), (TupleType, 3), (ArrayType, 4), (PatternType, 10), (EnumType, 11), (StringType, 12))


def _rank(one: PuppetType, two: PuppetType) -> int:
    """Return the formats ordered so that narrower types come first."""
    if one == two:
        return 0
    narrower, wider = two.assignable(one), one.assignable(two)
    if narrower != wider:
        return -1 if narrower else 1
    first, second = (next((rank for kind, rank in _RANKS if isinstance(t, kind)), 0) for t in (one, two))
    if first == 0 or second == 0:
        return (str(one) > str(two)) - (str(one) < str(two))
    return first - second


def _formats_of(mapping: dict[Any, Any]) -> Formats:
    """Return the formats of a hash that the signature of `String.new` has checked."""
    formats: Formats = {}
    type_: Value
    value: str | dict[str, Any]
    for type_, value in mapping.items():
        if not isinstance(type_, PuppetType):
            raise EvaluationError(f"top level keys in the format hash must be data types, got instance of '{type_.__class__.__name__}'")
        formats[type_] = _container_format(value) if isinstance(value, dict) else ValueFormat.parse(value)
    return formats


def _container_format(options: dict[str, Any]) -> ValueFormat:
    known = ("separator", "separator2", "format", "string_formats")
    if any(key not in known for key in options):
        allowed = ", ".join(f"'{key}'" for key in known)
        raise EvaluationError(f"only {allowed} are allowed in a container format, got {program(dict(options))}")
    inner = options.get("string_formats")
    return replace(
        ValueFormat.parse(options.get("format", "%p")),
        separator=options.get("separator"),
        separator2=options.get("separator2"),
        inner=_formats_of(inner) if inner is not None else None,
    )


def to_string(value: Value, formats: Value = DEFAULT) -> str:
    """
    Return `value` as text.

    Args:
        formats: `default`, a format for the value's own type, or a Hash of types and formats.
    Raises:
        EvaluationError: a format is malformed or not for the type of the value.
    """
    if formats is DEFAULT:
        if value.__class__ is str:
            return str(value)
        return _text(value, _DEFAULTS, _Indent())
    if isinstance(formats, str):
        own = ArrayType() if isinstance(value, list) else HashType() if isinstance(value, dict) else infer_set(value)
        chosen: Formats = {own: ValueFormat.parse(formats)}
    elif isinstance(formats, dict):
        chosen = _formats_of(formats)
    else:
        raise EvaluationError(
            f"string conversion expects a Default value or a Hash of type to format mappings, got a '{formats.__class__.__name__}'"
        )
    return _text(value, _merged(_DEFAULTS, chosen) or _DEFAULTS, _Indent())


@dataclass(frozen=True, slots=True)
class _Indent:
    level: int = 0
    first: bool = True
    on: bool = False

    def breaks(self) -> bool:
        return self.on and self.level > 0 and not self.first

    def inside(self, on: bool = False) -> _Indent:
        return _Indent(self.level + 1, True, on)

    def padding(self) -> str:
        return "  " * self.level


def _format_for(type_: PuppetType, formats: Formats) -> ValueFormat:
    return next((f for t, f in formats.items() if t.assignable(type_)), _PLAIN)


_PLAIN: Final = ValueFormat.parse("%s")


def _refused(kind: str, format_: ValueFormat, expected: str) -> EvaluationError:
    return EvaluationError(
        f"Illegal format '{format_.letter}' specified for value of {kind} type - expected one of the characters '{expected}'"
    )


def _is_container(value: Value) -> bool:
    return isinstance(value, list | dict | Instance)


def _text(value: Value, formats: Formats, indent: _Indent) -> str:
    if value.__class__ is Iterator:
        return _text(list(value), formats, indent)
    format_ = _format_for(infer_set(value), formats)
    if value.__class__ is list:
        return _array(value, format_, formats, indent)
    if value.__class__ is dict:
        return _hash(value, format_, formats, indent)
    if value.__class__ is Instance or value.__class__ is Deferred:
        return _object(value, format_)
    return _single(value, format_)


def _single(value: Value, format_: ValueFormat) -> str:
    if value.__class__ is str:
        return _string(value, format_)
    if value.__class__ is bool:
        return _boolean(value, format_)
    if value.__class__ is int:
        return _integer(value, format_)
    if value.__class__ is float:
        return _float(value, format_)
    if value is None:
        return _undef(format_)
    if value is DEFAULT:
        return _default(format_)
    if value.__class__ is Regexp:
        return _regexp(value, format_)
    if value.__class__ is Binary:
        return _binary(value, format_)
    if isinstance(value, PuppetType):
        return _type(value, format_)
    if value.__class__ is URI:
        return _uri(value, format_)
    if format_.letter == "p":
        if value.__class__ is Timespan or value.__class__ is Timestamp:
            text = f"#<Puppet::Pops::Time::{value.__class__.__name__} @nsecs={value.nanoseconds}>"
        elif value.__class__ is SemVerRange:
            text = value.canonical()
        else:
            text = f"#<{to_s(value)}>" if value.__class__ is Sensitive else to_s(value)
        return format_value(format_.with_letter("s"), text)
    return format_value(format_.spec, value)


def _flagged(format_: ValueFormat, text: str) -> str:
    """Return `text` formatted by width, precision and `-` alone."""
    if "-" in format_.flags or format_.width is not None or format_.precision is not None:
        return format_value(Directive("-" if "-" in format_.flags else "", format_.width, format_.precision, "s"), text)
    return text


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:].lower()


def _string(value: str, format_: ValueFormat) -> str:
    letter = format_.letter
    if letter == "s":
        return format_value(format_.spec, value)
    if letter == "p":
        return _flagged(format_, double_quoted(value) if format_.alt else quoted(value))
    changes: dict[str, Callable[[str], str]] = {
        "c": _capitalized,
        "C": lambda text: "::".join(map(_capitalized, text.split("::"))),
        "u": str.upper,
        "d": str.lower,
        "t": lambda text: text.strip(" \t\n\v\f\r\0"),
    }
    if letter not in changes:
        raise _refused("String", format_, "cCudspt")
    changed = changes[letter](value)
    return _flagged(format_, quoted(changed)) if format_.alt else format_value(format_.with_letter("s"), changed)


def _boolean(value: bool, format_: ValueFormat) -> str:
    letter = format_.letter
    words = {"t": ("true", "false"), "T": ("True", "False"), "y": ("yes", "no"), "Y": ("Yes", "No")}
    if letter in words:
        word = words[letter][0 if value else 1]
        return _flagged(format_, word[0] if format_.alt else word)
    if letter in "dxXobB":
        return _integer(int(value), format_)
    if letter in "eEfgGaA":
        return _float(float(value), format_)
    if letter in "sp":
        return _flagged(format_, "true" if value else "false")
    raise _refused("Boolean", format_, "tTyYdxXobBeEfgGaAsp")


def _integer(value: int, format_: ValueFormat) -> str:
    letter = format_.letter
    if letter in "dxXobBp":
        return format_value(format_.spec, value)
    if letter in "eEfgGaA":
        return format_value(format_.spec, float(value))
    if letter == "c":
        char = character(value, "pack(U): value out of range")
        return format_value(format_.with_letter("s", plain=True), f'"{char}"' if format_.alt else char)
    if letter == "s":
        return format_value(format_.with_letter("s", plain=True), f'"{value}"' if format_.alt else str(value))
    raise _refused("Integer", format_, "dxXobBeEfgGaAspc")


def _float(value: float, format_: ValueFormat) -> str:
    letter = format_.letter
    if letter in "dxXobB":
        return format_value(format_.spec, int(value))
    if letter in "eEfgGaAp":
        return format_value(format_.spec, value)
    if letter == "s":
        text = float_text(value)
        return format_value(format_.with_letter("s", plain=True), f'"{text}"' if format_.alt else text)
    raise _refused("Float", format_, "dxXobBeEfgGaAsp")


def _undef(format_: ValueFormat) -> str:
    texts = {"n": ("nil", "null"), "u": ("undef", "undefined"), "v": ("n/a", "n/a"), "V": ("N/A", "N/A"), "s": ("", '""')}
    texts["p"] = ("undef", '"undef"')
    if format_.letter in "dxXobBeEfgGaA":
        return _flagged(format_, "NaN")
    if format_.letter not in texts:
        raise _refused("Undef", format_, "nudxXobBeEfgGaAvVsp")
    return _flagged(format_, texts[format_.letter][1 if format_.alt else 0])


def _default(format_: ValueFormat) -> str:
    if format_.letter not in "dDsp":
        raise _refused("Default", format_, "dDsp")
    word = "Default" if format_.letter == "D" else "default"
    return _flagged(format_, f'"{word}"' if format_.alt else word)


def _regexp(value: Regexp, format_: ValueFormat) -> str:
    if format_.letter == "p":
        return format_value(format_.with_letter("s"), str(value))
    if format_.letter == "s":
        return format_value(format_.spec, quoted(value.flagged_source) if format_.alt else value.flagged_source)
    raise _refused("Regexp", format_, "sp")


def _binary(value: Binary, format_: ValueFormat) -> str:
    import base64

    letter = format_.letter
    if letter == "p":
        inner = format_value(format_.with_letter("s"), str(value))
        return f'Binary("{inner}")'
    if letter == "s":
        try:
            text = value.data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise EvaluationError(f'"\\x{value.data[error.start]:02X}" from ASCII-8BIT to UTF-8') from error
    elif letter in "bBu":
        strict = base64.b64encode(value.data).decode("ascii")
        lines = "".join(strict[i : i + 60] + "\n" for i in range(0, len(strict), 60))
        text = {"b": lines, "B": strict, "u": base64.urlsafe_b64encode(value.data).decode("ascii")}[letter]
    elif letter in "tT":
        text = "Binary" if letter == "t" else "BINARY"
    else:
        raise _refused("Binary", format_, "bButTsp")
    return format_value(format_.with_letter("p" if format_.alt else "s"), text)


def _type(value: PuppetType, format_: ValueFormat) -> str:
    text = value.definition_text() if isinstance(value, ObjectType | TypeSetType) else str(value)
    if format_.letter == "s":
        return format_value(format_.spec, f'"{text}"' if format_.alt else text)
    if format_.letter == "p":
        return format_value(format_.with_letter("s"), text)
    raise _refused("Type", format_, "sp")


def _uri(value: URI, format_: ValueFormat) -> str:
    if format_.letter == "p":
        return program(value)
    if format_.letter == "s":
        return format_value(format_.spec, quoted(str(value)) if format_.alt else str(value))
    raise _refused("URI", format_, "sp")


def _object(value: Value, format_: ValueFormat) -> str:
    if format_.letter in "psq":
        return program(value)
    raise _refused("Object", format_, "spq")


# --- containers ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Line:
    """The text under construction, with its indentation."""

    parts: list[str] = field(default_factory=list)

    def text(self) -> str:
        return "".join(self.parts)

    def strip_end(self) -> None:
        self.parts = [self.text().rstrip()]


def _array(value: Sequence[Value], format_: ValueFormat, formats: Formats, indent: _Indent) -> str:
    if format_.letter not in "asp":
        raise _refused("Array", format_, "asp")
    separator = format_.separator if format_.separator is not None else ", "
    inner = format_.inner if format_.inner is not None else _ELEMENTS
    delimiters = format_.delimiters("[]")
    indent = replace(indent, on=format_.alt or indent.on)
    child = indent.inside(format_.alt)
    below = replace(child, first=False)
    texts = [_text(item, formats if _is_container(item) else inner, below) for item in value]
    line = _Line(["\n" + indent.padding()] if indent.breaks() else [])
    line.parts.append(delimiters[:1])
    wide = format_.alt and format_.width is not None and _widest(value, texts) > format_.width
    for index, (item, text) in enumerate(zip(value, texts, strict=True)):
        nested = isinstance(item, list | dict)
        if index == 0:
            if wide and not nested:
                line.parts.append(" ")
        else:
            line.parts.append(separator)
            after_nested = format_.alt and isinstance(value[index - 1], list | dict) and not nested
            if (wide and not nested) or after_nested:
                if not line.text().endswith("\n"):
                    line.strip_end()
                line.parts.append("\n" + child.padding())
        if text.startswith("\n") and line.text().endswith(" "):
            line.strip_end()
        line.parts.append(text)
    line.parts.append(delimiters[1:])
    return line.text()


def _widest(value: Sequence[Value], texts: Sequence[str]) -> int:
    """Return the length of the longest run of elements that are not containers."""
    runs = [0]
    for item, text in zip(value, texts, strict=True):
        if isinstance(item, list | dict):
            runs.append(0)
        else:
            runs[-1] += len(text)
    return max(runs)


def _hash(value: Mapping[Value, Value], format_: ValueFormat, formats: Formats, indent: _Indent) -> str:
    if format_.letter == "a":
        pairs = [[key, item] for key, item in entries(value)]
        return _text(pairs, formats, indent)
    if format_.letter not in "hsp":
        raise _refused("Hash", format_, "hasp")
    separator = format_.separator if format_.separator is not None else ", "
    between = format_.separator2 if format_.separator2 is not None else " => "
    inner = format_.inner if format_.inner is not None else _ELEMENTS
    if format_.alt:
        separator = (separator if separator.endswith("\n") else separator.rstrip()) + "\n"
    delimiters = format_.delimiters("{}")
    indent = replace(indent, on=format_.alt or indent.on)
    child = indent.inside()
    padding, line_break = (child.padding(), "\n") if format_.alt else ("", "")
    shown = [
        padding
        + _text(key, formats if _is_container(key) else inner, child)
        + between
        + _text(item, formats if _is_container(item) else inner, child)
        for key, item in entries(value)
    ]
    head = "\n" + indent.padding() if indent.breaks() else ""
    tail = line_break + (indent.padding() if format_.alt else "")
    return head + delimiters[:1] + line_break + separator.join(shown) + tail + delimiters[1:]

"""Ruby's `format`, on which `sprintf` and the formats of `String.new` are built."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from shared.errors import EvaluationError

from ..values.core import Value
from ..values.digits import parse_integer
from ..values.labels import ruby_class
from ..values.text import float_text, inspect, inspect_bare
from ..values.times import SECOND, Timespan, Timestamp

_SPEC: Final = re.compile(
    r"%(?P<flags>(?:[-+ #0]|\d+\$)*)(?:<(?P<named>[^>]*)>)?(?P<flags2>(?:[-+ #0])*)(?P<width>\*|[1-9]\d*)?"
    r"(?:\.(?P<precision>\*|\d*))?(?:<(?P<named2>[^>]*)>)?(?P<letter>[a-zA-Z%{\n\0]|$)"
)
_MAX_WIDTH: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Directive:
    """One directive of a format: flags out of `-+ #0`, width, precision and letter."""

    flags: str
    width: int | None
    precision: int | None
    letter: str

    def __post_init__(self) -> None:
        if max(self.width or 0, self.precision or 0) > _MAX_WIDTH:
            raise EvaluationError("width too big", hint=f"Widths and precisions up to {_MAX_WIDTH} are formatted.")

    def padded(self, text: str) -> str:
        if self.width is None:
            return text
        return text.ljust(self.width) if "-" in self.flags else text.rjust(self.width)


class _Arguments:
    """The arguments of a format, taken in order, by number or by name; a format uses one of these ways only."""

    def __init__(self, values: Sequence[Value]) -> None:
        self.values = values
        self.next = 0
        self.way = ""

    def _go(self, way: str, refusal: str, *others: str) -> None:
        """Record the kind of an argument; raise EvaluationError when one of the `others` was used before."""
        if self.way in others:
            shown = f"unnumbered({self.next})" if self.way == "unnumbered" else self.way
            raise EvaluationError(f"{refusal} {shown}")
        self.way = way

    def take(self) -> Value:
        self._go("unnumbered", f"unnumbered({self.next + 1}) mixed with", "numbered", "named")
        if self.next >= len(self.values):
            raise EvaluationError("too few arguments")
        self.next += 1
        return self.values[self.next - 1]

    def at(self, number: int) -> Value:
        self._go("numbered", f"numbered({number}) after", "unnumbered", "named")
        if not 1 <= number <= len(self.values):
            raise EvaluationError("too few arguments")
        return self.values[number - 1]

    def named(self, name: str, mark: str) -> Value:
        self._go("named", f"named{mark[0]}{name}{mark[1]} after", "unnumbered", "numbered")
        hash_ = self.values[0] if len(self.values) == 1 else None
        if not isinstance(hash_, dict):
            raise EvaluationError("one hash required")
        if name not in hash_:
            raise EvaluationError(f"key{mark[0]}{name}{mark[1]} not found")
        value: Value = hash_[name]
        return value


def format_text(format_: str, values: Sequence[Value]) -> str:
    """
    Return `format_` with its directives replaced by the values.

    Raises:
        EvaluationError: there are too few arguments, a directive is malformed or a value does not convert; the message is Ruby's.
    """
    arguments = _Arguments(values)
    out = []
    at = 0
    while True:
        start = format_.find("%", at)
        if start < 0:
            out.append(format_[at:])
            return "".join(out)
        out.append(format_[at:start])
        match = _SPEC.match(format_, start)
        if not match or not match["letter"]:
            if start + 1 >= len(format_):
                raise EvaluationError("incomplete format specifier; use %% (double %) instead")
            raise EvaluationError(f"malformed format string - %{format_[start + 1]}")
        at = match.end()
        if match["letter"] == "{":
            end = format_.find("}", at)
            if end < 0:
                raise EvaluationError("malformed name - unmatched parenthesis")
            spec = _spec(match, arguments)
            out.append(spec.padded(inspect_bare(arguments.named(format_[at:end], "{}"))))
            at = end + 1
        elif match["letter"] in "%\n\0":
            if match["letter"] == "%" and len(match[0]) > 2:
                raise EvaluationError("invalid format character - %")
            out.append("%" if match["letter"] == "%" else "%" + match["letter"])
        else:
            out.append(_directive(match, arguments))


def _spec(match: re.Match[str], arguments: _Arguments) -> Directive:
    flags = re.sub(r"\d+\$", "", match["flags"]) + match["flags2"]
    width = match["width"]
    number: int | None = None
    if width == "*":
        number = _small(to_integer(arguments.take()))
        if number < 0:
            flags, number = flags + "-", -number
    elif width:
        number = int(width)
    precision = match["precision"]
    places: int | None = None
    if precision is not None:
        places = _small(to_integer(arguments.take())) if precision == "*" else int(precision or 0)
        places = None if places < 0 else places
    return Directive(flags, number, places, match["letter"])


def _directive(match: re.Match[str], arguments: _Arguments) -> str:
    spec = _spec(match, arguments)
    name = match["named"] if match["named"] is not None else match["named2"]
    position = re.search(r"(\d+)\$", match["flags"])
    if name is not None:
        value = arguments.named(name, "<>")
    elif position:
        value = arguments.at(int(position[1]))
    else:
        value = arguments.take()
    return format_value(spec, value)


_INT: Final = range(-(2**31), 2**31)
_CODE_POINTS: Final = range(0x110000)
_SURROGATES: Final = range(0xD800, 0xE000)


def character(number: int, refusal: str = "invalid character") -> str:
    """
    Return the character of a code point.

    Raises:
        EvaluationError: no text can hold it; `refusal` says so.
    """
    if number not in _CODE_POINTS or number in _SURROGATES:
        raise EvaluationError(refusal)
    return chr(number)


def _small(number: int) -> int:
    """Return a number as C's int; raise EvaluationError when it is out of range."""
    if number not in _INT:
        raise EvaluationError(f"integer {number} too {'big' if number > 0 else 'small'} to convert to `int'")
    return number


def _format_character(number: int) -> str:
    return character(_small(number))


def format_value(spec: Directive, value: Value) -> str:
    """Return one value formatted by one directive."""
    letter = spec.letter
    if letter in "sp":
        text = inspect_bare(value) if letter == "s" else inspect(value)
        return spec.padded(text if spec.precision is None else text[: spec.precision])
    if letter == "c":
        text = value if isinstance(value, str) else _format_character(to_integer(value))
        if len(text) != 1:
            raise EvaluationError("%c requires a character")
        return spec.padded(text)
    if letter in "diu":
        return _integer(spec, to_integer(value))
    if letter in "xXobB":
        return _radix(spec, to_integer(value))
    if letter == "f" and value.__class__ is int:  # exact, as Ruby writes it, at any size
        places = 6 if spec.precision is None else spec.precision
        return _signed(spec, value < 0, "", f"{abs(value)}.{'0' * places}" if places else str(abs(value)))
    if letter in "fFeEgGaA":
        return _float(spec, to_float(value))
    raise EvaluationError(f"malformed format string - %{letter}")


def _signed(spec: Directive, negative: bool, prefix: str, digits: str) -> str:
    """Return sign, prefix and digits, filled with zeroes or blanks to the width."""
    sign = "-" if negative else "+" if "+" in spec.flags else " " if " " in spec.flags else ""
    if spec.width is not None and "0" in spec.flags and "-" not in spec.flags and (spec.precision is None or spec.letter in "fFeEgGaA"):
        digits = digits.rjust(spec.width - len(sign) - len(prefix), "0")
    return spec.padded(sign + prefix + digits)


def _integer(spec: Directive, number: int) -> str:
    digits = str(abs(number))
    if spec.precision is not None:
        digits = digits.rjust(spec.precision, "0")
    return _signed(spec, number < 0, "", digits)


_RADIX: Final = {"x": (16, "x"), "X": (16, "x"), "o": (8, "o"), "b": (2, "b"), "B": (2, "b")}


_PREFIXES: Final = {"x": "0x", "X": "0X", "o": "0", "b": "0b", "B": "0B"}
_OCTAL: Final = 8


def _radix(spec: Directive, number: int) -> str:
    base, code = _RADIX[spec.letter]
    prefix = _PREFIXES[spec.letter] if "#" in spec.flags and number else ""
    if number >= 0 or "+" in spec.flags or " " in spec.flags:
        digits = f"{abs(number):{code}}"
        if spec.precision is not None:
            digits = digits.rjust(spec.precision, "0")
        if base == _OCTAL and digits[0] == "0":
            prefix = ""  # the digits say already that they are octal
        return _signed(spec, number < 0, prefix, digits.upper() if spec.letter == "X" else digits)
    # Two's complement: endless leading digits, shown as `..` and one of them.
    top = {16: "f", 8: "7", 2: "1"}[base]
    bits = {16: 4, 8: 3, 2: 1}[base]
    count = (number.bit_length() // bits) + 1
    digits = f"{number & ((1 << (bits * count)) - 1):{code}}".lstrip(top)
    digits = top + digits
    if base == _OCTAL:
        prefix = ""
    wanted = spec.precision if spec.precision is not None else 0
    if "0" in spec.flags and "-" not in spec.flags and spec.width is not None and spec.precision is None:
        wanted = spec.width - len(prefix)
    text = ".." + digits.rjust(wanted - 2, top)
    return spec.padded(prefix + (text.upper() if spec.letter == "X" else text))


def _float(spec: Directive, number: float) -> str:
    if not math.isfinite(number):
        text = "NaN" if math.isnan(number) else "Inf"
        plain = Directive(spec.flags.replace("0", ""), spec.width, None, "s")
        return _signed(plain, number < 0, "", text)
    letter = spec.letter
    if letter in "aA":
        digits = _hexadecimal(abs(number), spec.precision, "#" in spec.flags)
        return _signed(spec, math.copysign(1, number) < 0, "0x" if letter == "a" else "0X", digits if letter == "a" else digits.upper())
    places = 6 if spec.precision is None else spec.precision
    alternate = "#" if "#" in spec.flags else ""
    digits = f"{_rounded(abs(number), places, letter):{alternate}.{places}{letter}}"
    return _signed(spec, math.copysign(1, number) < 0, "", digits)


_HEX_PLACES: Final = 13
"""The number of hexadecimal digits behind the point that hold the whole mantissa of a float."""


def _hexadecimal(number: float, precision: int | None, has_point: bool) -> str:
    """Return `1.8p+0` for 1.5, rounded half to even; without a precision as many places as are needed."""
    fraction, exponent = math.frexp(number)
    mantissa = int(math.ldexp(fraction, 4 * _HEX_PLACES + 1))
    exponent = exponent - 1 if number else 0
    places = _HEX_PLACES if precision is None else precision
    if places < _HEX_PLACES:
        shift = 4 * (_HEX_PLACES - places)
        mantissa, rest = divmod(mantissa, 1 << shift)
        half = 1 << (shift - 1)
        mantissa += rest > half or (rest == half and mantissa % 2 == 1)
        if mantissa >> (4 * places) > 1:
            mantissa, exponent = mantissa >> 1, exponent + 1
    else:
        mantissa <<= 4 * (places - _HEX_PLACES)
    digits = f"{mantissa:0{places + 1}x}"
    behind = digits[1:].rstrip("0") if precision is None else digits[1:]
    return f"{digits[0]}{'.' if behind or has_point else ''}{behind}p{exponent:+d}"


def _rounded(number: float, places: int, letter: str) -> float:
    """
    Return `number` rounded as Ruby rounds: half to even, by the shortest decimal form (12.345 is 12.34, 0.35 is 0.4).

    Python rounds the exact binary value; so does Ruby when only the digit behind the last place remains.
    """
    shortest = Decimal(repr(number))
    first = shortest.adjusted() if number else 0
    last = -places if letter in "fF" else first - (places if letter in "eE" else max(places, 1) - 1)
    if not number or first < last or places > 17:
        return number
    exponent = shortest.as_tuple().exponent
    if not isinstance(exponent, int) or exponent >= last:
        return number
    return float(shortest.quantize(Decimal(1).scaleb(last), rounding=ROUND_HALF_EVEN))


_INTEGER: Final = re.compile(
    r"\s*([+-]?)(?:(0[xX])([0-9a-fA-F]+(?:_[0-9a-fA-F]+)*)|(0[bB])([01]+(?:_[01]+)*)|(0[oO]?)([0-7]+(?:_[0-7]+)*)|(?:0[dD])?(\d+(?:_\d+)*))\s*"
)


def to_integer(value: Value, base: int | None = None) -> int:
    """Return the result of Ruby's strict `Integer(value, base)`; raise EvaluationError with Ruby's message."""
    if value.__class__ is int:
        return value
    if value.__class__ is float:
        if not math.isfinite(value):
            raise EvaluationError("NaN" if math.isnan(value) else float_text(value))
        return int(value)
    if value.__class__ is str:
        number = _integer_of(value, base)
        if number is None:
            raise EvaluationError(f"invalid value for Integer(): {inspect(value)}")
        return number
    if value is None:
        raise EvaluationError("can't convert nil into Integer")
    if value.__class__ is Timespan or value.__class__ is Timestamp:
        return int(value.nanoseconds // SECOND)
    raise EvaluationError(f"can't convert {inspect(value) if value.__class__ is bool else ruby_class(value)} into Integer")


def _integer_of(text: str, base: int | None) -> int | None:
    match = _INTEGER.fullmatch(text)
    if base is None:
        if not match:
            return None
        sign, _, hexadecimal, _, binary, _, octal, decimal = match.groups()
        digits, radix = next((d, r) for d, r in ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10)) if d is not None)
        if decimal is not None and len(decimal) > 1 and decimal[0] == "0":
            return None
        number = parse_integer(digits.replace("_", ""), radix)
        return -number if sign == "-" else number
    prefixes = {16: "0[xX]", 2: "0[bB]", 8: "0[oO]?", 10: "0[dD]"}
    packed = re.fullmatch(rf"\s*([+-]?)(?:{prefixes.get(base, '(?!)')})?([0-9a-zA-Z]+(?:_[0-9a-zA-Z]+)*)\s*", text, re.ASCII)
    if not packed:
        return None
    try:
        return parse_integer(packed[1] + packed[2].replace("_", ""), base)
    except ValueError:
        return None


def to_float(value: Value) -> float:
    """Return the result of Ruby's strict `Float(value)`; raise EvaluationError with Ruby's message."""
    if value.__class__ is int or value.__class__ is float:
        return float(value)
    if value.__class__ is str:
        if re.fullmatch(r"\s*[+-]?\d+(_\d+)*(\.\d+(_\d+)*)?([eE][+-]?\d+)?\s*", value, re.ASCII):
            return float(value)
        if re.fullmatch(r"\s*[+-]?0[xX][0-9a-fA-F]+\s*", value):
            return float(int(value, 16))
        raise EvaluationError(f"invalid value for Float(): {inspect(value)}")
    if value is None:
        raise EvaluationError("can't convert nil into Float")
    if value.__class__ is Timespan or value.__class__ is Timestamp:
        return float(value.nanoseconds / SECOND)
    raise EvaluationError(f"can't convert {inspect(value) if value.__class__ is bool else ruby_class(value)} into Float")

"""
Timespan and Timestamp: nanoseconds in an int, with the formats of the language.

Python's datetime has no nanoseconds; only its calendar arithmetic is used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, datetime, timedelta, timezone
from functools import lru_cache, total_ordering
from typing import TypeAlias

import regex

from shared.errors import EvaluationError
from shared.regexps import match_whole

from .digits import parse_integer

SECOND = 1_000_000_000
_UNITS = {"D": 86400 * SECOND, "H": 3600 * SECOND, "M": 60 * SECOND, "S": SECOND, "L": 1_000_000, "N": 1}
_OUT_OF_RANGE = f"is out of range: Timestamps are supported from the year 1 to {MAXYEAR}"
_MODULO = {"H": 24, "M": 60, "S": 60, "L": 1000, "N": SECOND}
_WIDTHS = {"D": 1, "H": 2, "M": 2, "S": 2, "L": 3, "N": 9}

TIMESPAN_FORMATS = ("%D-%H:%M:%S.%-N", "%H:%M:%S.%-N", "%M:%S.%-N", "%S.%-N", "%D-%H:%M:%S", "%H:%M:%S", "%D-%H:%M", "%S")
TIMESTAMP_FORMATS_WITHOUT_ZONE = ("%FT%T.%N", "%FT%T", "%F %T.%N", "%F %T", "%F")
TIMESTAMP_FORMATS = ("%FT%T.%N %Z", "%FT%T %Z", "%F %T.%N %Z", "%F %T %Z", "%F %Z", *TIMESTAMP_FORMATS_WITHOUT_ZONE)


@dataclass(frozen=True, slots=True)
class _Field:
    """
    A directive of a format, like `%-3N`.

    Attributes:
        pad: the character that fills it to its width; empty for none.
        total: whether it is the largest unit of the format, which counts all of the duration.
    """

    letter: str
    pad: str
    width: int | None
    total: bool

    def text(self, nanoseconds: int) -> str:
        letter = self.letter
        width = self.width if self.width is not None else _WIDTHS[letter]
        unit, modulo = _UNITS[letter], _MODULO.get(letter)
        if letter == "N" and width < 9:
            unit, modulo = 10 ** (9 - width), 10**width
        value = nanoseconds // unit
        if modulo is not None and not self.total:
            value %= modulo
        if letter in "LN":
            if not self.total and self.pad != "0":
                value = int(str(value).rstrip("0") or "0") if value else 0
            return str(value) if not self.pad else str(value).ljust(width)
        return str(value).rjust(width, self.pad) if self.pad else str(value)

    def pattern(self) -> str:
        width = self.width if self.width is not None else _WIDTHS[self.letter]
        if self.width is None:
            if self.pad == " ":
                return r"\s*([0-9]+)" if self.total else rf"([0-9\s]{{1,{width}}})"
            return "([0-9]+)" if self.total else f"([0-9]{{1,{width}}})"
        return {"": f"([0-9]{{1,{width}}})", "0": f"([0-9]{{{width}}})"}.get(self.pad, rf"([0-9\s]{{{width}}})")

    def nanoseconds(self, text: str) -> int:
        if self.letter in "LN":
            if self.total:
                raise EvaluationError(
                    "Format specifiers %L and %N denotes fractions and must be used together with a specifier of higher magnitude"
                )
            return parse_integer(text) * int(10 ** max(0, 9 - len(text)))
        return parse_integer(text) * _UNITS[self.letter]


_MAX_DIGITS = 6


def _check_width(width: str | None) -> None:
    if width is not None and len(width) > _MAX_DIGITS:
        raise EvaluationError("width too big", hint=f"Widths of up to {_MAX_DIGITS} digits are formatted.")


_Segments: TypeAlias = "tuple[str | _Field, ...]"


@lru_cache(maxsize=256)
def _segments(format_: str) -> _Segments:
    out: list[str | _Field] = []
    order = "NLSMHD"
    at = 0
    for match in re.finditer(r"%(?:([-_]?)(0?)(\d*)([DHMSLN])|(%)|)", format_):
        if match.start() < at:
            continue
        out.append(format_[at : match.start()])
        at = match.end()
        _check_width(match[3])
        if match[5]:
            out.append("%")
        elif match[4]:
            pad = {"-": "", "_": " "}.get(match[1], "0")
            if match[2] and match[1] == "_":
                pad = " "
            out.append(_Field(match[4], pad, int(match[3]) if match[3] else None, False))
        else:
            stop = re.compile(r"%[-_]?\d*").match(format_, match.start())
            end = stop.end() if stop else match.end()
            raise EvaluationError(
                f"Bad format specifier '{format_[match.start() : end]}' in '{format_}', at position {min(end, len(format_) - 1)}"
            )
    out.append(format_[at:])
    highest = max((order.index(s.letter) for s in out if isinstance(s, _Field)), default=-1)
    for index, segment in enumerate(out):
        if isinstance(segment, _Field) and order.index(segment.letter) == highest:
            out[index] = _Field(segment.letter, segment.pad, segment.width, True)
            break
    return tuple(segment for segment in out if segment != "")


@total_ordering
@dataclass(frozen=True, slots=True)
class Timespan:
    """A duration, which may be negative."""

    nanoseconds: int

    @classmethod
    def seconds(cls, seconds: int | float) -> Timespan:
        return cls(int(seconds * SECOND))

    @classmethod
    def of(
        cls,
        days: int = 0,
        hours: int = 0,
        minutes: int = 0,
        seconds: int = 0,
        milliseconds: int = 0,
        microseconds: int = 0,
        nanoseconds: int = 0,
        *,
        negative: bool = False,
    ) -> Timespan:
        total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        total = ((total * 1000 + milliseconds) * 1000 + microseconds) * 1000 + nanoseconds
        return cls(-total if negative else total)

    @classmethod
    def parse(cls, text: str, formats: str | tuple[str, ...] | list[str] = TIMESPAN_FORMATS) -> Timespan:
        """Return the duration that `text` has by the first of `formats` that fits; raise EvaluationError when none does."""
        if isinstance(formats, str):
            return cls._parsed(text, formats)
        for format_ in formats:
            try:
                return cls._parsed(text, format_)
            except EvaluationError:
                continue
        raise EvaluationError(f"Unable to parse '{text}' using any of the formats {', '.join(formats)}")

    @classmethod
    def _parsed(cls, text: str, format_: str) -> Timespan:
        segments = _segments(format_)
        pattern = "-?" + "".join(re.escape(s) if isinstance(s, str) else s.pattern() for s in segments)
        match = match_whole(regex.compile(pattern, regex.ASCII), text)
        problem = EvaluationError(f"Unable to parse '{text}' using format '{format_}'")
        if not match:
            raise problem
        total = 0
        for segment, group in zip((s for s in segments if isinstance(s, _Field)), match.groups(), strict=True):
            digits = group.lstrip()
            if not digits.isdigit():
                raise problem
            total += segment.nanoseconds(digits)
        return cls(-total if text.startswith("-") else total)

    def format(self, format_: str) -> str:
        size = abs(self.nanoseconds)
        sign = "-" if self.nanoseconds < 0 else ""
        return sign + "".join(s if isinstance(s, str) else s.text(size) for s in _segments(format_))

    def __lt__(self, other: Timespan) -> bool:
        return self.nanoseconds < other.nanoseconds

    def __str__(self) -> str:
        return self.format(TIMESPAN_FORMATS[0])


@total_ordering
@dataclass(frozen=True, slots=True)
class Timestamp:
    """A point in time, as nanoseconds since 1970 in UTC."""

    nanoseconds: int

    @classmethod
    def parse(cls, text: str, formats: str | list[str] | tuple[str, ...] | None = None, zone: str | None = None) -> Timestamp:
        """
        Read `text` by the first fitting format; `zone` holds when the text names none (and then it may not name one).

        Raises:
            EvaluationError: nothing fits.
        """
        if formats is None:
            formats = TIMESTAMP_FORMATS_WITHOUT_ZONE if zone else TIMESTAMP_FORMATS
        if isinstance(formats, str):
            parts = _strptime(text, formats)
            if parts is None:
                raise EvaluationError(f"Unable to parse '{text}' using format '{formats}'")
            if zone and parts.zone is not None:
                raise EvaluationError(
                    "Using a Timezone designator in format specification is mutually exclusive to providing an explicit timezone argument"
                )
        else:
            candidates = (_strptime(text, format_) for format_ in formats)
            parts = next((p for p in candidates if p is not None and not (zone and p.zone is not None)), None)
            if parts is None:
                raise EvaluationError(f"Unable to parse '{text}' using any of the formats {', '.join(formats)}")
        return cls(parts.nanoseconds(utc_offset(zone) if zone else None))

    def format(self, format_: str, zone: str | None = None) -> str:
        return _strftime(self.nanoseconds, format_, utc_offset(zone) if zone else None)

    def __lt__(self, other: Timestamp) -> bool:
        return self.nanoseconds < other.nanoseconds

    def __str__(self) -> str:
        return self.format("%FT%T.%N %Z")


_ZONES = {
    "utc": 0, "gmt": 0, "z": 0, "ut": 0, "wet": 0, "west": 1, "bst": 1, "cet": 1, "met": 1, "cest": 2, "mest": 2, "eet": 2, "eest": 3,
    "msk": 3, "msd": 4, "ist": 5.5, "jst": 9, "kst": 9, "nst": -3.5, "ndt": -2.5, "ast": -4, "adt": -3, "est": -5, "edt": -4, "cst": -6,
    "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7, "akst": -9, "akdt": -8, "hst": -10, "hadt": -9, "hast": -10,
    "nzst": 12, "nzdt": 13, "aest": 10, "aedt": 11, "acst": 9.5, "awst": 8, "sast": 2,
}  # fmt: skip


def utc_offset(zone: str) -> int:
    """Return the seconds east of UTC of `+02:00`, `CEST`, `GMT+3` or `current`; raise EvaluationError for any other name."""
    if zone.lower() == "current":
        local = datetime.now().astimezone().utcoffset()
        return int(local.total_seconds()) if local is not None else 0
    offset = _zone_offset(zone)
    if offset is None:
        raise EvaluationError(f"Illegal timezone '{zone}'")
    return offset


def _zone_offset(zone: str) -> int | None:
    name = re.sub(r"\s+(standard|daylight)\s+time$", "", zone.strip(), flags=re.IGNORECASE).lower()
    if name in _ZONES:
        return int(_ZONES[name] * 3600)
    match = re.fullmatch(r"(?:gmt|utc)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", name)
    if not match:
        return None
    size = int(match[2]) * 3600 + int(match[3] or 0) * 60 + int(match[4] or 0)
    return -size if match[1] == "-" else size


Time: TypeAlias = Timespan | Timestamp


@dataclass(slots=True)
class _Parts:
    year: int | None = None
    month: int | None = None
    day: int | None = None
    yday: int | None = None
    hour: int = 0
    minute: int = 0
    second: int = 0
    fraction: int = 0
    afternoon: bool | None = None
    epoch: int | None = None
    zone: str | None = None

    def nanoseconds(self, offset: int | None) -> int:
        if self.epoch is not None:
            return self.epoch + self.fraction
        hour = self.hour if self.afternoon is None else self.hour % 12 + (12 if self.afternoon else 0)
        try:
            moment = datetime(self.year if self.year is not None else 1970, self.month or 1, 1, tzinfo=UTC)
            # As Ruby's Time.utc: the 30th of February is the 1st or 2nd of March.
            moment += timedelta(days=(self.yday or self.day or 1) - 1, hours=hour, minutes=self.minute, seconds=self.second)
        except (ValueError, OverflowError) as error:
            is_supported = self.year is None or 1 <= self.year <= MAXYEAR
            raise EvaluationError("argument out of range" if is_supported else f"the year {self.year} {_OUT_OF_RANGE}") from error
        if offset is None and self.zone is not None:
            offset = _zone_offset(self.zone)
        days = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
        return (days - (offset or 0)) * SECOND + self.fraction


_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COMPOSITES = {
    "F": "%Y-%m-%d", "T": "%H:%M:%S", "X": "%H:%M:%S", "D": "%m/%d/%y", "x": "%m/%d/%y", "R": "%H:%M", "r": "%I:%M:%S %p",
    "c": "%a %b %e %H:%M:%S %Y", "v": "%e-%^b-%Y",
}  # fmt: skip
_READ = {
    "Y": r"([+-]?\d+)", "m": r"(\d{1,2})", "d": r"\s?(\d{1,2})", "e": r"\s?(\d{1,2})", "H": r"\s?(\d{1,2})", "k": r"\s?(\d{1,2})",
    "I": r"\s?(\d{1,2})", "l": r"\s?(\d{1,2})", "M": r"(\d{1,2})", "S": r"(\d{1,2})", "L": r"(\d{1,3})", "N": r"(\d+)", "j": r"(\d{1,3})",
    "y": r"(\d{1,2})", "p": r"([ap]\.?m\.?)", "P": r"([ap]\.?m\.?)", "s": r"(-?\d+)", "Q": r"(-?\d+)",
    "b": r"([a-z]{3,9})", "B": r"([a-z]{3,9})", "h": r"([a-z]{3,9})", "a": r"([a-z]{3,9})", "A": r"([a-z]{3,9})",
    "Z": r"((?:gmt|utc?)?[-+]\d+(?:[,.:]\d+(?::\d+)?)?|[a-z][a-z.\s]*?(?:standard|daylight)\s+time\b|[a-z]+(?:\s+dst)?\b)",
    "z": r"((?:gmt|utc?)?[-+]\d+(?:[,.:]\d+(?::\d+)?)?|[a-z]+(?:\s+dst)?\b)",
    "u": r"(\d)", "w": r"(\d)", "n": r"\s+()", "t": r"\s+()", "%": "(%)",
}  # fmt: skip


@lru_cache(maxsize=256)
def _reader(format_: str) -> tuple[regex.Pattern[str], str]:
    out, letters = [], []
    for literal, letter in re.findall(r"([^%]+)|%[-0^#_:]*(?:\d+)?([a-zA-Z%+])", _expanded(format_)):
        if literal:
            out.append(re.sub(r"(?:\\ |\s)+", r"\\s*", re.escape(literal)))
        elif letter in _READ:
            out.append(_READ[letter])
            letters.append(letter)
        else:
            raise EvaluationError(f"Bad format specifier '%{letter}' in '{format_}'")
    return regex.compile("".join(out), regex.IGNORECASE | regex.ASCII), "".join(letters)


def _expanded(format_: str) -> str:
    return re.sub(r"%([FTXDxRrcv+])", lambda match: _COMPOSITES[match[1]], format_)


def _strptime(text: str, format_: str) -> _Parts | None:
    """Return the parts of a time, or None when `text` does not fit the format or continues behind it."""
    pattern, letters = _reader(format_)
    match = match_whole(pattern, text)
    if not match:
        return None
    parts = _Parts()
    for letter, group in zip(letters, match.groups(), strict=True):
        if letter in "YmdejHkIlMSysQ":
            _number(parts, letter, parse_integer(group))
        elif letter in "LN":
            parts.fraction = int(group[:9].ljust(9, "0"))
        elif letter in "pP":
            parts.afternoon = group[0] in "pP"
        elif letter in "bBh":
            matches = [i for i, name in enumerate(_MONTHS) if group.lower() in (name, name[:3])]
            if not matches:
                return None
            parts.month = matches[0] + 1
        elif letter in "aA" and not any(group.lower() in (name, name[:3]) for name in _DAYS):
            return None
        elif letter in "Zz":
            parts.zone = group
    in_range = (
        (parts.month is None or 1 <= parts.month <= 12)
        and (parts.day is None or 1 <= parts.day <= 31)
        and parts.hour <= 24
        and parts.minute <= 59
        and parts.second <= 60
    )
    return parts if in_range else None


def _number(parts: _Parts, letter: str, number: int) -> None:
    if letter == "y":
        parts.year = number + (2000 if number < 69 else 1900)
    elif letter in "sQ":
        parts.epoch = number * (SECOND if letter == "s" else 1_000_000)
    else:
        names = {"Y": "year", "m": "month", "d": "day", "e": "day", "j": "yday", "M": "minute", "S": "second"}
        setattr(parts, names.get(letter, "hour"), number)


def _strftime(nanoseconds: int, format_: str, offset: int | None) -> str:
    """Return the result of Ruby's strftime; an `offset` of None is UTC, by that name."""
    if re.search(r"(?<!%)(?:%%)*%[-0^#_]*\d*:{0,3}\Z", format_):
        raise EvaluationError(f"invalid format: {format_}")
    seconds, fraction = divmod(nanoseconds, SECOND)
    zone = timezone(timedelta(seconds=offset)) if offset is not None else UTC
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        moment = moment.astimezone(zone)
    except OverflowError as error:
        raise EvaluationError(f"the time {seconds} {_OUT_OF_RANGE}") from error

    def replaced(match: re.Match[str]) -> str:
        flags, width, colons, letter = match[1], match[2], match[3], match[4]
        _check_width(width)
        if letter in _COMPOSITES:
            inner = re.sub(_DIRECTIVE, replaced, _COMPOSITES[letter])
            return _padded(inner, flags, width, " ", 0)
        answer = _directive(moment, fraction, seconds, letter, width, colons, offset)
        if answer is None:
            return match[0]
        text, pad, size = answer
        return _padded(text, flags.replace("-", ""), "", pad, size) if letter in "LN" else _padded(text, flags, width, pad, size)

    return re.sub(_DIRECTIVE, replaced, format_)


_DIRECTIVE = re.compile(r"%([-0^#_]*)(\d*)(:{0,3})(?:E(?=[CXYcxy])|O(?=[HIMSUVWdeklmuwy]))?([a-zA-Z%])")


def _padded(text: str, flags: str, width: str, pad: str, size: int) -> str:
    for flag in flags:
        if flag == "^":
            text = text.upper()
        elif flag == "#":
            text = text.lower() if text in ("AM", "PM", "UTC") else text.upper()
        elif flag in "0_":
            pad = "0" if flag == "0" else " "
    if "-" in flags:
        return text.lstrip(" ") if pad == " " else text.lstrip("0") or ("0" if text.isdigit() else text)
    wanted = int(width) if width else size
    if text[:1] in "+-" and pad == "0" and len(text) < wanted:
        return text[0] + text[1:].rjust(wanted - 1, "0")
    return text.rjust(wanted, pad)


def _directive(
    moment: datetime, fraction: int, seconds: int, letter: str, width: str, colons: str, offset: int | None
) -> tuple[str, str, int] | None:
    """Return text, padding character and usual width of a directive; None when there is no such directive."""
    if letter in "LN":
        digits = int(width) if width else (3 if letter == "L" else 9)
        return f"{fraction:09d}".ljust(digits, "0")[:digits], "0", 0
    if letter == "z":
        return _zone_text(offset or 0, len(colons)), "0", 0
    if letter == "Z":
        return ("UTC" if offset is None else ""), " ", 0
    year, week_year, week, weekday = moment.year, *moment.isocalendar()
    yday = moment.timetuple().tm_yday
    table: dict[str, tuple[object, str, int]] = {
        "Y": (year, "0", 4), "C": (year // 100, "0", 2), "y": (year % 100, "0", 2), "m": (moment.month, "0", 2),
        "B": (_MONTHS[moment.month - 1].capitalize(), " ", 0), "b": (_MONTHS[moment.month - 1][:3].capitalize(), " ", 0),
        "h": (_MONTHS[moment.month - 1][:3].capitalize(), " ", 0), "d": (moment.day, "0", 2), "e": (moment.day, " ", 2),
        "j": (yday, "0", 3),
        "H": (moment.hour, "0", 2), "k": (moment.hour, " ", 2), "I": ((moment.hour + 11) % 12 + 1, "0", 2),
        "l": ((moment.hour + 11) % 12 + 1, " ", 2), "p": ("AM" if moment.hour < 12 else "PM", " ", 0),
        "P": ("am" if moment.hour < 12 else "pm", " ", 0), "M": (moment.minute, "0", 2), "S": (moment.second, "0", 2),
        "A": (_DAYS[moment.weekday()].capitalize(), " ", 0), "a": (_DAYS[moment.weekday()][:3].capitalize(), " ", 0),
        "u": (weekday, "0", 1),
        "w": (weekday % 7, "0", 1), "G": (week_year, "0", 4), "g": (week_year % 100, "0", 2), "V": (week, "0", 2),
        "U": ((yday + 6 - weekday % 7) // 7, "0", 2), "W": ((yday + 6 - (weekday - 1)) // 7, "0", 2), "s": (seconds, "0", 0),
        "n": ("\n", " ", 0), "t": ("\t", " ", 0), "%": ("%", " ", 0),
    }  # fmt: skip
    if letter not in table:
        return None
    value, pad, size = table[letter]
    return str(value), pad, size


def _zone_text(offset: int, colons: int) -> str:
    sign = "-" if offset < 0 else "+"
    hours, rest = divmod(abs(offset), 3600)
    minutes, seconds = divmod(rest, 60)
    if colons == 2:
        return f"{sign}{hours:02d}:{minutes:02d}:{seconds:02d}"
    return f"{sign}{hours:02d}{':' if colons else ''}{minutes:02d}"

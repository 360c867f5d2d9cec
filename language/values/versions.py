"""
SemVer and SemVerRange: semantic versions, and ranges of them in npm's notation.

Ranges are read as the gem semantic_puppet reads them, with its peculiarities: a prerelease is in a range only where a bound names
a prerelease of the same major, minor and patch; an exact version is another one with other build metadata; ranges of a union that touch
become one, and forget the bounds between them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final, Self, TypeAlias

from shared.errors import EvaluationError
from shared.names import quoted_for_log

MAX_TEXT: Final = 1000  # characters of one version or range

_NUMBER = r"(0|[1-9][0-9]*)"
_PARTS = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_QUALIFIER = rf"(?:-({_PARTS}))?(?:\+({_PARTS}))?"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}{_QUALIFIER}\n?", re.ASCII)

_WILD = r"(x|X|\*|0|[1-9][0-9]*)"
_PARTIAL = re.compile(rf"{_WILD}(?:\.{_WILD}(?:\.{_WILD}{_QUALIFIER})?)?", re.ASCII)
_SIMPLE = re.compile(r"(~>|~=|<=|>=|[<>=~^])?([0-9xX*][0-9A-Za-z.*+-]*)", re.ASCII)
_HYPHEN = re.compile(r"(\S+)\s+-\s+(\S+)", re.ASCII)
_OPERATOR_SPACE = re.compile(r"([><=~^])(?:\s+|\s*v)", re.ASCII)
_OR = re.compile(r"\s*\|\|\s*", re.ASCII)
_SPACES = re.compile(r"\s+", re.ASCII)

Identifiers: TypeAlias = tuple[int | str, ...]
Precedence: TypeAlias = tuple[float, int, int, int, tuple[tuple[int, int, str], ...]]


class BadVersion(EvaluationError):
    """A text that is not a semantic version, or no range of them."""


@dataclass(frozen=True)
class SemVer:
    """
    A semantic version. `==` counts build metadata, the order does not.

    Attributes:
        prerelease: None for a stable version; () only in LOWEST.
    """

    major: float
    minor: int
    patch: int
    prerelease: Identifiers | None = None
    build: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, text: str) -> SemVer:
        """Return the version that a text is; BadVersion."""
        match = _VERSION.fullmatch(text) if len(text) <= MAX_TEXT else None
        if match is None:
            raise BadVersion(f"Unable to parse {quoted_for_log(text)} as a semantic version identifier", hint="Write it as 1.2.3.")
        return cls.of(int(match[1]), int(match[2]), int(match[3]), match[4], match[5])

    @classmethod
    def of(cls, major: int, minor: int, patch: int, prerelease: str | None = None, build: str | None = None) -> SemVer:
        return cls(major, minor, patch, _identifiers(prerelease), None if build is None else tuple(build.split(".")))

    @cached_property
    def order(self) -> Precedence:
        """The sort key: a release comes after its prereleases, and numbers come before words."""
        identifiers = tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in self.prerelease or ())
        return self.major, self.minor, self.patch, int(self.prerelease is None), identifiers

    @property
    def is_stable(self) -> bool:
        return not self.prerelease

    @property
    def triple(self) -> tuple[float, int, int]:
        return self.major, self.minor, self.patch

    def next_patch(self) -> SemVer:
        """Return the lowest stable version above this one's major, minor and patch."""
        return SemVer(self.major, self.minor, self.patch + 1)

    def __lt__(self, other: SemVer) -> bool:
        return self.order < other.order

    def __le__(self, other: SemVer) -> bool:
        return self.order <= other.order

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(map(str, self.prerelease))
        if self.build:
            text += "+" + ".".join(self.build)
        return text


LOWEST: Final = SemVer(0, 0, 0, ())
HIGHEST: Final = SemVer(math.inf, 0, 0)


def _identifiers(text: str | None) -> Identifiers | None:
    if text is None:
        return None
    parts = text.split(".")
    if any(part.isdigit() and len(part) > 1 and part[0] == "0" for part in parts):
        raise BadVersion("Numeric pre-release identifiers MUST NOT contain leading zeroes")
    return tuple(int(part) if part.isdigit() else part for part in parts)


@dataclass(frozen=True, slots=True)
class VersionInterval:
    """
    All versions between two, without a gap.

    Attributes:
        open_low, open_high: whether the end itself is left out.
        is_everything: `*`, the only one that has the prereleases of every version.
    """

    low: SemVer = LOWEST
    high: SemVer = HIGHEST
    open_low: bool = False
    open_high: bool = False
    is_everything: bool = False

    @classmethod
    def exactly(cls, version: SemVer) -> Self:
        return cls(version, version)

    @property
    def _is_exact(self) -> bool:
        return self.low == self.high and not self.open_low and not self.open_high

    def spans(self, version: SemVer) -> bool:
        """Return whether a version lies between the ends, ignoring the rules for prereleases."""
        if self._is_exact:
            return version == self.low
        above = version > self.low if self.open_low else version >= self.low
        return above and (version < self.high if self.open_high else version <= self.high)

    def __contains__(self, version: SemVer) -> bool:
        if not self.spans(version):
            return False
        if version.is_stable or self.is_everything:
            return True
        return any(not end.is_stable and end.triple == version.triple for end in (self.low, self.high))

    def intersection(self, other: VersionInterval) -> VersionInterval | None:
        """Return the intersection; None when it is empty."""
        if self.is_everything:
            return other
        if other.is_everything:
            return self
        if self.low.order == other.high.order:
            return None if self.open_low or other.open_high else VersionInterval.exactly(self.low)
        if other.low.order == self.high.order:
            return None if other.open_low or self.open_high else VersionInterval.exactly(other.low)
        if self.low > other.high or other.low > self.high:
            return None
        lower = max((other, self), key=lambda interval: (interval.low.order, interval.open_low))
        upper = min((other, self), key=lambda interval: (interval.high.order, not interval.open_high))
        return VersionInterval(lower.low, upper.high, lower.open_low, upper.open_high)

    def covers(self, other: VersionInterval) -> bool:
        return self.intersection(other) == other

    def union(self, other: VersionInterval) -> VersionInterval | None:
        """Return one interval of both, if they overlap or touch; else None."""
        if self.is_everything:
            return self
        if self.spans(other.low) or other.spans(self.low):
            lower = min((self, other), key=lambda interval: (interval.low.order, interval.open_low))
            upper = max((self, other), key=lambda interval: (interval.high.order, not interval.open_high))
            return _between(lower, upper)
        for first, second in ((self, other), (other, self)):
            if first.open_high and not second.open_low and first.high == second.low:
                return _between(first, second)
        for first, second in ((self, other), (other, self)):
            if not first.open_high and not second.open_low and first.high.next_patch() == second.low:
                return _between(first, second)
        return None

    def __str__(self) -> str:
        if self._is_exact:
            return str(self.low)
        low = "" if self.low == LOWEST else f"{'>' if self.open_low else '>='}{self.low}"
        high = "" if self.high == HIGHEST else f"{'<' if self.open_high else '<='}{self.high}"
        return f"{low} {high}".strip() or "*"


def _between(lower: VersionInterval, upper: VersionInterval) -> VersionInterval | None:
    """Return the interval from the low end of one to the high end of another."""
    return VersionInterval(low=lower.low, open_low=lower.open_low).intersection(VersionInterval(high=upper.high, open_high=upper.open_high))


NOTHING: Final = VersionInterval(LOWEST, LOWEST, open_high=True)
EVERYTHING: Final = VersionInterval(is_everything=True)


@dataclass(frozen=True, slots=True)
class SemVerRange:
    """A union of intervals. Its text is its source, and two are equal when their intervals are."""

    intervals: tuple[VersionInterval, ...]
    text: str = field(compare=False)

    @classmethod
    @lru_cache(maxsize=512)
    def parse(cls, text: str) -> SemVerRange:
        """
        Return the range that a text is: `1.x`, `>= 1.0.0 < 2.0.0`, `~ 1.2`, `^1.2.3`, `1.0.0 - 1.3.9`, alternatives with `||`.

        Raises:
            BadVersion: it is none; the message is that of Puppet.
        """
        if len(text) > MAX_TEXT:
            raise BadVersion(f"Unparsable version range: {quoted_for_log(text)}")
        alternatives = _OR.split(_OPERATOR_SPACE.sub(r"\1", text))
        while alternatives and not alternatives[-1]:
            alternatives.pop()
        if not alternatives:
            return cls((EVERYTHING,), text)
        intervals = (_alternative(alternative, text) for alternative in alternatives)
        return cls(_merged(dict.fromkeys(interval for interval in intervals if interval is not None)), text)

    @classmethod
    def between(cls, low: SemVer | None, high: SemVer | None, exclude_high: bool = False) -> SemVerRange:
        """Return the range between two ends; None means open."""
        interval = VersionInterval(low or LOWEST, high or HIGHEST, open_high=exclude_high and high is not None)
        return cls((interval,), f"{low} - {high}" if low and high and not exclude_high else str(interval))

    def __contains__(self, version: SemVer) -> bool:
        return any(version in interval for interval in self.intervals)

    def overlaps(self, other: SemVerRange) -> bool:
        """Return whether some version may be in both."""
        pairs = ((mine, theirs) for mine in self.intervals for theirs in other.intervals)
        return any(common not in (None, NOTHING) for common in (mine.intersection(theirs) for mine, theirs in pairs))

    def covers(self, other: SemVerRange) -> bool:
        """Return whether each interval of another range is inside one of this range."""
        return all(any(mine.covers(theirs) for mine in self.intervals) for theirs in other.intervals)

    def canonical(self) -> str:
        """Return the text that is assembled from the intervals, independent of the source."""
        return " || ".join(map(str, self.intervals))

    def __str__(self) -> str:
        return self.text


def _merged(intervals: Iterable[VersionInterval]) -> tuple[VersionInterval, ...]:
    """Return intervals that neither overlap nor touch, or NOTHING."""
    remaining, has_merged = list(intervals), True
    while len(remaining) > 1 and has_merged:
        has_merged, result = False, []
        while remaining:
            merged, unmerged = remaining.pop(), []
            for interval in remaining:
                both = merged.union(interval)
                if both is None:
                    unmerged.append(interval)
                else:
                    merged, has_merged = both, True
            result.append(merged)
            remaining = unmerged
        remaining = result[::-1]
    return tuple(remaining) or (NOTHING,)


def _alternative(text: str, whole: str) -> VersionInterval | None:
    """Return the range between two `||`; None when it is empty."""
    hyphen = _HYPHEN.fullmatch(text)
    if hyphen is not None and _PARTIAL.fullmatch(hyphen[1]) and _PARTIAL.fullmatch(hyphen[2]):
        return VersionInterval(low=_floor(hyphen[1])).intersection(VersionInterval(high=_floor(hyphen[2])))
    words = _SPACES.split(text.rstrip(" \t\r\n\f\v"))
    if words == [""]:
        return None
    result: VersionInterval | None = EVERYTHING
    for interval in [_simple(word, whole) for word in words]:
        result = None if result is None else result.intersection(interval)
    return result


def _simple(text: str, whole: str) -> VersionInterval:
    """Return the versions that one comparison allows."""
    match = _SIMPLE.fullmatch(text)
    partial = _PARTIAL.fullmatch(match[2]) if match is not None else None
    if match is None or partial is None:
        raise BadVersion(f'Unparsable version range: "{whole}"')
    major, minor, patch = (None if part in (None, "x", "X", "*") else int(part) for part in partial.group(1, 2, 3))
    match match[1]:
        case ">=":
            return VersionInterval(low=_floor(match[2]))
        case "<":
            return VersionInterval(high=_floor(match[2]), open_high=True)
        case ">":
            if major is None:
                return NOTHING
            if minor is None:
                return VersionInterval(low=SemVer(major + 1, 0, 0))
            if patch is None:
                return VersionInterval(low=SemVer(major, minor + 1, 0))
            return VersionInterval(low=_floor(match[2]), open_low=True)
        case "<=":
            if major is None:
                return EVERYTHING
            if minor is None:
                return VersionInterval(high=SemVer(major + 1, 0, 0), open_high=True)
            if patch is None:
                return VersionInterval(high=SemVer(major, minor + 1, 0), open_high=True)
            return VersionInterval(high=_floor(match[2]))
    if major is None:
        return EVERYTHING
    next_major, next_minor = SemVer(major + 1, 0, 0), SemVer(major, (minor or 0) + 1, 0)
    if minor is None:
        return VersionInterval(SemVer(major, 0, 0), next_major, open_high=True)
    caret = match[1] == "^" and major > 0
    if patch is None:
        return VersionInterval(SemVer(major, minor, 0), next_major if caret else next_minor, open_high=True)
    version = _floor(match[2])
    if match[1] in ("~", "~>", "~=", "^"):
        return VersionInterval(version, next_major if caret else next_minor, open_high=True)
    return VersionInterval.exactly(version)


def _floor(text: str) -> SemVer:
    """Return a version that may be written partially, with 0 for missing parts."""
    partial = _PARTIAL.fullmatch(text)
    assert partial is not None
    major, minor, patch = (0 if part in (None, "x", "X", "*") else int(part) for part in partial.group(1, 2, 3))
    return SemVer.of(major, minor, patch, partial[4], partial[5])

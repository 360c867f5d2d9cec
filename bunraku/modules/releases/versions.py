"""
Semantic versions and ranges of them, as the metadata of modules writes them.

Ranges are read as the gem semantic_puppet reads them, with what is particular to it: a prerelease is in a range only where a bound names
a prerelease of the same major, minor and patch; an exact version is another one with other build metadata; ranges of a union that touch
become one, and forget the bounds between them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

from shared.errors import BadData
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

Identifiers = tuple[int | str, ...]


class BadVersion(BadData):
    """A text that is no semantic version, or no range of them."""


@dataclass(frozen=True)
class Version:
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
    def parse(cls, text: str) -> Version:
        """Return the version that a text is; BadVersion."""
        match = _VERSION.fullmatch(text) if len(text) <= MAX_TEXT else None
        if match is None:
            raise BadVersion(f"Unable to parse {quoted_for_log(text)} as a semantic version identifier", hint="Write it as 1.2.3.")
        return cls(int(match[1]), int(match[2]), int(match[3]), _prerelease(match[4]), _build(match[5]))

    @cached_property
    def order(self) -> tuple[float, int, int, int, tuple[tuple[int, int, str], ...]]:
        """The sort key."""
        identifiers = tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in self.prerelease or ())
        return self.major, self.minor, self.patch, int(self.prerelease is None), identifiers

    @property
    def is_stable(self) -> bool:
        return not self.prerelease

    @property
    def triple(self) -> tuple[float, int, int]:
        return self.major, self.minor, self.patch

    def next_patch(self) -> Version:
        """Return the lowest stable version above this one's major, minor and patch."""
        return Version(self.major, self.minor, self.patch + 1)

    def __lt__(self, other: Version) -> bool:
        return self.order < other.order

    def __le__(self, other: Version) -> bool:
        return self.order <= other.order

    def __gt__(self, other: Version) -> bool:
        return self.order > other.order

    def __ge__(self, other: Version) -> bool:
        return self.order >= other.order

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(map(str, self.prerelease))
        if self.build:
            text += "+" + ".".join(self.build)
        return text


LOWEST: Final = Version(0, 0, 0, ())
HIGHEST: Final = Version(math.inf, 0, 0)


def _prerelease(text: str | None) -> Identifiers | None:
    if text is None:
        return None
    parts = text.split(".")
    if any(part.isdigit() and len(part) > 1 and part[0] == "0" for part in parts):
        raise BadVersion("Numeric pre-release identifiers MUST NOT contain leading zeroes")
    return tuple(int(part) if part.isdigit() else part for part in parts)


def _build(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(text.split("."))


@dataclass(frozen=True, slots=True)
class Interval:
    """
    All versions between two, without a gap.

    Attributes:
        open_low, open_high: whether the end itself is left out.
        is_everything: `*`, the only one that has the prereleases of every version.
    """

    low: Version = LOWEST
    high: Version = HIGHEST
    open_low: bool = False
    open_high: bool = False
    is_everything: bool = False

    @classmethod
    def exactly(cls, version: Version) -> Self:
        return cls(version, version)

    @property
    def _is_exact(self) -> bool:
        return self.low == self.high and not self.open_low and not self.open_high

    def spans(self, version: Version) -> bool:
        """Return whether a version lies between the ends, whatever is said of prereleases."""
        if self._is_exact:
            return version == self.low
        above = version > self.low if self.open_low else version >= self.low
        return above and (version < self.high if self.open_high else version <= self.high)

    def __contains__(self, version: Version) -> bool:
        if not self.spans(version):
            return False
        if version.is_stable or self.is_everything:
            return True
        return any(not end.is_stable and end.triple == version.triple for end in (self.low, self.high))

    def intersection(self, other: Interval) -> Interval | None:
        """Return what is in both; None when that is nothing."""
        if self.is_everything:
            return other
        if other.is_everything:
            return self
        if self.low.order == other.high.order:
            return None if self.open_low or other.open_high else Interval.exactly(self.low)
        if other.low.order == self.high.order:
            return None if other.open_low or self.open_high else Interval.exactly(other.low)
        if self.low > other.high or other.low > self.high:
            return None
        lower = max((other, self), key=lambda interval: (interval.low.order, interval.open_low))
        upper = min((other, self), key=lambda interval: (interval.high.order, not interval.open_high))
        return Interval(lower.low, upper.high, lower.open_low, upper.open_high)

    def union(self, other: Interval) -> Interval | None:
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


def _between(lower: Interval, upper: Interval) -> Interval | None:
    """Return the interval from the low end of one to the high end of another."""
    return Interval(low=lower.low, open_low=lower.open_low).intersection(Interval(high=upper.high, open_high=upper.open_high))


NOTHING: Final = Interval(LOWEST, LOWEST, open_high=True)
EVERYTHING: Final = Interval(is_everything=True)


@dataclass(frozen=True, slots=True)
class VersionRange:
    """A union of intervals."""

    intervals: tuple[Interval, ...]

    @classmethod
    def parse(cls, text: str) -> VersionRange:
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
            return cls((EVERYTHING,))
        intervals = (_alternative(alternative, text) for alternative in alternatives)
        return cls(_merged(dict.fromkeys(interval for interval in intervals if interval is not None)))

    def __contains__(self, version: Version) -> bool:
        return any(version in interval for interval in self.intervals)

    def overlaps(self, other: VersionRange) -> bool:
        """Return whether some version may be in both."""
        pairs = ((mine, theirs) for mine in self.intervals for theirs in other.intervals)
        return any(common not in (None, NOTHING) for common in (mine.intersection(theirs) for mine, theirs in pairs))


NO_VERSION: Final = VersionRange((NOTHING,))
ANY_STABLE: Final = ">= 0.0.0"  # what a dependency without a range asks for


def _merged(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Return intervals of which no two overlap or touch, or NOTHING."""
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


def _alternative(text: str, whole: str) -> Interval | None:
    """Return what stands between two `||`; None when nothing can be in it."""
    hyphen = _HYPHEN.fullmatch(text)
    if hyphen is not None and _PARTIAL.fullmatch(hyphen[1]) and _PARTIAL.fullmatch(hyphen[2]):
        return Interval(low=_floor(hyphen[1])).intersection(Interval(high=_floor(hyphen[2])))
    words = _SPACES.split(text.rstrip(" \t\r\n\f\v"))
    if words == [""]:
        return None
    result: Interval | None = EVERYTHING
    for interval in [_simple(word, whole) for word in words]:
        result = None if result is None else result.intersection(interval)
    return result


def _simple(text: str, whole: str) -> Interval:
    """Return what one comparison allows."""
    match = _SIMPLE.fullmatch(text)
    partial = _PARTIAL.fullmatch(match[2]) if match is not None else None
    if match is None or partial is None:
        raise BadVersion(f'Unparsable version range: "{whole}"')
    major, minor, patch = (None if part in (None, "x", "X", "*") else int(part) for part in partial.group(1, 2, 3))
    match match[1]:
        case ">=":
            return Interval(low=_floor(match[2]))
        case "<":
            return Interval(high=_floor(match[2]), open_high=True)
        case ">":
            if major is None:
                return NOTHING
            if minor is None:
                return Interval(low=Version(major + 1, 0, 0))
            if patch is None:
                return Interval(low=Version(major, minor + 1, 0))
            return Interval(low=_floor(match[2]), open_low=True)
        case "<=":
            if major is None:
                return EVERYTHING
            if minor is None:
                return Interval(high=Version(major + 1, 0, 0), open_high=True)
            if patch is None:
                return Interval(high=Version(major, minor + 1, 0), open_high=True)
            return Interval(high=_floor(match[2]))
    if major is None:
        return EVERYTHING
    next_major, next_minor = Version(major + 1, 0, 0), Version(major, (minor or 0) + 1, 0)
    if minor is None:
        return Interval(Version(major, 0, 0), next_major, open_high=True)
    caret = match[1] == "^" and major > 0
    if patch is None:
        return Interval(Version(major, minor, 0), next_major if caret else next_minor, open_high=True)
    version = _floor(match[2])
    if match[1] in ("~", "~>", "~=", "^"):
        return Interval(version, next_major if caret else next_minor, open_high=True)
    return Interval.exactly(version)


def _floor(text: str) -> Version:
    """Return a version that may be written partially, with 0 for what is missing."""
    partial = _PARTIAL.fullmatch(text)
    assert partial is not None
    major, minor, patch = (0 if part in (None, "x", "X", "*") else int(part) for part in partial.group(1, 2, 3))
    return Version(major, minor, patch, _prerelease(partial[4]), _build(partial[5]))

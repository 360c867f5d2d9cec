"""SemVer and SemVerRange: semantic versions, and ranges of them in npm's notation."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache, total_ordering
from typing import TypeAlias

from shared.errors import EvaluationError

from .digits import parse_integer

_PART = r"[0-9A-Za-z-]+"
_PARTS = rf"{_PART}(?:\.{_PART})*"
_NUMBER = r"(?:0|[1-9][0-9]*)"
_VERSION = re.compile(rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_PARTS}))?(?:\+({_PARTS}))?")
_X = rf"(?:x|X|\*|{_NUMBER})"
_PARTIAL = re.compile(rf"({_X})(?:\.({_X})(?:\.({_X})(?:-({_PARTS}))?(?:\+({_PARTS}))?)?)?")
_HYPHEN = re.compile(r"(\S+)\s+-\s+(\S+)")


def _identifiers(text: str | None) -> tuple[int | str, ...] | None:
    if text is None:
        return None
    parts: list[int | str] = []
    for part in text.split("."):
        if part.isdigit() and part.isascii():
            if len(part) > 1 and part[0] == "0":
                raise EvaluationError("Numeric pre-release identifiers MUST NOT contain leading zeroes")
            parts.append(parse_integer(part))
        else:
            parts.append(part)
    return tuple(parts)


Precedence: TypeAlias = tuple[object, ...]
"""A sort key of versions; see `SemVer.precedence`."""


@total_ordering
@dataclass(frozen=True, slots=True, eq=True)
class SemVer:
    """A version. Versions are ordered by precedence, which ignores build metadata, and equal when all their parts are."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[int | str, ...] | None = None
    build: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, text: str) -> SemVer:
        match = _VERSION.fullmatch(text)
        if not match:
            raise EvaluationError(f"Unable to parse '{text}' as a semantic version identifier")
        return cls.of(parse_integer(match[1]), parse_integer(match[2]), parse_integer(match[3]), match[4], match[5])

    @classmethod
    def of(cls, major: int, minor: int, patch: int, prerelease: str | None = None, build: str | None = None) -> SemVer:
        return cls(major, minor, patch, _identifiers(prerelease), tuple(build.split(".")) if build is not None else None)

    def precedence(self) -> Precedence:
        """Return a sort key: a release comes after its pre-releases, and numbers come before words."""
        if self.prerelease is None:
            return (self.major, self.minor, self.patch, 1)
        return (self.major, self.minor, self.patch, 0, tuple((0, p, "") if isinstance(p, int) else (1, 0, p) for p in self.prerelease))

    def stable(self) -> SemVer:
        return SemVer(self.major, self.minor, self.patch)

    def __lt__(self, other: SemVer) -> bool:
        return self.precedence() < other.precedence()

    def __le__(self, other: SemVer) -> bool:
        return self.precedence() <= other.precedence()

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease is not None:
            text += "-" + ".".join(map(str, self.prerelease))
        if self.build is not None:
            text += "+" + ".".join(self.build)
        return text


@dataclass(frozen=True, slots=True)
class VersionInterval:
    """An interval of versions; a bound of None is open. For an exact version, `low == high`, and both are included."""

    low: SemVer | None
    high: SemVer | None
    low_open: bool = False
    high_open: bool = False

    def includes(self, version: SemVer) -> bool:
        """Return whether a version is in the interval; a pre-release is only when a bound is a pre-release of the same version."""
        at = version.precedence()
        if self.low is not None and (at < self.low.precedence() or (self.low_open and at == self.low.precedence())):
            return False
        if self.high is not None and (at > self.high.precedence() or (self.high_open and at == self.high.precedence())):
            return False
        if version.prerelease is None or (self.low is None and self.high is None):
            return True
        return any(b is not None and b.prerelease is not None and b.stable() == version.stable() for b in (self.low, self.high))

    def intersection(self, other: VersionInterval) -> VersionInterval | None:
        low, low_open = max(
            ((s.low, s.low_open) for s in (self, other)), key=lambda b: (b[0] is not None, b[0].precedence() if b[0] else (), b[1])
        )
        high, high_open = min(
            ((s.high, s.high_open) for s in (self, other)), key=lambda b: (b[0] is None, b[0].precedence() if b[0] else (), not b[1])
        )
        if low is not None and high is not None and (low > high or (low.precedence() == high.precedence() and (low_open or high_open))):
            return None
        return VersionInterval(low, high, low_open, high_open)

    def __str__(self) -> str:
        if self.low is not None and self.low == self.high:
            return str(self.low)
        parts = []
        if self.low is not None:
            parts.append((">" if self.low_open else ">=") + str(self.low))
        if self.high is not None:
            parts.append(("<" if self.high_open else "<=") + str(self.high))
        return " ".join(parts) or "*"

    def covers(self, other: VersionInterval) -> bool:
        return self.intersection(other) == other

    def touches(self, other: VersionInterval) -> bool:
        """Return whether the intervals overlap or meet without a gap."""
        if self.intersection(other) is not None:
            return True
        for one, two in ((self, other), (other, self)):
            if one.high is not None and one.high == two.low and not (one.high_open and two.low_open):
                return True
        return False

    def union(self, other: VersionInterval) -> VersionInterval:
        low, low_open = min(
            ((s.low, s.low_open) for s in (self, other)), key=lambda b: (b[0] is not None, b[0].precedence() if b[0] else (), b[1])
        )
        high, high_open = max(
            ((s.high, s.high_open) for s in (self, other)), key=lambda b: (b[0] is None, b[0].precedence() if b[0] else (), not b[1])
        )
        return VersionInterval(low, high, low_open, high_open)


ALL = VersionInterval(None, None)


@dataclass(frozen=True, slots=True)
class SemVerRange:
    """A union of intervals. Its text is its source, and two are equal when their intervals are."""

    spans: tuple[VersionInterval, ...]
    text: str = field(compare=False)

    @classmethod
    def parse(cls, text: str) -> SemVerRange:
        return _range(text)

    @classmethod
    def between(cls, low: SemVer | None, high: SemVer | None, exclude_high: bool = False) -> SemVerRange:
        span = VersionInterval(low, high, False, exclude_high)
        if low is not None and high is not None and not exclude_high:
            return cls((span,), f"{low} - {high}")
        return cls((span,), str(span))

    def includes(self, version: SemVer) -> bool:
        return any(span.includes(version) for span in self.spans)

    def covers(self, other: SemVerRange) -> bool:
        """Return whether each interval of `other` is inside one of this range."""
        return all(any(mine.covers(span) for mine in self.spans) for span in other.spans)

    def canonical(self) -> str:
        """Return the text that is assembled from the intervals, independent of the source."""
        return " || ".join(map(str, self.spans)) if self.spans else "<0.0.0"

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=512)
def _range(text: str) -> SemVerRange:
    packed = re.sub(r"([><=~^])(?:\s+|\s*v)", r"\1", text)
    alternatives = re.split(r"\s*\|\|\s*", packed)
    if not packed:
        return SemVerRange((ALL,), text)
    spans: list[VersionInterval] = []
    for alternative in alternatives:
        hyphen = _HYPHEN.fullmatch(alternative)
        if hyphen:
            span: VersionInterval | None = VersionInterval(_floor(hyphen[1], text), _floor(hyphen[2], text))
        else:
            span = ALL
            for simple in alternative.split():
                part = _simple(simple, text)
                span = span.intersection(part) if span is not None and part is not None else None
        if span is not None and span not in spans:
            spans.append(span)
    return SemVerRange(tuple(_merged(spans)), text)


def _merged(spans: list[VersionInterval]) -> list[VersionInterval]:
    out: list[VersionInterval] = []
    for span in spans:
        joined = span
        rest = []
        for other in out:
            if joined.touches(other):
                joined = other.union(joined)
            else:
                rest.append(other)
        out = [*rest, joined]
    return out


def _parts(expression: str, text: str) -> tuple[int | None, int | None, int | None, str | None, str | None]:
    match = _PARTIAL.fullmatch(expression)
    if not match:
        raise EvaluationError(f'Unparsable version range: "{text}"')
    major, minor, patch = (None if part is None or part in "xX*" else parse_integer(part) for part in match.group(1, 2, 3))
    return major, minor, patch, match[4], match[5]


def _floor(expression: str, text: str) -> SemVer:
    major, minor, patch, prerelease, build = _parts(expression, text)
    return SemVer.of(major or 0, minor or 0, patch or 0, prerelease, build)


def _simple(simple: str, text: str) -> VersionInterval | None:
    """Return the interval of one comparator; None when no version can match it."""
    match = re.match(r"(<=|>=|~>|~=|[<>=~^])?(.*)", simple, re.DOTALL)
    assert match is not None
    operator, operand = match[1] or "=", match[2]
    major, minor, patch, _, _ = _parts(operand, text)
    version = _floor(operand, text)
    if operator == ">=":
        return VersionInterval(version, None)
    if operator == "<":
        return VersionInterval(None, version, False, True)
    if major is None:
        return None if operator == ">" else ALL
    after = SemVer(major, minor + 1, 0) if minor is not None else SemVer(major + 1, 0, 0)
    complete = minor is not None and patch is not None
    if operator == ">":
        return VersionInterval(version, None, True) if complete else VersionInterval(after, None)
    if operator == "<=":
        return VersionInterval(None, version) if complete else VersionInterval(None, after, False, True)
    if operator == "^" and major != 0:
        return VersionInterval(version, SemVer(major + 1, 0, 0), False, True)
    if operator == "=" and complete:
        return VersionInterval(version, version)
    return VersionInterval(version, after, False, True)

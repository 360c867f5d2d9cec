"""
Versions of packages: how each system orders them, and ranges of them. Pure.

A range is one or two terms, `>=1.0 <2.0`; its parts are compared by the order of the package manager.
Source: resource layer reference 7.2; Debian policy 5.6.12; rpm's rpmvercmp; PEP 440; Gem::Version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import zip_longest

Order = Callable[[str, str], int]  # below 0: the first is older; ValueError: not a version

_TERM = re.compile(r"([<>=]*)(.+)", re.DOTALL)
_TESTS: dict[str, Callable[[int], bool]] = {
    ">": lambda way: way > 0,
    ">=": lambda way: way >= 0,
    "<": lambda way: way < 0,
    "<=": lambda way: way <= 0,
    "": lambda way: way == 0,
}


@dataclass(frozen=True, slots=True)
class Range:
    """One or two terms, all of which must be true for a version in the range."""

    terms: tuple[tuple[str, str], ...]  # (operator, version)
    order: Order

    @property
    def exact(self) -> bool:
        """Return whether it is one version and not a range."""
        return len(self.terms) == 1 and self.terms[0][0] == ""

    def has(self, version: str) -> bool:
        """Return whether a version is inside; a text that is not a version is not."""
        try:
            return all(_TESTS[operator](self.order(version, bound)) for operator, bound in self.terms)
        except ValueError:
            return False

    def best(self, versions: Iterable[str]) -> str | None:
        """Return the highest of the versions that are inside."""
        inside = [version for version in versions if self.has(version)]
        return max(inside, key=cmp_to_key(self.order), default=None)


def range_of(text: str, order: Order) -> Range | None:
    """Return the range that the text of `ensure` writes; None when it is a literal version."""
    terms = []
    for word in text.split():
        match = _TERM.fullmatch(word)
        if match is None or match[1] not in _TESTS:
            return None
        terms.append((match[1], match[2]))
    if not 1 <= len(terms) <= 2 or (len(terms) == 2 and any(operator == "" for operator, _ in terms)):
        return None
    try:
        for _, version in terms:
            order(version, version)
    except ValueError:
        return None
    return Range(tuple(terms), order)


# --- Debian

_DEBIAN = re.compile(r"(?:(\d+):)?(\d[A-Za-z0-9.+~:-]*?)(?:-([A-Za-z0-9.+~]+))?")


def compare_debian(one: str, other: str) -> int:
    """Compare by Debian's order: epoch, upstream version, revision."""
    first, second = _DEBIAN.fullmatch(one), _DEBIAN.fullmatch(other)
    if first is None or second is None:
        raise ValueError(f"not a Debian version: {one if first is None else other}")
    way = int(first[1] or 0) - int(second[1] or 0)
    return way or _debian_part(first[2], second[2]) or _debian_part(first[3] or "0", second[3] or "0")


def _debian_part(one: str, other: str) -> int:
    for (text1, digits1), (text2, digits2) in zip_longest(_runs(one), _runs(other), fillvalue=("", "")):
        for c1, c2 in zip_longest(text1, text2, fillvalue=""):
            way = _weight(c1) - _weight(c2)
            if way:
                return way
        way = int(digits1 or 0) - int(digits2 or 0)
        if way:
            return way
    return 0


def _runs(text: str) -> list[tuple[str, str]]:
    """Return alternating runs of non-digits and digits."""
    return [(match[1], match[2]) for match in re.finditer(r"([^0-9]*)([0-9]*)", text) if match[0]]


def _weight(c: str) -> int:
    """Return the rank of a character: a tilde comes before the end, letters before all else."""
    if c == "~":
        return -1
    if c == "":
        return 0
    return ord(c) if c.isalpha() else ord(c) + 256


# --- rpm


def compare_rpm_part(one: str, other: str) -> int:
    """Compare one part (a version, a release) by rpm's order."""
    first, second = _segments(one), _segments(other)
    for a, b in zip_longest(first, second, fillvalue=""):
        if a == b:
            continue
        if "~" in (a, b):
            return -1 if a == "~" else 1
        if "^" in (a, b):
            if a == "^":
                return 1 if b == "" else -1
            return -1 if a == "" else 1
        if a == "" or b == "":
            return 1 if b == "" else -1
        if a.isdigit() != b.isdigit():
            return 1 if a.isdigit() else -1
        way = int(a) - int(b) if a.isdigit() else (a > b) - (a < b)
        if way:
            return way
    return 0


def _segments(text: str) -> list[str]:
    return re.findall(r"[0-9]+|[A-Za-z]+|~|\^", text)


def split_evr(text: str) -> tuple[str | None, str, str | None]:
    """Return epoch, version and release of `[epoch:]version[-release]`; None: the text has none."""
    epoch, colon, rest = text.partition(":")
    if not colon or not epoch.isdigit():
        epoch, rest = "", text
    version, dash, release = rest.rpartition("-")
    return (epoch or None), (version if dash else release), (release if dash else None)


def compare_rpm(version: str, desired: str) -> int:
    """Compare a version with a desired one by rpm's order; epoch and release count only where the desired one has them."""
    if not version or not desired:
        raise ValueError("not a version")
    first, second = split_evr(version), split_evr(desired)
    way = int(first[0] or 0) - int(second[0]) if second[0] is not None else 0
    way = way or compare_rpm_part(first[1], second[1])
    if not way and first[2] is not None and second[2] is not None:
        way = compare_rpm_part(first[2], second[2])
    return way


# --- Python

_PEP440 = re.compile(
    r"v?(?:(\d+)!)?(\d+(?:\.\d+)*)(?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d*))?"
    r"(?:-(\d+)|[-_.]?(post|rev|r)[-_.]?(\d*))?(?:[-_.]?(dev)[-_.]?(\d*))?(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?",
    re.IGNORECASE,
)
_STAGES = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}


def compare_pep440(one: str, other: str) -> int:
    """Compare by Python's order."""
    first, second = _pep440(one), _pep440(other)
    return (first > second) - (first < second)


def _pep440(text: str) -> tuple[object, ...]:
    match = _PEP440.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a Python version: {text}")
    epoch, release, stage, stage_number, post_bare, post, post_number, dev, dev_number, local = match.groups()
    numbers = [int(n) for n in release.split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    if stage:
        before = (_STAGES.get(stage.lower(), stage.lower()), int(stage_number or 0))
    else:
        before = ("", -1) if dev and not (post or post_bare) else ("z", 0)
    after = int(post_bare or post_number or 0) if post or post_bare else -1
    unfinished = int(dev_number or 0) if dev else float("inf")
    parts = tuple((1, int(p), "") if p.isdigit() else (0, 0, p) for p in re.split(r"[-_.]", (local or "").lower()) if p)
    return int(epoch or 0), tuple(numbers), before, after, unfinished, parts


# --- Ruby


def compare_gem(one: str, other: str) -> int:
    """Compare by RubyGems' order: letters make it a pre-release."""
    first, second = _gem(one), _gem(other)
    for a, b in zip_longest(first, second, fillvalue=0):
        if a == b:
            continue
        if isinstance(a, str) != isinstance(b, str):
            return -1 if isinstance(a, str) else 1
        return 1 if a > b else -1  # type: ignore[operator]
    return 0


def _gem(text: str) -> list[int | str]:
    if not re.fullmatch(r"\s*[0-9]+(?:\.[0-9A-Za-z]+)*(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?\s*", text):
        raise ValueError(f"not a version of a gem: {text}")
    parts = re.findall(r"[0-9]+|[a-z]+", text.replace("-", ".pre."), re.IGNORECASE)
    return [int(p) if p.isdigit() else p for p in parts]

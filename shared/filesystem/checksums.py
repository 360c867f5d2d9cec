"""Checksums as Puppet writes them: digests, their 512-byte `lite` kin, times and `none`; as text `{algorithm}value`."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, Protocol, TypeGuard

from ..errors import BadData, BadRequest
from ..names import quoted_for_log

Algorithm = Literal[
    "md5", "md5lite", "sha1", "sha1lite", "sha224", "sha256", "sha256lite", "sha384", "sha512", "mtime", "ctime", "none"
]  # fmt: skip

LITE_BYTES: Final = 512  # how much of the content a lite checksum looks at
BLOCK: Final = 256 * 1024  # bytes read at once; the memory a checksum of any file needs

# Hex digits of the value, by algorithm; in the order in which Puppet names them.
HEX_LENGTH: Final[dict[Algorithm, int]] = {
    "sha256": 64,
    "sha256lite": 64,
    "md5": 32,
    "md5lite": 32,
    "sha1": 40,
    "sha1lite": 40,
    "sha512": 128,
    "sha384": 96,
    "sha224": 56,
}
TIMES: Final[tuple[Algorithm, ...]] = ("mtime", "ctime")
ALGORITHMS: Final[tuple[Algorithm, ...]] = (*HEX_LENGTH, *TIMES, "none")

_TEXT = re.compile(r"\{(\w{3,10})\}(.*)", re.ASCII | re.DOTALL)
_HEX = frozenset("0123456789abcdef")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?: ?(UTC|Z|[+-]\d\d:?\d\d))?", re.ASCII)


def is_algorithm(name: str) -> TypeGuard[Algorithm]:
    """Return whether `name` is one of the checksum types Puppet knows."""
    return name in ALGORITHMS


def algorithm(name: str) -> Algorithm:
    """Return `name` itself, when it is a checksum type; BadRequest otherwise."""
    if is_algorithm(name):
        return name
    raise BadRequest(f"Unsupported checksum type {quoted_for_log(name)}", hint=f"Known checksum types: {', '.join(ALGORITHMS)}")


def is_digest(name: str) -> bool:
    """Return whether checksums of this type depend on all of the content (so not lite, time or none)."""
    return name in HEX_LENGTH and not name.endswith("lite")


def valid(name: Algorithm, value: str) -> bool:
    """Return whether `value` (without the `{type}` prefix) has the form of checksum type `name`; hex digits are lower case."""
    if name in TIMES:
        return _TIME.fullmatch(value) is not None
    return len(value) == HEX_LENGTH.get(name, 0) and _HEX.issuperset(value)


class Sum(Protocol):
    """A checksum in the making."""

    def update(self, data: bytes | memoryview, /) -> None: ...
    def hexdigest(self) -> str: ...


class _Lite:
    """Forwards the first 512 bytes."""

    def __init__(self, digest: Sum) -> None:
        self._digest = digest
        self._left = LITE_BYTES

    def update(self, data: bytes | memoryview, /) -> None:
        if self._left:
            head = data[: self._left]
            self._left -= len(head)
            self._digest.update(head)

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


class _Blank:
    """The types `none`, `mtime` and `ctime`, which ignore the content."""

    def update(self, data: bytes | memoryview, /) -> None:
        del data

    def hexdigest(self) -> str:
        return ""


def new(name: Algorithm) -> Sum:
    """Return an empty sum of type `name`, to be fed block by block; types that ignore the content result in ''."""
    if name not in HEX_LENGTH:
        return _Blank()
    digest = hashlib.new(name.removesuffix("lite"), usedforsecurity=False)
    return _Lite(digest) if name.endswith("lite") else digest


def of_bytes(name: Algorithm, data: bytes) -> str:
    """Return the hex value for `data`, without prefix; '' for `none` and times."""
    total = new(name)
    total.update(data)
    return total.hexdigest()


def of_file(name: Algorithm, fd: int, *, limit: int | None = None) -> str:
    """
    Return the value for the open file `fd`, read from its start by position; its offset does not move.

    Args:
        limit: The most bytes to read. None: to the end.
    """
    if name in TIMES:
        info = os.fstat(fd)
        return time_text(info.st_mtime if name == "mtime" else info.st_ctime)
    total = new(name)
    if name == "none":
        return ""
    end = LITE_BYTES if name.endswith("lite") else limit
    if limit is not None and end is not None:
        end = min(end, limit)
    buffer = bytearray(BLOCK)
    view = memoryview(buffer)
    offset = 0
    while end is None or offset < end:
        count = os.preadv(fd, [view if end is None else view[: min(BLOCK, end - offset)]], offset)
        if not count:
            break
        total.update(view[:count])
        offset += count
    return total.hexdigest()


def time_text(seconds: float) -> str:
    """Return a file time as a checksum value: `2026-11-20 21:48:31 +0000`, always UTC, whole seconds."""
    return datetime.fromtimestamp(int(seconds // 1), UTC).strftime("%Y-%m-%d %H:%M:%S +0000")


def time_of(value: str) -> datetime:
    """Return the time that a checksum value or a `Time` as Ruby prints it names; without a zone: UTC. BadData for anything else."""
    match = _TIME.fullmatch(value)
    if match is None:
        raise BadData(f"Not a time: {quoted_for_log(value)}")
    moment, fraction, zone = match.groups()
    zone = "+00:00" if zone in (None, "UTC", "Z") else zone
    try:
        return datetime.fromisoformat(f"{moment.replace('T', ' ')}.{(fraction or '0')[:6].ljust(6, '0')}{zone}").astimezone(UTC)
    except (ValueError, OverflowError) as err:
        raise BadData(f"Not a time: {quoted_for_log(value)}") from err


@dataclass(frozen=True, slots=True)
class Checksum:
    """One checksum; `str()` gives `{type}value`."""

    type: Algorithm
    value: str

    def __str__(self) -> str:
        return f"{{{self.type}}}{self.value}"

    @classmethod
    def parse(cls, text: str) -> Checksum:
        """
        Return the checksum that `text` spells, prefix and value checked to the last character.

        Raises:
            BadData: no prefix, an unknown type, or a value that does not have the type's form.
        """
        match = _TEXT.fullmatch(text)
        if match is None or not is_algorithm(match[1]):
            raise BadData(f"Not a checksum: {quoted_for_log(text)}")
        checksum = cls(match[1], match[2])
        if checksum.type != "none" and not valid(checksum.type, checksum.value):
            raise BadData(f"Not a checksum of type {checksum.type}: {quoted_for_log(text)}")
        return checksum

    @classmethod
    def of(cls, name: Algorithm, data: bytes) -> Checksum:
        return cls(name, of_bytes(name, data))


def looks_like_checksum(text: str) -> bool:
    """Return whether Puppet takes `text` as a checksum rather than content: `{word}` and something that is not blank after it."""
    match = _TEXT.match(text)
    return match is not None and bool(match[2]) and not match[2][0].isspace()


def matches(expected: Checksum, actual: Checksum) -> bool:
    """Return whether `actual` satisfies `expected`: digests are equal, a time is not older. Nothing satisfies `none`."""
    if expected.type != actual.type or expected.type == "none":
        return False
    if expected.type in TIMES:
        return time_of(actual.value) >= time_of(expected.value)
    return expected.value == actual.value

"""
Calls whose results may differ the next time, recorded so that they can be made again: of programs, and of Ruby that may read anything.

A compilation is a function of these results and of inputs that are known otherwise. As long as all calls, made again in their order, have
the results that they had, a compilation would make the same calls again and end in the same catalog. If one of them has another result,
the catalog is compiled, which makes its own calls. A function that answers differently each time is found out, and called once only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from shared.errors import PuppetError

MAX_CALLS = 1_000
"""Calls of one catalog that are worth making again."""
MAX_OCTETS = 1 << 19
"""Octets of their arguments, and of what Ruby asked meanwhile."""
MAX_CHANGES = 2
"""Other results in a row, after which something is not called again for nothing."""


class RepeatableCall(Protocol):
    """A call with what is needed to make it again, and a digest of its result."""

    @property
    def subject(self) -> str:
        """The program, function or template that is called."""

    @property
    def result(self) -> bytes: ...

    @property
    def size(self) -> int:
        """The octets that it takes."""


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """The call of a program, and a digest of its output; b"" where nobody uses it."""

    command: tuple[str, ...]
    result: bytes

    @property
    def subject(self) -> str:
        return self.command[0]

    @property
    def size(self) -> int:
        return sum(map(len, self.command))


class RepeatedCalls:
    """
    The calls of compilations of one environment.

    Args:
        begin: Prepares a round of calls.
        again: Makes a call again and returns the digest of its result; PuppetError when it has none.
    """

    def __init__(self, begin: Callable[[], None], again: Callable[[RepeatableCall], bytes]) -> None:
        self._begin = begin
        self._again = again
        self._made: list[RepeatableCall] = []
        self._octets = 0
        self._is_recording = False
        self._changes: Counter[str] = Counter()  # other results in a row, by subject

    @contextmanager
    def record(self) -> Iterator[None]:
        """Record the calls inside the context, for one catalog; they are discarded afterwards."""
        self._made, self._octets, self._is_recording = [], 0, True
        try:
            yield
        finally:
            self._made, self._octets, self._is_recording = [], 0, False

    def wants(self, subject: str) -> bool:
        """Return whether it makes sense to record a call of something."""
        return self._is_recording and self._changes[subject] < MAX_CHANGES

    def add(self, call: RepeatableCall) -> bool:
        """Record a call; return whether it will be made again before the catalog is used again."""
        if not self.wants(call.subject):
            return False
        self._made.append(call)
        self._octets += call.size
        return len(self._made) <= MAX_CALLS and self._octets <= MAX_OCTETS

    def made(self) -> Sequence[RepeatableCall]:
        """Return the recorded calls, in their order."""
        return tuple(self._made)

    def are_unchanged(self, calls: Sequence[RepeatableCall]) -> bool:
        """Make calls again; return whether all have the results that they had."""
        if not calls:
            return True
        self._begin()
        for call in calls:
            try:
                is_same = self._again(call) == call.result
            except PuppetError:
                is_same = False  # the compilation that follows reports it, with its place
            if not is_same:
                self._changes[call.subject] += 1
                return False
        for call in calls:
            self._changes.pop(call.subject, None)
        return True


def digest_of_result(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()

"""
Calls whose results may differ the next time, recorded so that they can be made again: of programs, and of Ruby that may read anything.

A compilation is a function of these results and of inputs that are known otherwise. As long as all calls, made again in their order, have
the results that they had, a compilation would make the same calls again and end in the same catalog. If one of them has another result,
the catalog is compiled, which makes its own calls. A function that answers differently each time is found out, and called once only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from shared.errors import PuppetError

MAX_CALLS = 1_000
"""Calls of one catalog that are worth making again."""
MAX_OCTETS = 1 << 19
"""Octets of their arguments, and of what Ruby asked meanwhile."""
MAX_CHANGES = 2
"""Other results in a row for a node, after which something is not called again for nothing."""
MAX_KNOWN = 20_000
"""Nodes and subjects of which such results are counted."""
MAX_RESULTS = 20_000
_ROOT = "\0"  # stands for the folder of the environment; no text in JSON has it
_OCTETS = "utf-8", "surrogateescape"
_ENTRY = 300  # octets that a call takes beside its texts, roughly


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """The call of a program, and a digest of its output; b"" where nobody uses it."""

    command: tuple[str, ...]
    result: bytes

    @property
    def subject(self) -> str:
        return self.command[0]

    @property
    def label(self) -> str:
        return "generate()"

    @property
    def size(self) -> int:
        return sum(map(len, self.command))


class RubyCode(NamedTuple):
    """
    A function or template.

    Attributes:
        name: of a function; '' for a template.
    """

    name: str
    text: str
    file: str | None

    @property
    def op(self) -> str:
        """The operation that runs it."""
        return "call" if self.name else "render"

    @property
    def loading(self) -> tuple[str, *tuple[str | None, ...]]:
        """The operation that loads it, with its arguments."""
        return ("load", *self) if self.name else ("template", self.text, self.file)

    @property
    def subject(self) -> str:
        """What it is called by."""
        return self.name or self.file or self.text


@dataclass(frozen=True, slots=True)
class RubyCall:
    """
    A call, in the JSON that Ruby gets.

    Attributes:
        args: The arguments; those that choose the code are left out.
        asked: What Ruby asked, and the answers.
        result: A digest of what it returned, and of its changes to what it was given.
    """

    code: RubyCode
    args: bytes
    asked: tuple[tuple[bytes, bytes], ...]
    result: bytes

    @property
    def subject(self) -> str:
        return self.code.subject

    @property
    def label(self) -> str:
        return f"{self.code.name}()" if self.code.name else self.code.file or "inline_template()"

    @property
    def size(self) -> int:
        return _ENTRY + len(self.args) + sum(len(question) + len(answer) for question, answer in self.asked)


RepeatableCall = ProgramCall | RubyCall


class RepeatedCalls:
    """
    The calls of compilations of one environment.

    Args:
        begin: Prepares a round of calls.
        again: Makes a call again and returns the digest of its result; PuppetError when it has none.
    Attributes:
        results: The results of calls by their digests, none of which is made again twice; None: each is.
    """

    results: dict[bytes, bytes] | None = None

    def __init__(self, begin: Callable[[], None], again: Callable[[RepeatableCall], bytes]) -> None:
        self._begin = begin
        self._again = again
        self._made: list[RepeatableCall] = []
        self._octets = 0
        self._node: str | None = None  # whose catalog is compiled; None: nothing is recorded
        self._changes: Counter[tuple[str, str]] = Counter()  # other results in a row, by node and subject

    @contextmanager
    def record(self, node: str) -> Iterator[None]:
        """Record the calls inside the context, for the catalog of one node; they are discarded afterwards."""
        self._made, self._octets, self._node = [], 0, node
        try:
            yield
        finally:
            self._made, self._octets, self._node = [], 0, None

    def wants(self, subject: str) -> bool:
        """Return whether it makes sense to record a call of something."""
        return self._node is not None and len(self._made) < MAX_CALLS and self._changes[self._node, subject] < MAX_CHANGES

    def add(self, call: RepeatableCall) -> bool:
        """Record a call; return whether it will be made again before the catalog is used again."""
        if not self.wants(call.subject) or self._octets + call.size > MAX_OCTETS:
            return False
        self._made.append(call)
        self._octets += call.size
        return True

    def made(self) -> Sequence[RepeatableCall]:
        """Return the recorded calls, in their order."""
        return tuple(self._made)

    def are_unchanged(self, node: str, calls: Sequence[RepeatableCall]) -> bool:
        """Make the calls of a node's catalog again; return whether all have the results that they had."""
        if not calls:
            return True
        self._begin()
        for call in calls:
            try:
                is_same = self._result(call) == call.result
            except PuppetError:
                is_same = False  # the compilation that follows reports it, with its place
            if not is_same:
                # Of this node: what has changed once, for all nodes, has another result for each of them.
                if len(self._changes) >= MAX_KNOWN:
                    self._changes.clear()
                self._changes[node, call.subject] += 1
                return False
        for call in calls:
            self._changes.pop((node, call.subject), None)
        return True

    def _result(self, call: RepeatableCall) -> bytes:
        if self.results is None:
            return self._again(call)
        key = digest_of_result(repr(call).encode("utf-8", "surrogatepass"))  # a call may take half a megabyte
        if key not in self.results:
            if len(self.results) >= MAX_RESULTS:
                self.results.clear()
            self.results[key] = self._again(call)
        return self.results[key]


def calls_to_data(calls: Sequence[RepeatableCall], root: str) -> Any:
    """Return calls as plain data in which the folder of the environment has no name, so that they can be made in another one."""
    codes: dict[RubyCode, int] = {}
    data: list[Any] = []
    for call in calls:
        if isinstance(call, ProgramCall):
            data.append([[without_root(word, root) for word in call.command], call.result.hex()])
            continue
        code = codes.setdefault(call.code, len(codes))
        asked = [[without_root(part.decode(*_OCTETS), root) for part in pair] for pair in call.asked]
        data.append([code, without_root(call.args.decode(*_OCTETS), root), asked, call.result.hex()])
    return [[[without_root(part, root) if part else part for part in code] for code in codes], data]


def calls_from_data(data: Any, root: str) -> Sequence[RepeatableCall]:
    """Return the calls of `calls_to_data` for the environment in a folder."""

    def placed(text: str) -> str:
        return text.replace(_ROOT, root)

    codes = [RubyCode(name, placed(text), placed(file) if file else None) for name, text, file in data[0]]
    calls: list[RepeatableCall] = []
    for call in data[1]:
        if isinstance(call[0], list):
            calls.append(ProgramCall(tuple(map(placed, call[0])), bytes.fromhex(call[1])))
            continue
        code, args, asked, result = call
        pairs = tuple((placed(question).encode(*_OCTETS), placed(answer).encode(*_OCTETS)) for question, answer in asked)
        calls.append(RubyCall(codes[code], placed(args).encode(*_OCTETS), pairs, bytes.fromhex(result)))
    return calls


def without_root(text: str, root: str) -> str:
    """Return a text in which a sign stands for a folder, wherever a path in it begins with that."""
    return _path_below(root).sub(_ROOT, text) if root in text else text


@lru_cache(16)
def _path_below(root: str) -> re.Pattern[str]:
    return re.compile(re.escape(root) + r"(?![\w.-])")


def digest_of_result(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()

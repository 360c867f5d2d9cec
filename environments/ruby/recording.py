"""Calls of Ruby that may read something else than it is given, recorded with what Ruby asks meanwhile, and made again from that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shared.data import plainjson
from shared.errors import EvaluationError

from ..repeated_calls import MAX_OCTETS, RubyCall, RubyCode, digest_of_result, without_root

_OWN = frozenset(("held", "own", "object", "proc"))
"""Values that stand for objects of Ruby's, whose numbers are others the next time."""
_CHANGING = frozenset(("set",))
"""Questions that have a number of such an object."""
NOT_FOUND = 0
"""The number of the exception that says that a look-up finds nothing, which Ruby raises by itself."""


class Recording:
    """
    One call while it runs.

    Args:
        data: The arguments in the form for Ruby.
        depth: The number of questions to Ruby that are running, this one included.
        root: The folder of the environment.
        is_wanted: Whether it will be made again if that is possible.

    Attributes:
        is_repeatable: Whether it can be made again.
        has_own: Whether there are objects of Ruby's in its result.
    """

    def __init__(self, code: RubyCode, data: Any, depth: int, root: str, *, is_wanted: bool) -> None:
        self.code = code
        self.root = root
        self.depth = depth
        self.has_own = False
        self.is_repeatable = is_wanted and not has_own(data)
        self._args = plainjson.dumps_pson(data) if self.is_repeatable else b""
        self._asked: list[tuple[bytes, bytes]] = []
        self._octets = 0  # of what was asked
        self._result = b""

    def note(self, question: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Record a question of Ruby's with its answer."""
        if not self.is_repeatable:
            return
        if "value" not in answer or question["ask"] in _CHANGING or has_own(question["args"]) or has_own(answer["value"]):
            self.is_repeatable = False
            return
        pair = _question(question), plainjson.dumps_pson(answer)
        self._asked.append(pair)
        self._octets += sum(map(len, pair))
        self.is_repeatable = self._octets <= MAX_OCTETS

    def end(self, message: Mapping[str, Any]) -> None:
        """Record Ruby's answer."""
        if self.is_repeatable:
            self.has_own = has_own(message.get("value"))
            self._result = result_of(message, self.root)

    def call(self) -> RubyCall | None:
        """Return the call, which has ended; None when it cannot be made again."""
        return RubyCall(self.code, self._args, tuple(self._asked), self._result) if self.is_repeatable and self._result else None


class Replay:
    """
    Answers what Ruby asks while a call is made again, as the compilation answered.

    Args:
        register: Returns a number for an error.
        root: The folder of the environment.
    """

    def __init__(self, call: RubyCall, register: Callable[[Exception], int], root: str) -> None:
        self._register = register
        self.root = root
        self.args = plainjson.loads_trusted(call.args)
        self._left = list(reversed(call.asked))

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a question; an error when Ruby asks something else than it did."""
        if self._left and self._left[-1][0] == _question(question):
            answer: dict[str, Any] = plainjson.loads_trusted(self._left.pop()[1])
            return answer
        self._left = [(b"", b"")]  # no question is this one, and there is one left
        error = EvaluationError("Ruby asks something else than it did")
        return {"raised": self._register(error), "message": error.message}

    def result_of(self, message: Mapping[str, Any]) -> bytes:
        """Return the digest of Ruby's answer; b'' when it has not asked the same questions."""
        return b"" if self._left else result_of(message, self.root)


def result_of(message: Mapping[str, Any], root: str) -> bytes:
    """
    Return a digest of Ruby's answer; b'' for an error, and for a block.

    Objects of Ruby's count by their class and text: those that are handed back make the catalog uncacheable. The environment's folder does
    not count.
    """
    found = {name: message[name] for name in ("value", "changes", "passing") if name in message}
    if not found or found.get("passing", NOT_FOUND) != NOT_FOUND:
        return b""
    text = plainjson.dumps_pson(_without_numbers(found)).decode("utf-8", "surrogateescape")
    return digest_of_result(without_root(text, root).encode("utf-8", "surrogateescape"))


def _question(message: Mapping[str, Any]) -> bytes:
    return plainjson.dumps_pson({name: part for name, part in message.items() if name != "number"})


def has_own(data: Any) -> bool:
    """Return whether an object of Ruby's is in a value for Ruby, or from it."""
    if data.__class__ is list:
        return any(map(has_own, data))
    if data.__class__ is dict:
        return data.get("$") in _OWN or any(map(has_own, data.values()))
    return False


def _without_numbers(data: Any) -> Any:
    """Return a value from Ruby without the numbers of objects of Ruby's."""
    if data.__class__ is list:
        return [_without_numbers(item) for item in data]
    if data.__class__ is dict:
        return {name: _without_numbers(item) for name, item in data.items() if name != "id" or data.get("$") not in _OWN}
    return data

"""Calls of Ruby that may read something else than it is given, recorded with what Ruby asks meanwhile, and made again from that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from shared.data import plainjson
from shared.errors import EvaluationError

from ..repeated_calls import digest_of_result

_ENTRY = 300  # octets that a call takes beside its texts, roughly
_OWN = frozenset(("held", "own", "object", "proc"))
"""Values that stand for objects of Ruby's, whose numbers are others the next time."""
_CHANGING = frozenset(("set",))
"""Questions that have a number of such an object."""
NOT_FOUND = 0
"""The number of the exception that says that a look-up finds nothing, which Ruby raises by itself."""


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
    def size(self) -> int:
        return _ENTRY + len(self.args) + sum(len(question) + len(answer) for question, answer in self.asked)


class Recording:
    """
    One call while it runs.

    Args:
        data: The arguments in the form for Ruby.
        depth: The number of questions to Ruby that are running, this one included.

    Attributes:
        is_repeatable: Whether it can be made again.
        has_own: Whether there are objects of Ruby's in its result.
    """

    def __init__(self, code: RubyCode, data: Any, depth: int) -> None:
        self.code = code
        self.depth = depth
        self.has_own = False
        self.is_repeatable = not has_own(data)
        self._args = plainjson.dumps_pson(data)
        self._asked: list[tuple[bytes, bytes]] = []
        self._result = b""

    def note(self, question: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Record a question of Ruby's with its answer."""
        if "value" not in answer or question["ask"] in _CHANGING or has_own(question["args"]) or has_own(answer["value"]):
            self.is_repeatable = False
        elif self.is_repeatable:
            self._asked.append((_question(question), plainjson.dumps_pson(answer)))

    def end(self, message: Mapping[str, Any]) -> None:
        """Record Ruby's answer."""
        self.has_own = has_own(message.get("value"))
        self._result = result_of(message)

    def call(self) -> RubyCall | None:
        """Return the call, which has ended; None when it cannot be made again."""
        return RubyCall(self.code, self._args, tuple(self._asked), self._result) if self.is_repeatable and self._result else None


class Replay:
    """
    Answers what Ruby asks while a call is made again, as the compilation answered.

    Args:
        register: Returns a number for an error.
    """

    def __init__(self, call: RubyCall, register: Callable[[Exception], int]) -> None:
        self._register = register
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
        return b"" if self._left else result_of(message)


def result_of(message: Mapping[str, Any]) -> bytes:
    """
    Return a digest of Ruby's answer; b'' for an error, and for a block.

    Objects of Ruby's count by their class and text: those that are handed back make the catalog uncacheable.
    """
    found = {name: message[name] for name in ("value", "changes", "passing") if name in message}
    if not found or found.get("passing", NOT_FOUND) != NOT_FOUND:
        return b""
    return digest_of_result(plainjson.dumps_pson(_without_numbers(found)))


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

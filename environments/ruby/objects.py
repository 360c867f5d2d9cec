"""The objects that Ruby and this process refer to by numbers."""

from __future__ import annotations

from typing import Any

from language.values.core import Value
from shared.errors import EvaluationError


class RubyObjects:
    """Values that stay in this process while Ruby works with them, and Ruby's own objects that values stand for."""

    def __init__(self) -> None:
        self._numbers = 0
        self._registered: dict[int, Any] = {}  # values that Ruby knows by a number, until the outermost question is answered
        self._ruby_objects: dict[int, tuple[Value, int]] = {}  # by identity: values that Ruby set, and its numbers for its own objects
        self._caches: dict[int, object] = {}  # by identity: those of look-ups, whose content Ruby has
        self._scopes: list[Any] = []  # the scopes of the running questions, innermost last

    def register(self, value: Any) -> int:
        """Return a number by which Ruby can refer to a value."""
        self._numbers += 1
        self._registered[self._numbers] = value
        return self._numbers

    def registered(self, number: int) -> Any:
        """Return the value of a number that `register` gave."""
        if number not in self._registered:
            raise EvaluationError("Ruby gave a value that it was given in an earlier call", hint="It may not keep it.")
        return self._registered[number]

    def keep_own(self, value: Value, number: int) -> Value:
        """Return a collection; as long as one catalog is compiled, Ruby gets its own of that number when it is handed back."""
        if self._scopes[-1] is not None:
            self._ruby_objects[id(value)] = (value, number)
        return value

    def cache_number(self, cache: object) -> int:
        """Return the number by which Ruby knows the cache of a back end, as long as one catalog is compiled."""
        self._caches[id(cache)] = cache
        return id(cache)

    def own_number(self, value: Value) -> int | None:
        """Return Ruby's number for a collection; None when Ruby has none of its own for it."""
        own = self._ruby_objects.get(id(value)) if self._ruby_objects else None
        return None if own is None else own[1]

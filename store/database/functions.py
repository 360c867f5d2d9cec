"""Functions of SQL that PostgreSQL has and SQLite lacks."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .json_values import register_json_functions
from .time_formats import format_time

MATCH_TIMEOUT = 1.0
"""Seconds for one match of a regular expression."""

MATCHES_TIMEOUT = 10.0
"""Seconds of processor time for all matches of a transaction that are slow; usual ones take some microseconds each."""

_SLOW = 0.001  # seconds

if TYPE_CHECKING:
    import regex


class MatchBudget:
    """
    The time that regular expressions may take in one transaction.

    SQLite checks the time between instructions of its own: a thousand slow matches would take a thousand times what one of them may.
    """

    def __init__(self) -> None:
        self.renew(None)

    def renew(self, seconds: float | None) -> None:
        """Begin a transaction, which may take this many seconds."""
        self._left = MATCHES_TIMEOUT if seconds is None else min(MATCHES_TIMEOUT, seconds)
        # The processor's time is a system call: it is asked for from the first match on that took long, be it for want of a processor.
        self._clock = time.perf_counter

    def regexp(self, pattern: str | None, value: Any) -> int | None:
        """`value REGEXP pattern`: whether a pattern of `regex` is found in the value; NULL where one of them is NULL. TimeoutError."""
        if pattern is None or value is None:
            return None
        if self._left <= 0:
            raise TimeoutError
        text = value if isinstance(value, str) else str(value)
        clock = self._clock
        began = clock()
        try:
            # `concurrent` lets other threads, among them the event loop's, go on.
            return int(_compiled(pattern).search(text, timeout=min(MATCH_TIMEOUT, self._left), concurrent=True) is not None)
        finally:
            spent = clock() - began
            if spent > _SLOW:
                if clock is time.thread_time:
                    self._left -= spent
                self._clock = time.thread_time


def register_functions(create_function: Callable[..., Any], matches: MatchBudget) -> None:
    """Make the functions known to a connection whose `create_function` this is; `matches` is renewed with each of its transactions."""
    create_function("regexp", 2, matches.regexp, deterministic=True)
    create_function("to_char", 2, format_time, deterministic=True)
    register_json_functions(create_function)


@lru_cache(256)
def _compiled(pattern: str) -> regex.Pattern[str]:
    import regex  # 1 MB for the few queries with regular expressions

    return regex.compile(pattern, regex.DOTALL)

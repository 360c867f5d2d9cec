"""Jumps: how `break`, `next` and `return` leave a lambda, a loop or a body. Not errors; nothing may swallow them."""

from __future__ import annotations

from typing import Any

from shared.errors import EvaluationError, Location

__all__ = ["Break", "Jump", "Next", "Return"]


class Jump(Exception):
    """The base; `value` is what the place jumped to evaluates to."""

    word = ""

    def __init__(self, value: Any = None) -> None:
        super().__init__(value)
        self.value = value

    def stray(self, where: Location | None = None) -> EvaluationError:
        """The error when there is nothing to jump to; `where` is the call's place."""
        place = f" {where}" if where else ""
        return EvaluationError(f"{self.word}() from context where this is illegal{place}")


class Break(Jump):
    """Ends the iteration whose lambda is running; caught by the iterating function."""

    word = "break"

    def __init__(self) -> None:
        super().__init__(None)


class Next(Jump):
    """Ends the lambda, function or body that is running, with a value; caught by the lambda's own code."""

    word = "next"


class Return(Jump):
    """Ends the function or body around the lambda, with a value; caught by the function's own code."""

    word = "return"

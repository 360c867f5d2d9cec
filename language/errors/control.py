"""The exceptions by which `break`, `next` and `return` leave a lambda, a loop or a body. No code may swallow them."""

from __future__ import annotations

from typing import Any

from shared.errors import EvaluationError, Location


class Jump(Exception):
    """The base class of jumps; `value` is the value of the construct that the jump leaves."""

    word = ""

    def __init__(self, value: Any = None) -> None:
        super().__init__(value)
        self.value = value

    def stray(self, where: Location | None = None) -> EvaluationError:
        """Return the error for a jump that nothing catches; `where` is the place of the call."""
        place = f" {where}" if where else ""
        return EvaluationError(f"{self.word}() from context where this is illegal{place}")


class Break(Jump):
    """Ends the iteration whose lambda is running; the iterating function catches it."""

    word = "break"

    def __init__(self) -> None:
        super().__init__(None)


class Next(Jump):
    """Ends the lambda, function or body that is running, with a value; the code of that lambda, function or body catches it."""

    word = "next"


class Returned:
    """The value that a function with a declared return type was left with by `return`: its type is not checked."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Return(Jump):
    """Ends the function or body around the lambda, with a value; the function's own code catches it."""

    word = "return"

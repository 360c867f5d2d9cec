"""Evaluation errors that say all there is to say: no "Error while evaluating …" in front of them."""

from __future__ import annotations

from shared.errors import EvaluationError

__all__ = ["BadOperand", "LanguageError", "OperandError", "UnsetParameter"]


class LanguageError(EvaluationError):
    """
    An error of the language itself; `operand` names the part of the construct that it points at.

    Operands are named by the code generator's marks: `0` and `1` of operators, `title 1`, `attribute mode`, `$x`. Any
    other EvaluationError without a place gets one at the construct being evaluated, and says which construct it was.
    """

    def __init__(self, message: str, *, operand: str | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.operand = operand


class BadOperand(EvaluationError):
    """
    An operand that cannot be used; the message is complete, as that of a LanguageError.

    Attributes:
        operand: the number of the operand at whose place the error is reported. Of binary operators, 0 is left and 1 is right; of
            `x[a, b]`, -1 is x, 0 is a and 1 is b. None: the place is that of the whole expression.
    """

    def __init__(self, message: str, operand: int | None = None, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.operand = operand


class UnsetParameter(EvaluationError):
    """A parameter's default expression reads a parameter that has no value yet."""


class OperandError(EvaluationError):
    """An error of one operand, which is named as the construct that failed: `Error while evaluating a '=>' expression`."""

    def __init__(self, message: str, *, operand: str, label: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.operand = operand
        self.label = label

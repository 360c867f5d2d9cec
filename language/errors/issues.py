"""Evaluation errors with a complete message: no "Error while evaluating …" is put in front of it."""

from __future__ import annotations

from shared.errors import EvaluationError


class LanguageError(EvaluationError):
    """
    An error of the language itself.

    An EvaluationError of another class that has no place gets the place of the construct that was being evaluated, and its message
    names that construct.

    Attributes:
        operand: the part of the construct at whose place the error is reported, by the names in the code generator's marks: `0` and
            `1` of operators, `title 1`, `attribute mode`, `$x`.
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
    """Raised when the default of a parameter reads a parameter that has no value yet."""


class OperandError(EvaluationError):
    """An error of one operand whose message names the operand's construct: `Error while evaluating a '=>' expression`."""

    def __init__(self, message: str, *, operand: str, label: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.operand = operand
        self.label = label

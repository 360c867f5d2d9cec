"""How lookups fail. The kinds differ in who adds a place and a prefix to the message."""

from __future__ import annotations

from shared.errors import EvaluationError, Location

from ..compiler.errors.locations import FINAL

__all__ = ["BadUse", "DataError"]


class DataError(EvaluationError):
    """
    The data, or its configuration, is wrong. It is no error of the manifest, so no place in one is added.

    `final`: the message is not prefixed with the key that was looked up, either.
    """

    def __init__(self, message: str, *, where: Location | None = None, hint: str = "", final: bool = False) -> None:
        super().__init__(message, where=where or FINAL, hint=hint)
        self.final = final or where is not None


class BadUse(EvaluationError):
    """A function of the language, or a merge strategy, was used wrongly: the place in the manifest is named."""

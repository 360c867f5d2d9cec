"""The errors of lookups. The classes differ in the code that adds a location and a prefix to the message."""

from __future__ import annotations

from language.errors.locations import FINAL
from shared.errors import EvaluationError, Location


class DataError(EvaluationError):
    """
    The data, or its configuration, is wrong. The manifest is not at fault, so no location in it is added.

    Attributes:
        final: the message does not get the prefix with the key that was looked up, either.
    """

    def __init__(self, message: str, *, where: Location | None = None, hint: str = "", final: bool = False) -> None:
        super().__init__(message, where=where or FINAL, hint=hint)
        self.final = final or where is not None


class LookupUsageError(EvaluationError):
    """A function of the language, or a merge strategy, was used wrongly: the message names the location in the manifest."""

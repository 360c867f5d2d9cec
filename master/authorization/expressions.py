"""Regular expressions of a site's own rules, matched on the event loop, which no text and no pattern may block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import regex

from shared.errors import Denied

SECONDS = 0.02  # of processor time; matching a path takes thousandths of that
ATTEMPTS = 3
"""The most attempts of a match: the time is that of all threads of the process, and another one may have spent it."""
Invalid = regex.error


@dataclass(frozen=True, slots=True)
class Expression:
    """One compiled pattern. Two of the same source are equal."""

    source: str
    _pattern: regex.Pattern[str] = field(compare=False, repr=False)

    @classmethod
    def of(cls, source: str) -> Expression:
        """Compile an expression in Python's syntax; raise Invalid."""
        try:
            return cls(source, regex.compile(source))
        except RecursionError as err:
            raise Invalid("it is nested too deeply") from err

    @property
    def groups(self) -> int:
        return self._pattern.groups

    def search(self, text: str) -> Sequence[str] | None:
        """
        Return the groups of the first match ('' for a group that took no part in it); None when there is no match.

        Raises:
            Denied: The pattern has more ways to try on this text than there is time for, as `(a+)+$` can have.
        """
        for _ in range(ATTEMPTS):
            try:
                match = self._pattern.search(text, timeout=SECONDS)
            except TimeoutError:
                continue
            return None if match is None else tuple(group or "" for group in match.groups())
        raise Denied(
            "A regular expression of the rules takes too long on this path",
            hint=f"Write {self.source} without repeats inside repeats.",
        )

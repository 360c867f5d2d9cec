"""Regular expressions of a site's own rules, matched on the event loop: no text and no pattern may hold it up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import regex

from shared.errors import Denied

SECONDS = 0.02  # of processor time; what matches paths takes thousandths of that
Invalid = regex.error


@dataclass(frozen=True, slots=True)
class Expression:
    """One pattern, ready to be searched for. Two of the same source are equal."""

    source: str
    _pattern: regex.Pattern[str] = field(compare=False, repr=False)

    @classmethod
    def of(cls, source: str) -> Expression:
        """The expression in Python's syntax; Invalid."""
        return cls(source, regex.compile(source))

    @property
    def groups(self) -> int:
        return self._pattern.groups

    def search(self, text: str) -> Sequence[str] | None:
        """
        What the groups hold where it is found first ('' for one without a part in that); None: nowhere.

        Raises:
            Denied: the pattern has more ways to try on this text than there is time for, as `(a+)+$` can have.
        """
        try:
            found = self._pattern.search(text, timeout=SECONDS)
        except TimeoutError:
            raise Denied(
                "A regular expression of the rules takes too long on this path",
                hint=f"Write {self.source} without repeats inside repeats.",
            ) from None
        return None if found is None else tuple(group or "" for group in found.groups())

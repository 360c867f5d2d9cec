"""The words in a setting's value. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(slots=True)
class Words:
    """A value split into words: `joiner` separates a word's name and value; `exact`: words have no value."""

    items: list[str] = field(default_factory=list)
    separator: str = " "
    quote: str = ""
    joiner: str = ""
    exact: bool = False

    @classmethod
    def of(cls, value: str | None, *, separator: str, quote: str, joiner: str, exact: bool) -> Words:
        """Return the words of a value, which may be quoted; None: there is no value yet, and `quote` will be around it."""
        if value is None:
            return cls([], separator, quote, joiner, exact)
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            quote, value = value[0], value[1:-1]
        parts = re.split(re.escape(separator), value) if separator else [value]
        return cls([part.strip() for part in parts if part.strip()], separator, quote, joiner, exact)

    def __str__(self) -> str:
        return f"{self.quote}{self.separator.join(self.items)}{self.quote}"

    def _is(self, item: str, name: str) -> bool:
        return item == name if self.exact else item.startswith(name + self.joiner)

    def _index(self, name: str) -> int | None:
        return next((number for number, item in enumerate(self.items) if self._is(item, name)), None)

    def get(self, name: str) -> str | None:
        """Return the text after a word's name; None: there is no such word."""
        at = self._index(name)
        return None if at is None else self.items[at][len(name) + len(self.joiner) :]

    def set(self, name: str, value: str, where: str = "end", reference: str = "") -> None:
        """Set a word's value; a new word goes to the start, the end, before or after another, or to an index."""
        new = f"{name}{self.joiner}{value}"
        if self._index(name) is not None:
            self.items = [new if self._is(item, name) else item for item in self.items]
            return
        at = len(self.items)
        if where == "start":
            at = 0
        elif where == "index":
            at = min(int(reference) if reference.isdigit() else 0, at)
        elif where in ("before", "after"):
            position = self._index(reference)
            at = at if position is None else position + (where == "after")
        self.items.insert(at, new)

    def remove(self, name: str) -> None:
        self.items = [item for item in self.items if not self._is(item, name)]

"""Differences of texts, bounded in size and time."""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass

CONTEXT = 2
"""Lines around a change."""
MAX_LINES = 120
"""Lines of a diff that is shown."""
MAX_WIDTH = 500
"""Characters of a line that is shown."""
MAX_COMPARED = 4_000
"""Lines of both texts together that are compared line by line; of longer ones only the part that differs is shown."""
MAX_CHANGED = 10_000
"""Characters of the changed lines that are kept to be compared with those of other nodes."""
MAX_KEPT = 4_000
"""Diffs that are kept in memory: many nodes have the same."""


@dataclass(frozen=True, slots=True)
class TextDiff:
    """
    The difference of two texts.

    Attributes:
        lines: of a unified diff without file names; `count` of them differ.
        changed: the lines that differ, without their context; for many lines a digest.
    """

    lines: tuple[str, ...]
    changed: str
    count: int
    truncated: bool


class TextDiffs:
    """The diffs of one process, of which the latest are cached."""

    def __init__(self) -> None:
        self._kept: dict[bytes, TextDiff] = {}

    def diff(self, old: str, new: str) -> TextDiff:
        """Return the difference of two texts."""
        key = digest_of(old) + digest_of(new)
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            kept = self._kept[key] = diff_of(old, new)
        return kept


def diff_of(old: str, new: str) -> TextDiff:
    """Return the difference of two texts, line by line, within limits."""
    lines = diff_lines(old, new)
    changed = [line for line in lines if line[:1] in ("+", "-")]
    text = "\n".join(changed)
    shown = tuple(line if len(line) <= MAX_WIDTH else f"{line[:MAX_WIDTH]}…" for line in lines[:MAX_LINES])
    return TextDiff(shown, text if len(text) <= MAX_CHANGED else digest_of(text).hex(), len(changed), truncated=shown != tuple(lines))


def diff_lines(old: str, new: str) -> list[str]:
    """Return the lines of a unified diff without file names."""
    before, after = old.splitlines(), new.splitlines()
    if before == after:
        return ["-(other ends of lines)", "+(other ends of lines)"]
    if len(before) + len(after) > MAX_COMPARED:
        return _coarse(before, after)
    return list(difflib.unified_diff(before, after, n=CONTEXT, lineterm=""))[2:]


def _coarse(before: list[str], after: list[str]) -> list[str]:
    """Return the difference of long texts: all between the first and the last line that differ."""
    start = next((i for i, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), min(len(before), len(after)))
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    return [f"@@ -{start + 1},{len(old)} +{start + 1},{len(new)} @@", *(f"-{line}" for line in old), *(f"+{line}" for line in new)]


def digest_of(text: str) -> bytes:
    """Return a digest of a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()

"""The groups of a regular expression while it is read."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Groups", "OpenGroup"]


@dataclass(slots=True)
class Groups:
    """The groups that capture, and the numbers of each name; if there are named groups, plain ones do not count."""

    plain: int = 0
    named: int = 0
    numbers: dict[str, list[int]] = field(default_factory=dict)
    lengths: dict[int, int | None] = field(default_factory=dict)
    complete: bool = False

    @property
    def count(self) -> int:
        return self.named or self.plain


@dataclass(slots=True)
class OpenGroup:
    """
    A group whose closing bracket has not been read: its start in the output, and the options inside it.

    Attributes:
        opener: its opening text in the source.
        number: of a group that captures.
        option_groups: opened by `(?i)` inside it; they end with it.
        lengths: of the alternatives before the one that is read.
        optioned: of those before the first `(?i)`, when there is one.
        prefix: the length of what stands before the last `(?i)`, of which further alternatives are a part.
        length: of the alternative that is read.
    """

    start: int
    extended: bool
    unicode: bool
    opener: str = ""
    number: int = 0
    option_groups: int = 0
    lengths: list[int | None] = field(default_factory=list)
    optioned: list[int | None] | None = None
    prefix: int | None = 0
    length: int | None = 0

    @property
    def all_lengths(self) -> set[int | None]:
        """The lengths of its alternatives; those behind `(?i)` are one."""
        last = [*self.lengths, self.length]
        if self.optioned is None:
            return set(last)
        return {*self.optioned, last[0] if len(set(last)) == 1 else None}

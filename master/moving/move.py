"""A move: what a place lacks of another one is copied there, and then compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from shared.errors import Conflict
from shared.failpoints import failpoint

T = TypeVar("T")

MoveProgress = Callable[[str, int, int], None]
"""Is called with a kind, the number of groups that are done, and of all groups."""


class Collection(Protocol[T]):
    """
    Everything of one kind in one place, in groups: that of a node, for instance.

    An entry of a group is a text with the digest of its content, so that two places with the same entries hold the same.
    """

    kind: str
    place: str

    async def groups(self) -> Sequence[str]:
        """Return the names of all groups."""

    async def entries(self, group: str) -> Sequence[str]:
        """Read a group and return its entries, in their order."""

    async def changed(self, group: str) -> datetime | None:
        """Return when a group was written last; None for groups to which entries are only added."""

    async def read(self, group: str, entry: str) -> T:
        """Return an entry of the group whose entries were asked for last."""

    async def write(self, group: str, entry: str, content: T) -> None:
        """Store an entry."""


@dataclass(frozen=True, slots=True)
class MovedKind:
    """
    The result of the move of one kind.

    Attributes:
        entries: Those of the source, all of which the target has.
        copied: Those that this move has copied.
        newer: Groups that are newer in the target, and were left there.
    """

    kind: str
    entries: int
    copied: int
    newer: int


async def move_collection(source: Collection[Any], target: Collection[Any], progress: MoveProgress) -> MovedKind:
    """
    Copy what `target` lacks; return when it has all that `source` has. The source stays as it is.

    A move that was interrupted is repeated: it copies only the rest.

    Raises:
        Conflict: A group of the target lacks an entry after it was copied.
    """
    groups = await source.groups()
    entries = copied = newer = 0
    for number, group in enumerate(groups):
        progress(source.kind, number, len(groups))
        present = await source.entries(group)
        there = set(await target.entries(group))
        lacking = [entry for entry in present if entry not in there]
        if lacking and there and await _is_newer(target, source, group):
            newer += 1
            continue
        for entry in lacking:
            await target.write(group, entry, await source.read(group, entry))
            failpoint("state.moved")
        if lacking and (lost := set(present) - set(await target.entries(group))):
            raise Conflict(
                f"{len(lost)} of {len(present)} {source.kind} of {group} are not in {target.place} as they are in {source.place}",
                hint="Nothing was removed. Does another program write there?",
            )
        entries += len(present)
        copied += len(lacking)
    return MovedKind(source.kind, entries, copied, newer)


async def _is_newer(first: Collection[Any], second: Collection[Any], group: str) -> bool:
    """Return whether a group was written later in the first place."""
    times = await first.changed(group), await second.changed(group)
    return times[0] is not None and times[1] is not None and times[0] > times[1]

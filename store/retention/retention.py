"""
Retention: its steps, alone or all of them, once or repeatedly.

Each step works in small batches, and each batch is a transaction: the commands of the queue continue between two of them. Each batch
reads the clock again, so that a clock that was wrong does no harm once it is set.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from sqlalchemy import Connection

from shared.clock import microseconds_now

from ..commands.commands import DatabaseUnavailable
from ..database.engine import Database, StatementTimeout
from .nodes import choose_purgeable, correct_expiry_batch, delete_node_batch, expire_batch, node_id
from .reports import delete_event_batch, delete_report_batch
from .unused import SHARED_TABLES, collect_table, update_statistics
from .unused_paths import collect_paths

log = logging.getLogger("puppet.store.retention")

Step = Literal["expire_nodes", "purge_nodes", "purge_reports", "purge_resource_events", "gc_packages", "other"]

STEPS: tuple[Step, ...] = ("expire_nodes", "purge_nodes", "purge_reports", "purge_resource_events", "gc_packages", "other")
"""All steps, in the order in which they are done. The names are those of PuppetDB's API."""

_DAY = 86_400_000_000
_SECOND = 1_000_000


class CleaningInProgress(Exception):
    """Another cleaning has not ended."""


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """The retention times of the store, in seconds."""

    node_ttl: float = 7 * 86400
    """A node of which nothing has been heard for so long expires; 0: never."""
    node_purge_ttl: float = 14 * 86400
    """A node that was deactivated or has expired so long ago is deleted with all its data; 0: never."""
    node_purge_limit: int = 25
    """Nodes that are deleted at once, at most."""
    report_ttl: float = 14 * 86400
    """Reports of whole days (UTC) before that are deleted."""
    resource_events_ttl: float | None = None
    """Events of whole days (UTC) before that are deleted; None: with their reports only."""
    intervals: Mapping[Step, float] = field(default_factory=lambda: {**dict.fromkeys(STEPS, 3600.0), "other": 86400.0})
    """Seconds between two runs of each step; a step without one, or with 0, is not done by itself."""


class Retention:
    """Deletes expired data from a database."""

    def __init__(self, database: Database, settings: RetentionSettings, clock: Callable[[], int] = microseconds_now) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock
        self._cleaning = asyncio.Lock()

    async def run(self) -> None:
        """Do each step whenever its interval is over, the first time after one interval; this never ends."""
        intervals = {step: interval for step in STEPS if (interval := self._settings.intervals.get(step, 0)) > 0}
        if not intervals:
            await asyncio.Event().wait()
        due = {step: time.monotonic() + interval for step, interval in intervals.items()}
        while True:
            await asyncio.sleep(max(0, min(due.values()) - time.monotonic()))
            steps = [step for step in due if due[step] <= time.monotonic()]
            async with self._cleaning:
                await self._try(steps)
            due.update({step: time.monotonic() + intervals[step] for step in steps})

    async def _try(self, steps: Sequence[Step]) -> None:
        for step in steps:
            try:
                await self._do(step, None)
            except (DatabaseUnavailable, StatementTimeout) as err:
                log.warning("Cleaning the store: %s is put off: %s", step, err)

    async def clean(self, steps: Sequence[Step] = STEPS, purge_limit: int | None = None) -> dict[Step, int]:
        """
        Do some steps now, and return how many rows each of them changed or deleted: nodes, reports, events, shared rows.

        Args:
            steps: The steps, in any order.
            purge_limit: Nodes that are deleted at most, in place of the settings'.
        Raises:
            CleaningInProgress: Another cleaning of this process has not ended.
        """
        if self._cleaning.locked():
            raise CleaningInProgress
        async with self._cleaning:
            return {step: await self._do(step, purge_limit) for step in STEPS if step in steps}

    async def _do(self, step: Step, purge_limit: int | None) -> int:
        match step:
            case "expire_nodes":
                count = await self._expire_nodes()
            case "purge_nodes":
                count = await self._purge_nodes(self._settings.node_purge_limit if purge_limit is None else purge_limit)
            case "purge_reports":
                count = await self._repeat(lambda connection: delete_report_batch(connection, self._day_before(self._settings.report_ttl)))
            case "purge_resource_events":
                ttl = self._settings.resource_events_ttl
                count = 0 if ttl is None else await self._repeat(lambda connection: delete_event_batch(connection, self._day_before(ttl)))
            case "gc_packages":
                count = await collect_table(self._database, SHARED_TABLES["packages"])
            case "other":
                count = await collect_paths(self._database)
                for name, shared in SHARED_TABLES.items():
                    if name != "packages":
                        count += await collect_table(self._database, shared)
                await self._database.write(update_statistics)
        if count:
            log.info("Cleaning the store: %s: %d", step, count)
        return count

    async def _expire_nodes(self) -> int:
        if not self._settings.node_ttl > 0:
            return 0  # "never"; a time to live of nothing would expire them all
        count = 0
        for batch in (correct_expiry_batch, expire_batch):
            count += await self._repeat(partial(self._at_this_moment, batch))
        return count

    def _at_this_moment(self, batch: Callable[[Connection, int, int], int], connection: Connection) -> int:
        """Run a batch with the time before which a silent node expires, and the time now."""
        now = self._clock()
        return batch(connection, now - int(self._settings.node_ttl * _SECOND), now)

    async def _purge_nodes(self, limit: int) -> int:
        ttl = self._settings.node_purge_ttl
        if not ttl > 0:
            return 0
        async with self._database.reading() as connection:
            purgeable = await choose_purgeable(connection, self._before(ttl), limit)
        count = 0
        for node in purgeable:
            count += await self._delete(node, lambda: self._before(ttl))
        return count

    async def _delete(self, node: int, before: Callable[[], int | None]) -> int:
        """Delete a node with all its data if it has been inactive since before `before()`; return 1 when it is deleted, and else 0."""
        while (is_deleted := await self._database.write(lambda connection: delete_node_batch(connection, node, before()))) is None:
            pass
        return int(is_deleted)

    async def delete_node(self, certname: str) -> None:
        """Delete a node with all its data; one that is not known is none to delete."""
        async with self._database.reading() as connection:
            node = await node_id(connection, certname)
        if node is not None:
            await self._delete(node, lambda: None)

    def _before(self, seconds: float) -> int:
        """Return the time that many seconds ago."""
        return self._clock() - int(seconds * _SECOND)

    def _day_before(self, seconds: float) -> int:
        """Return the beginning of the day (UTC) that many seconds ago."""
        return self._before(seconds) // _DAY * _DAY

    async def _repeat(self, batch: Callable[[Connection], int]) -> int:
        """Run batches until one finds nothing to do, and return how many rows all of them changed."""
        total = 0
        while count := await self._database.write(batch):
            total += count
        return total

"""What waits for the masters' database, how long that has been away, and the removal of old reports there."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Protocol

from sqlalchemy import select

from httpd.metrics import Samples
from shared.clock import utc_now
from shared.errors import Unavailable
from shared.state.database import StateDatabase

from ..observability.health import Condition
from ..observability.metrics import Metrics
from ..reports.pending import PendingReports

log = logging.getLogger("puppet.master")

PAUSE = 1.0  # seconds between two attempts
REMOVE_EVERY = 3600.0  # seconds
_PROBE = 5.0  # seconds for an answer


class WaitingFile(Protocol):
    """A file that waits: its bytes, and since when, in seconds since the epoch."""

    @property
    def size(self) -> int: ...
    @property
    def since(self) -> float: ...


class FileQueue(Protocol):
    """A filebucket with files that wait."""

    @property
    def waiting(self) -> Mapping[str, WaitingFile]: ...

    def upload_pending(self) -> None:
        """Move them into the database. Blocks; StateAway."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many reports or files wait, their bytes, and for how many seconds the oldest has waited."""

    entries: int = 0
    bytes: int = 0
    age: float = 0.0


class StateQueue:
    """
    Brings what waits to the database when that is back.

    Args:
        reports: The processor of reports; None: they are stored elsewhere.
        buckets: Those whose files are stored in the database.
    """

    def __init__(self, database: StateDatabase, reports: PendingReports | None, buckets: Sequence[FileQueue]) -> None:
        self.database = database
        self.reports = reports
        self.buckets = buckets

    async def keep_drained(self, *, pause: float = PAUSE) -> None:
        """Run until cancelled: bring what waits to the database."""
        while True:
            backlog = self.backlog()
            if any(each.entries for each in backlog.values()):
                try:
                    await self.drain()
                    log.info("What waited for the database is stored there: %s", _in_words(backlog))
                except Unavailable as err:
                    log.debug("The database is still away: %s", err.message)
            await asyncio.sleep(pause)

    async def drain(self) -> None:
        """Bring what waits now to the database. StateAway: the rest waits on."""
        if self.reports is not None:
            await self.reports.drain()
        for bucket in self.buckets:
            if bucket.waiting:
                await asyncio.to_thread(bucket.upload_pending)

    async def keep_removing(self, seconds: int, *, every: float = REMOVE_EVERY) -> None:
        """Run until cancelled: remove reports that are older than so many seconds."""
        while True:
            if self.reports is not None:
                try:
                    removed = await self.reports.store.remove_before(utc_now() - timedelta(seconds=seconds))
                    log.info("Removed %d old reports", removed)
                except Unavailable as err:
                    log.info("Old reports are removed later: %s", err.message)
            await asyncio.sleep(every)

    def backlog(self) -> dict[str, Backlog]:
        """Return what waits, by its kind: reports, files."""
        now, reports = time.time(), Backlog()
        if self.reports is not None:
            oldest = self.reports.oldest
            age = now - oldest.timestamp() if oldest is not None else 0.0
            reports = Backlog(self.reports.spool.depth, self.reports.spool.size, age)
        files = [file for bucket in self.buckets for file in list(bucket.waiting.values())]
        age = now - min((file.since for file in files), default=now)
        return {"reports": reports, "files": Backlog(len(files), sum(file.size for file in files), age)}

    def condition(self) -> Condition:
        """Return the condition that the database answers."""
        return Condition("state", "The database of the masters' state is away", (), self._problem)

    async def _problem(self) -> str:
        try:
            await self.database.run(lambda connection: connection.scalar(select(1)), seconds=_PROBE)
        except Unavailable as err:
            return f"{err.message}; {_in_words(self.backlog())} wait"
        return ""

    def status(self) -> Mapping[str, object]:
        """Return the state of the database and of what waits for it, for the status service."""
        absence = self.database.absence
        waiting = {
            kind: {"entries": backlog.entries, "bytes": backlog.bytes, "oldest_seconds": int(backlog.age)}
            for kind, backlog in self.backlog().items()
        }
        return {"state_database": {"away_since": absence and absence.since.isoformat(timespec="seconds"), "pending": waiting}}

    def describe(self, metrics: Metrics) -> None:
        """Add the same to the metrics."""

        def away() -> Samples:
            absence = self.database.absence
            return [((), (utc_now() - absence.since).total_seconds() if absence is not None else 0.0)]

        def samples(name: str) -> Samples:
            return [((kind,), float(getattr(backlog, name))) for kind, backlog in self.backlog().items()]

        metrics.read(
            "puppet_state_away_seconds", "gauge", "How long the database of the masters' state has been away; 0: it answers.", away
        )
        for name, field, doc in _METRICS:
            metrics.read(f"puppet_state_pending_{name}", "gauge", doc, partial(samples, field), "kind")


_METRICS = (
    ("entries", "entries", "Reports and files that wait for the database of the masters' state."),
    ("bytes", "bytes", "The bytes of reports and files that wait for it."),
    ("oldest_seconds", "age", "How long the oldest report or file has waited for it."),
)


def _in_words(backlog: Mapping[str, Backlog]) -> str:
    return " and ".join(f"{each.entries} {kind}" for kind, each in backlog.items())

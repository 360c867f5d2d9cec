"""Reports that wait on this host while the masters' database is away."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy.exc import DBAPIError

from shared.models.report import Report
from shared.names import valid_certname
from shared.queue.segments import QueuedCommand, SegmentDamaged
from shared.queue.spool import Spool
from shared.state.database import StateAway

from .database import DatabaseReports

log = logging.getLogger("puppet.report")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class QueuedReport:
    """The YAML of a report, as it is put into a queue."""

    certname: str
    payload: bytes
    command: str = "store report"
    version: int = 1
    coding: str = "yaml"


class PendingReports:
    """
    The processor that stores reports in the database, or puts them into a queue while that is away.

    As long as reports wait, later ones wait behind them, so that those of a node are stored in their order.
    """

    def __init__(self, store: DatabaseReports, spool: Spool) -> None:
        self.store = store
        self.spool = spool
        self._taken: QueuedCommand | None = None

    async def process(self, report: Report) -> None:
        """Return when the report is in the database, or safe in the queue. Unavailable, OutOfSpace: it is in neither."""
        host, received = valid_certname(report.host), self.store.now()
        body = await asyncio.to_thread(self.store.render, report)
        if not self.spool.depth:
            try:
                await self.store.write(host, received, body)
                return
            except StateAway as err:
                log.info("The report of %s waits: %s", host, err.message)
        # With its time: should the database have it in spite of the error, it is not stored twice.
        await self.spool.add(QueuedReport(host, body), received=(received - _EPOCH) // _MICROSECOND)

    async def forget(self, host: str) -> bool:
        return await self.store.forget(host)

    @property
    def oldest(self) -> datetime | None:
        """When the report that has waited longest came; None when none waits."""
        command = self._taken or self.spool.next
        return None if command is None else _EPOCH + command.received * _MICROSECOND

    async def drain(self) -> None:
        """Store the reports that wait, until none is left. StateAway: the rest waits on."""
        while (self._taken or self.spool.next) is not None:
            if self._taken is None:
                (self._taken,) = self.spool.take(1)
            queued = self._taken
            try:
                body = await asyncio.to_thread(self.spool.payload, queued)
                await self.store.write(queued.certname, _EPOCH + queued.received * _MICROSECOND, body)
            except (SegmentDamaged, DBAPIError) as err:
                log.error("A report of %s cannot be stored and is discarded: %s", queued.certname, err)
                await self.spool.discard(queued, str(err))
            else:
                await self.spool.remove([queued])
            self._taken = None

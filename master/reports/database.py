"""The report processor that stores reports in the masters' database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, func, select, tuple_
from sqlalchemy.dialects.postgresql import insert

from shared.clock import utc_now
from shared.models.report import Report
from shared.names import is_certname, valid_certname
from shared.state.database import StateDatabase
from shared.state.tables import reports

from .processors import Render, of_its_age
from .stored import LatestReport, report_of

PATIENCE = 10.0  # seconds with a silent database, while an agent waits
_TICK = timedelta(microseconds=1)
_BATCH = 2000  # reports that one transaction removes
_COLUMNS = ("status", "environment", "puppet_version", "noop", "corrective_change", "cached_catalog")
_INSERTED = insert(reports).on_conflict_do_nothing().returning(reports.c.certname)


@dataclass(eq=False, repr=False)
class DatabaseReports:
    """The processor that stores the YAML of reports in a table; two of one node that arrive at once are a microsecond apart."""

    database: StateDatabase
    _: KW_ONLY
    now: Callable[[], datetime] = utc_now
    render: Render = of_its_age

    async def process(self, report: Report) -> None:
        """Store a report; StateAway."""
        host, received = valid_certname(report.host), self.now()
        await self.write(host, received, await asyncio.to_thread(self.render, report))

    async def write(self, host: str, received: datetime, body: bytes) -> None:
        """Store the YAML of a report, unless it is stored already; StateAway."""
        await self.database.run(lambda connection: store_report(connection, host, received, body), seconds=PATIENCE, is_single=True)

    async def forget(self, host: str) -> bool:
        statement = delete(reports).where(reports.c.certname == valid_certname(host))
        return await self.database.run(lambda connection: connection.execute(statement).rowcount > 0)

    def latest(self, names: Iterable[str] = ()) -> Iterator[LatestReport]:
        """Yield the last run of each node that has reports, and of those in `names`, by name. Blocks."""
        columns = [reports.c.certname, reports.c.received, *(reports.c[name] for name in _COLUMNS)]
        last = select(reports.c.certname, func.max(reports.c.received)).group_by(reports.c.certname)
        statement = select(*columns).where(tuple_(reports.c.certname, reports.c.received).in_(last))
        rows = self.database.transact(lambda connection: connection.execute(statement).all())
        latest = {row.certname: LatestReport(*row) for row in rows}
        for name in sorted({*latest, *filter(is_certname, names)}):
            yield latest.get(name) or LatestReport(name)

    async def remove_before(self, limit: datetime) -> int:
        """Remove all reports that are older; return how many they were."""
        key = tuple_(reports.c.certname, reports.c.received)
        old = select(reports.c.certname, reports.c.received).where(reports.c.received < limit).limit(_BATCH)
        removed = 0
        while count := await self.database.run(lambda connection: connection.execute(delete(reports).where(key.in_(old))).rowcount):
            removed += count
        return removed


def store_report(connection: Connection, host: str, received: datetime, body: bytes) -> None:
    """Store a report, unless it is stored already. Blocks."""
    about = report_of(body.replace(b"\0", b""), host, received)  # no text in PostgreSQL has a NUL
    values: dict[str, Any] = {name: getattr(about, name) for name in _COLUMNS}
    while True:
        if connection.scalar(_INSERTED, {"certname": host, "received": received, "body": body, **values}) is not None:
            return
        stored = select(reports.c.body == body).where(reports.c.certname == host, reports.c.received == received)
        if connection.scalar(stored):
            return
        received += _TICK


def minute_of(received: datetime) -> str:
    """Return the minute of a report, as the names of files have it."""
    return received.astimezone(UTC).strftime("%Y%m%d%H%M")

"""The operations of administrators on a store: cleaning up, deleting nodes, archives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from sqlalchemy import func, select

from shared.clock import utc_now
from shared.errors import Unavailable
from shared.names import quoted_for_log
from shared.process.log import escape_controls

from ..archive.payloads import Row
from ..archive.reading import read_archive
from ..archive.writing import ArchiveQuestion, ArchiveWriter, archive_chunks
from ..database.engine import Database
from ..database.tables import metadata
from ..jsontext import Json
from ..queries.questions import Paging, Question
from ..queries.service import QueryService
from ..queue.processor import CommandProcessor
from ..retention.retention import Retention, Step

log = logging.getLogger("puppet.store")

_BUSY_PAUSE = 0.5  # seconds before a command of an archive is tried again for which the queue has no room


@dataclass(slots=True)
class StoreAdministration:
    """The operations for administrators."""

    database: Database
    queries: QueryService
    processor: CommandProcessor
    retention: Retention

    async def clean(self, steps: Sequence[Step], purge_limit: int | None) -> None:
        """Remove expired data, of at most this many nodes; raise CleaningInProgress."""
        await self.retention.clean(steps, purge_limit)

    async def delete(self, certname: str) -> None:
        """Remove a node with all that is stored of it."""
        await self.retention.delete_node(certname)

    async def summary(self) -> Mapping[str, Json]:
        """Return the number of rows of each table."""
        counts: dict[str, Json] = {}
        async with self.database.reading() as connection:
            for table in metadata.sorted_tables:
                counts[table.name] = await connection.scalar(select(func.count()).select_from(table))
        return counts

    def export(self) -> AsyncIterator[bytes]:
        """Yield an archive of everything that is stored."""
        return archive_chunks(self._rows, ArchiveWriter(utc_now()))

    async def _rows(self, question: ArchiveQuestion) -> AsyncIterator[Row]:
        paging = Paging(order_by=tuple((name, False) for name in question.order_by))
        answer = await self.queries.answer(Question(question.entity, question.query, paging, question.parameters))
        async with aclosing(answer.batches) as batches:
            async for batch in batches:
                for row in batch:
                    if isinstance(row, dict):
                        yield row

    async def load(self, archive: AsyncIterator[bytes]) -> None:
        """
        Submit the commands of an archive; raise BadData or TooLarge for an invalid one. Waits while the queue is full. The log names each
        refused file.
        """
        async for submission in read_archive(archive, _log_refused):
            while True:
                try:
                    await self.processor.submit(submission)
                    break
                except Unavailable:
                    await asyncio.sleep(_BUSY_PAUSE)


def _log_refused(name: str, reason: str) -> None:
    log.warning("Did not import %s: %s", quoted_for_log(name), escape_controls(reason))

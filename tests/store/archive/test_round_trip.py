"""What a store exports, another one imports: the same questions have the same answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from store.archive.payloads import Row
from store.archive.reading import ArchiveReader
from store.archive.writing import ArchiveQuestion, ArchiveWriter, archive_chunks
from store.commands.commands import Command, ReceivedCommand
from store.commands.payloads import parse_payload
from store.database.engine import Database
from store.queries.questions import Paging, Question
from store.queries.service import QueryService
from store.writing.writer import DatabaseWriter
from tests.support.archives import archive_contents

DATASET = json.loads((Path(__file__).parents[2] / "conformance/puppetdb/dataset.json").read_text("utf-8"))
RECEIVED = 1_795_000_000_000_000
NOW = datetime(2026, 11, 23, tzinfo=UTC)


async def store_all(database: Database, commands: list[Command]) -> None:
    writer = DatabaseWriter(database)
    for command in commands:
        await writer.write([ReceivedCommand(command, RECEIVED)])


async def export(database: Database) -> bytes:
    service = QueryService(database)

    async def rows(question: ArchiveQuestion) -> AsyncIterator[Row]:
        paging = Paging(order_by=tuple((name, False) for name in question.order_by))
        answer = await service.answer(Question(question.entity, question.query, paging, question.parameters))
        async with aclosing(answer.batches) as batches:
            async for batch in batches:
                for row in batch:
                    assert isinstance(row, dict)
                    yield row

    return b"".join([chunk async for chunk in archive_chunks(rows, ArchiveWriter(NOW))])


@pytest.mark.slow
async def test_a_store_that_imports_an_archive_exports_the_same(database: Database, tmp_path: Path) -> None:
    await store_all(
        database, [parse_payload(case["command"], case["version"], json.dumps(case["payload"]).encode(), 0) for case in DATASET]
    )
    archive = await export(database)
    stored = archive_contents(archive)
    assert len(stored) == 36  # as of PuppetDB

    refused: list[str] = []
    reader = ArchiveReader(lambda name, reason: refused.append(f"{name}: {reason}"))
    submissions = list(reader.feed(archive))
    reader.finish()
    assert refused == []
    other = Database.open(f"sqlite:///{tmp_path / 'other.sqlite'}")
    try:
        await other.migrate()
        await store_all(other, [parse_payload(found.command, found.version, found.payload, 0) for found in submissions])
        assert archive_contents(await export(other)) == stored
    finally:
        await other.close()

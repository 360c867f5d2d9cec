"""Sealed parameters are stored and replaced like others, and no query answers with them."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

import pytest

from store.commands.checked_catalogs import CheckedCatalogs
from store.commands.commands import Command, PayloadRejected
from store.commands.payloads import parse_payload
from store.database.engine import Database
from store.queries.questions import Question
from store.queries.schema.entities import ENTITIES
from store.queries.sealed import SealedParameters
from store.queries.service import QueryService
from store.writing.writer import DatabaseWriter
from tests.support.store_commands import received

NODE = {"certname": "web1", "version": "1", "environment": "e", "producer": "m", "code_id": None, "job_id": None}
SECRET = "#<Sensitive [value redacted]>"


def catalog(at: int, *sealed: Any) -> Command:
    """The catalog of a node that exports a resource with each of these sealed parameters; None: without."""
    common = {"type": "Acct", "exported": True, "file": None, "line": 1, "tags": ["acct"], "parameters": {"pw": SECRET}}
    resources = [common | {"title": f"a{number}"} | ({} if each is None else {"sealed": each}) for number, each in enumerate(sealed)]
    payload = NODE | {"transaction_uuid": "t", "catalog_uuid": "c", "producer_timestamp": f"2026-01-01T00:00:0{at}Z"}
    data = json.dumps(payload | {"resources": resources, "edges": []}).encode()
    command = parse_payload("replace catalog", 9, data, 0, CheckedCatalogs())
    assert command is not None
    return command


async def rows_of(database: Database, entity: str) -> list[Any]:
    answer = await QueryService(database).answer(Question(entity, None))
    async with aclosing(answer.batches) as batches:
        return [row async for batch in batches for row in batch]


async def test_PDB_12_masters_get_what_is_sealed_by_the_hash_of_its_resource_and_no_query_has_it(database: Database) -> None:
    writer, lookup = DatabaseWriter(database), SealedParameters(database)
    await writer.write(received(catalog(1, {"pw": "key:one"}, {"pw": "key:two"}, None)))
    first = {row["title"]: row["resource"] for row in await rows_of(database, "resources")}
    assert len(set(first.values())) == 3
    assert await lookup.find([*first.values(), "none"]) == {first["a0"]: {"pw": "key:one"}, first["a1"]: {"pw": "key:two"}}
    for entity in ENTITIES:
        assert "key:" not in json.dumps(await rows_of(database, entity)), entity

    await writer.write(received(catalog(2, {"pw": "key:three"}, None, {"pw": "key:four"})))
    second = {row["title"]: row["resource"] for row in await rows_of(database, "resources")}
    assert await lookup.find(list(second.values())) == {second["a0"]: {"pw": "key:three"}, second["a2"]: {"pw": "key:four"}}


def test_what_is_sealed_is_an_object() -> None:
    with pytest.raises(PayloadRejected, match="sealed must be an object"):
        catalog(1, "text")

"""The terminus on the masters' database: instances of an indirection in a table."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from sqlalchemy import Connection, LargeBinary, Table, Text, bindparam, delete, exists, func, select
from sqlalchemy.dialects.postgresql import Insert, insert

from shared.data import plainjson
from shared.indirector import Indirection, Request
from shared.indirector.core import M
from shared.indirector.termini import StoredBodies, read_json_file
from shared.names import valid_file_key
from shared.state.database import StateDatabase
from shared.wire.dialects import MODERN

MOST = 64 * 2**20  # bytes of one instance
PATIENCE = 5.0  # seconds with a silent database, while an agent waits


class DatabaseTerminus(StoredBodies[M]):
    """
    Instances in JSON, in a table with the columns of `shared.state.tables.facts`.

    A save is one statement, and writes nothing when the same is stored. StateAway is raised while the database is away.
    """

    suffix = ".json"

    def __init__(self, indirection: Indirection[M], table: Table, database: StateDatabase) -> None:
        self.indirection = indirection
        self.table = table
        self.database = database
        self._written = _writing(table)

    def path(self, key: str) -> str:
        return f"the row {key} of {self.table.name}"

    def load(self, key: str, body: bytes) -> M:
        return self.indirection.model.from_data(read_json_file(key, body))

    def dump(self, instance: M) -> bytes:
        return plainjson.dumps_pson(instance.to_data(MODERN))

    def body(self, key: str) -> bytes | None:
        return self.database.transact(lambda connection: self._body(connection, key))

    def keys(self) -> list[str]:
        return self.database.transact(
            lambda connection: list(connection.scalars(select(self.table.c.name).order_by(_in_bytes(self.table))))
        )

    async def fetch(self, key: str) -> bytes | None:
        return await self.database.run(lambda connection: self._body(connection, key), seconds=PATIENCE, is_single=True)

    async def find(self, request: Request[M]) -> M | None:
        body = await self.fetch(request.key)
        return None if body is None else await asyncio.to_thread(self.parsed, request.key, body)

    async def search(self, request: Request[M]) -> list[M]:
        statement = select(self.table.c.name, self.table.c.body).order_by(_in_bytes(self.table))
        rows = await self.database.run(lambda connection: connection.execute(statement).all())

        def parse() -> list[M]:
            return [instance for name, body in rows if (instance := self.parsed(name, body)) is not None]

        return await asyncio.to_thread(parse)

    async def save(self, request: Request[M]) -> object:
        """Store an instance, unless the same is stored already."""
        key = valid_file_key(request.key)
        body = await asyncio.to_thread(self.body_of, key, request.instance, MOST)
        await self.database.run(lambda connection: self.write(connection, key, body), seconds=PATIENCE, is_single=True)
        return None

    def write(self, connection: Connection, key: str, body: bytes) -> None:
        """Store a body, unless the same is stored already. Blocks."""
        connection.execute(self._written, {"key": key, "hash": hashlib.sha256(body).digest(), "content": body})

    async def destroy(self, request: Request[M]) -> object:
        """Remove an instance; return whether it was there."""
        statement = delete(self.table).where(self.table.c.name == request.key)
        return await self.database.run(lambda connection: connection.execute(statement).rowcount > 0)

    async def head(self, request: Request[M]) -> bool:
        statement = select(exists().where(self.table.c.name == request.key))
        return await self.database.run(lambda connection: bool(connection.scalar(statement)), seconds=PATIENCE, is_single=True)

    def _body(self, connection: Connection, key: str) -> bytes | None:
        return connection.scalar(select(self.table.c.body).where(self.table.c.name == valid_file_key(key)))


class DatabaseRecord(DatabaseTerminus[M]):
    """Stores the same rows as `DatabaseTerminus`, and finds nothing: a record of the last instances."""

    async def find(self, request: Request[M]) -> M | None:
        return None


def _writing(table: Table) -> Insert:
    """Return the statement that stores `content`, which has a `hash`, under a `key`, unless the same is stored there."""
    key, digest, body = bindparam("key", type_=Text), bindparam("hash", type_=LargeBinary), bindparam("content", type_=LargeBinary)
    is_stored = exists().where(table.c.name == key, table.c.digest == digest)
    statement = insert(table).from_select(["name", "digest", "body"], select(key, digest, body).where(~is_stored))
    new = {"digest": statement.excluded.digest, "body": statement.excluded.body, "updated": func.now()}
    return statement.on_conflict_do_update(index_elements=[table.c.name], set_=new)


def _in_bytes(table: Table) -> Any:
    """Return the order of names that Python sorts in, whatever the database's locale."""
    return table.c.name.collate("C")

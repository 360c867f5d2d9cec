"""Facts, nodes, reports and the filebucket, as a move sees them in files and in the masters' database."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Generic

from sqlalchemy import func, select

from shared.data import plainjson
from shared.errors import NotFound
from shared.filesystem import checksums
from shared.filesystem.bucket import Bucket
from shared.filesystem.files import make_directory, owner_in, write_new
from shared.indirector import Request
from shared.indirector.core import M
from shared.indirector.termini import FilePerKey, StoredBodies
from shared.names import is_certname
from shared.state.database import StateDatabase
from shared.state.tables import bucket_files, reports
from shared.wire.dialects import MODERN

from ..reports.database import minute_of, store_report
from ..reports.processors import free_names
from ..termini.database import DatabaseTerminus
from ..termini.database_bucket import DatabaseBucket

log = logging.getLogger("puppet.state")

_REPORT = re.compile(r"(\d{12})(?:-(\d{1,5}))?\.yaml", re.ASCII)
_BLOCK = 1 << 20  # bytes

Report = tuple[datetime, bytes]
"""When it came, and its YAML."""

BucketEntry = tuple[BinaryIO, str]
"""A content, and a path under which it is stored, '' for none."""


class Instances(Generic[M]):
    """The instances of an indirection, of which each name has one; they are compared in the form of the wire."""

    def __init__(self, kind: str, terminus: StoredBodies[M], place: str) -> None:
        self.kind = kind
        self.place = place
        self.terminus = terminus
        self._body = b""

    async def groups(self) -> Sequence[str]:
        return await asyncio.to_thread(self.terminus.keys)

    async def entries(self, group: str) -> Sequence[str]:
        instance = await asyncio.to_thread(self.terminus.read, group)
        if instance is None:
            return ()
        self._body = plainjson.dumps_pson(instance.to_data(MODERN))
        return (hashlib.sha256(self._body).hexdigest(),)

    async def changed(self, group: str) -> datetime | None:
        return await asyncio.to_thread(_time_of, self.terminus, group)

    async def read(self, group: str, entry: str) -> bytes:
        return self._body

    async def write(self, group: str, entry: str, content: bytes) -> None:
        instance = self.terminus.indirection.model.from_data(plainjson.loads_pson(content))
        await self.terminus.save(Request(group, body=instance))


def _time_of(terminus: StoredBodies[M], key: str) -> datetime | None:
    if isinstance(terminus, DatabaseTerminus):
        table = terminus.table
        return terminus.database.transact(lambda connection: connection.scalar(select(table.c.updated).where(table.c.name == key)))
    assert isinstance(terminus, FilePerKey)
    return datetime.fromtimestamp(terminus.path(key).stat().st_mtime, UTC)


class ReportFiles:
    """The reports below a folder; of several in a minute the order is that of their numbers."""

    kind = "reports"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.place = str(root)
        self._found: dict[str, tuple[datetime, Path]] = {}

    async def groups(self) -> Sequence[str]:
        return await asyncio.to_thread(self._hosts)

    def _hosts(self) -> list[str]:
        if not self.root.is_dir():
            return []
        return sorted(entry.name for entry in os.scandir(self.root) if entry.is_dir(follow_symlinks=False) and is_certname(entry.name))

    async def entries(self, group: str) -> Sequence[str]:
        self._found = await asyncio.to_thread(self._scan, group)
        return list(self._found)

    def _scan(self, host: str) -> dict[str, tuple[datetime, Path]]:
        folder = self.root / host
        matches = [match for path in (folder.iterdir() if folder.is_dir() else ()) if (match := _REPORT.fullmatch(path.name))]
        matches.sort(key=lambda match: (match[1], int(match[2] or 0)))
        found = []
        for match in matches:
            received = datetime.strptime(match[1], "%Y%m%d%H%M").replace(tzinfo=UTC) + timedelta(microseconds=int(match[2] or 0))
            path = folder / match[0]
            found.append((match[1], hashlib.sha256(path.read_bytes()).hexdigest(), (received, path)))
        names = _numbered((minute, digest) for minute, digest, _ in found)
        return dict(zip(names, (report for *_, report in found), strict=True))

    async def changed(self, group: str) -> datetime | None:
        return None

    async def read(self, group: str, entry: str) -> Report:
        received, path = self._found[entry]
        return received, await asyncio.to_thread(path.read_bytes)

    async def write(self, group: str, entry: str, content: Report) -> None:
        await asyncio.to_thread(self._write, group, *content)

    def _write(self, host: str, received: datetime, body: bytes) -> None:
        folder = self.root / host
        make_directory(folder, mode=0o750, inherit=True)
        write_new(folder, free_names(folder, minute_of(received)), body, mode=0o640, owner=owner_in(folder))


class ReportRows:
    """The reports in the database."""

    kind = "reports"
    place = "the database"

    def __init__(self, database: StateDatabase) -> None:
        self.database = database
        self._found: dict[str, datetime] = {}

    async def groups(self) -> Sequence[str]:
        statement = select(reports.c.certname).distinct().order_by(reports.c.certname)
        return await self.database.run(lambda connection: connection.scalars(statement).all())

    async def entries(self, group: str) -> Sequence[str]:
        digest = func.sha256(reports.c.body)
        statement = select(reports.c.received, digest).where(reports.c.certname == group).order_by(reports.c.received)
        rows = await self.database.run(lambda connection: connection.execute(statement).all())
        names = _numbered((minute_of(received), bytes(body).hex()) for received, body in rows)
        self._found = dict(zip(names, (received for received, _ in rows), strict=True))
        return list(self._found)

    async def changed(self, group: str) -> datetime | None:
        return None

    async def read(self, group: str, entry: str) -> Report:
        received = self._found[entry]
        statement = select(reports.c.body).where(reports.c.certname == group, reports.c.received == received)
        return received, await self.database.run(lambda connection: connection.execute(statement).scalar_one())

    async def write(self, group: str, entry: str, content: Report) -> None:
        await self.database.run(lambda connection: store_report(connection, group, *content))


class BucketContents:
    """The contents of a filebucket with their paths, in files or in the database."""

    def __init__(self, bucket: Bucket, place: str) -> None:
        self.kind = f"files by {bucket.algorithm}"
        self.place = place
        self.bucket = bucket

    async def groups(self) -> Sequence[str]:
        return await asyncio.to_thread(self._values)

    def _values(self) -> Sequence[str]:
        bucket = self.bucket
        if not isinstance(bucket, DatabaseBucket):
            return bucket.values()
        statement = select(bucket_files.c.value).where(bucket_files.c.algorithm == bucket.algorithm).order_by(bucket_files.c.value)
        return bucket.database.transact(lambda connection: connection.scalars(statement).all())

    async def entries(self, group: str) -> Sequence[str]:
        return await asyncio.to_thread(self._entries, group)

    def _entries(self, value: str) -> list[str]:
        try:
            with self.bucket.open(value) as file:
                digest = checksums.of_file(self.bucket.algorithm, file.fileno())
        except NotFound:
            return []
        if digest != value:
            log.warning("The file {%s}%s in %s is damaged, and is not moved", self.bucket.algorithm, value, self.place)
            return []
        return [f"{digest} {path}" for path in self.bucket.paths(value) or [""]]

    async def changed(self, group: str) -> datetime | None:
        return None

    async def read(self, group: str, entry: str) -> BucketEntry:
        return await asyncio.to_thread(self.bucket.open, group), entry.partition(" ")[2]

    async def write(self, group: str, entry: str, content: BucketEntry) -> None:
        await asyncio.to_thread(self._write, group, *content)

    def _write(self, value: str, file: BinaryIO, path: str) -> None:
        with file:
            self.bucket.add(iter(lambda: file.read(_BLOCK), b""), value=value, path=path or None)


def _numbered(reports_of_host: Iterable[tuple[str, str]]) -> list[str]:
    """Return the entries of reports from their minutes and digests; two that are the same differ in a number."""
    seen: Counter[tuple[str, str]] = Counter()
    entries = []
    for report in reports_of_host:
        seen[report] += 1
        entries.append(f"{' '.join(report)} {seen[report]}")
    return entries

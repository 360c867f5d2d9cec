"""The filebucket in the masters' database, and the contents that wait for it on this host."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import BinaryIO

from sqlalchemy import ColumnElement, Connection, func, literal, select, true, update
from sqlalchemy.dialects.postgresql import insert

from shared.errors import NotFound, PuppetError, Unavailable
from shared.failpoints import failpoint
from shared.filesystem.bucket import ENTRY_OVERHEAD, Bucket, BucketEntry, Incoming, path_line
from shared.filesystem.files import make_directory
from shared.state.database import StateAway, StateDatabase
from shared.state.tables import bucket_chunks, bucket_files, bucket_paths, bucket_usage

log = logging.getLogger("puppet.master")

CHUNK = 1 << 20  # bytes in one row
RETRY_AFTER = 30  # seconds
PATIENCE = 5.0  # seconds with a silent database, while an agent waits
SLOWEST = 2**20  # bytes a second that a content takes at least


@dataclass(frozen=True, slots=True)
class Waiting:
    """A content that waits for the database: its bytes, and since when, in seconds since the epoch."""

    size: int
    since: float


@dataclass(eq=False, repr=False)
class DatabaseBucket(Bucket):
    """
    A bucket in the masters' database. Blocks, as the one on files does.

    A content becomes an entry below `root` first, under the limits of `Bucket`, and moves from there to the database: at once, or by
    `upload_pending` when the database is back.

    Args:
        quota: Bytes that all entries in the database may take together; 0: no quota.
        pending_entries: The most entries that wait.
        pending_bytes: The most bytes of them.
        clock: Seconds since the epoch.
    """

    database: StateDatabase = field(kw_only=True)
    pending_entries: int = field(kw_only=True, default=50_000)
    pending_bytes: int = field(kw_only=True, default=2**30)
    clock: Callable[[], float] = field(kw_only=True, default=time.time)
    pending: Bucket = field(init=False)
    waiting: dict[str, Waiting] = field(init=False)
    lock: threading.Lock = field(default_factory=threading.Lock, init=False)  # held while entries below `root` change

    def __post_init__(self) -> None:
        super().__post_init__()
        self.pending = Bucket(self.root, algorithm=self.algorithm, max_file=self.max_file, report=self.report, differ=self.differ)
        self.waiting = {}
        for value in self.pending.values():
            with suppress(OSError):  # no content: its writer was killed
                info = (self.pending.folder(value) / "contents").stat()
                self.waiting[value] = Waiting(info.st_size, info.st_mtime)

    # -- reading ----------------------------------------------------------------------------------

    def has(self, value: str, path: str | None = None) -> bool:
        """Return whether the content is there and, if `path` is given, was stored under it; False while the database cannot say it."""
        if self.pending.has(value, path):
            return True
        with suppress(StateAway):  # the sender brings the content once more, and it waits
            return self.database.transact_within(PATIENCE, lambda connection: self._has(connection, value, path), is_single=True)
        return False

    def open(self, value: str) -> BinaryIO:
        """Return the content, open for reading; NotFound when it is not there, StateAway."""
        try:
            return self.pending.open(value)
        except NotFound:
            statement = select(bucket_files.c.id).where(self._is(value))
            file_id = self.database.transact_within(PATIENCE, lambda connection: connection.scalar(statement), is_single=True)
            if file_id is None:
                raise self.missing(value) from None
            return self.database.transact_within(self.database.patience, lambda connection: self._copy(connection, file_id))

    def paths(self, value: str) -> list[str]:
        """Return the original paths of an entry in the database, oldest first; [] without an entry."""
        statement = select(bucket_paths.c.path).join(bucket_files).where(self._is(value)).order_by(bucket_paths.c.number)
        return [path.decode("utf-8", "surrogateescape") for path in self.database.transact(lambda c: c.scalars(statement).all())]

    def entries(self, since: datetime | None = None, until: datetime | None = None) -> list[BucketEntry]:
        """Return the entries in the database and those that wait for it here, as `Bucket` does."""
        statement = select(bucket_files.c.value, bucket_files.c.stored, bucket_paths.c.path).join(bucket_paths)
        statement = statement.where(
            bucket_files.c.algorithm == self.algorithm,
            true() if since is None else bucket_files.c.stored >= since,
            true() if until is None else bucket_files.c.stored <= until,
        )
        rows = self.database.transact(lambda connection: connection.execute(statement).all())
        stored = [BucketEntry(value, when, path.decode("utf-8", "surrogateescape")) for value, when, path in rows]
        return sorted([*stored, *self.pending.entries(since, until)], key=lambda entry: (entry.path, entry.stored))

    def _is(self, value: str) -> ColumnElement[bool]:
        self._relative(value)  # BadRequest for anything but a checksum
        return (bucket_files.c.algorithm == self.algorithm) & (bucket_files.c.value == value)

    def _has(self, connection: Connection, value: str, path: str | None) -> bool:
        statement = select(literal(True)).where(self._is(value))
        if path is not None:
            statement = statement.where(bucket_paths.c.file_id == bucket_files.c.id, bucket_paths.c.path == _bytes_of(path))
        return connection.scalar(statement.limit(1)) is not None

    def _copy(self, connection: Connection, file_id: int) -> BinaryIO:
        """Return a temporary file with a content."""
        make_directory(self.root, mode=0o770, inherit=True)
        file = tempfile.TemporaryFile(dir=self.root)  # noqa: SIM115  # the caller closes it
        for block in _blocks(connection, file_id):
            file.write(block)
        file.seek(0)
        return file

    # -- writing ----------------------------------------------------------------------------------

    def incoming(self) -> Incoming:
        return _Arriving(self)

    def require_room(self, size: int) -> None:
        """Raise Unavailable unless an entry of this size may wait, too."""
        entries, taken = len(self.waiting), sum(waiting.size for waiting in list(self.waiting.values()))
        if entries >= self.pending_entries or taken + size > self.pending_bytes:
            raise Unavailable(f"{entries} files of {taken} bytes wait for the filebucket's database", retry_after=RETRY_AFTER)

    def upload_pending(self) -> None:
        """Move all entries that wait into the database; one that it refuses stays, with an error in the log. StateAway."""
        for value in list(self.waiting):
            try:
                self.upload(value)
            except StateAway:
                raise
            except PuppetError as err:
                log.error("A file that waits for the filebucket cannot be stored: %s", err.message)

    def upload(self, value: str) -> None:
        """Move an entry that waits into the database. StateAway, OutOfSpace, Conflict: it still waits."""
        while True:
            with self.lock:
                if not self.pending.has(value):
                    return  # another thread was faster
                paths = self.pending.paths(value)
            waiting = self.waiting.get(value)
            seconds = PATIENCE + (waiting.size / SLOWEST if waiting is not None else 0)
            self.database.transact_within(seconds, partial(self._upload, value=value, paths=paths))
            failpoint("bucket.uploaded")
            with self.lock:
                if self.pending.paths(value) == paths:
                    self.drop(value)
                    return

    def _upload(self, connection: Connection, value: str, paths: Sequence[str]) -> None:
        # It opens the file by itself: it may go on when nobody waits for it any more.
        with suppress(NotFound), self.pending.open(value) as file:
            self.store(connection, value, paths, file)

    def drop(self, value: str) -> None:
        """Remove an entry that waits; `lock` is held."""
        self.pending.remove(value)
        self.waiting.pop(value, None)

    def store(self, connection: Connection, value: str, paths: Sequence[str], file: BinaryIO) -> None:
        """Make the content of a file an entry in the database, or add paths to the one that is there. OutOfSpace, Conflict."""
        fd, size = file.fileno(), os.fstat(file.fileno()).st_size
        row = insert(bucket_files).values(algorithm=self.algorithm, value=value, size=size).on_conflict_do_nothing()
        file_id = connection.scalar(row.returning(bucket_files.c.id))
        if file_id is None:
            # The lock on the row also keeps another master from adding the same path.
            again = update(bucket_files).where(self._is(value)).values(stored=func.now())
            file_id = connection.scalar(again.returning(bucket_files.c.id))
            if not _is_same(connection, file_id, fd, size):
                raise self.collision(value)
            self.report("info", f"FileBucket got a duplicate file {{{self.algorithm}}}{value}")
        else:
            for number, offset in enumerate(range(0, size, CHUNK)):
                connection.execute(insert(bucket_chunks).values(file_id=file_id, number=number, data=os.pread(fd, CHUNK, offset)))
            self._charge(connection, size + ENTRY_OVERHEAD)
        known = set(connection.scalars(select(bucket_paths.c.path).where(bucket_paths.c.file_id == file_id)))
        for path in dict.fromkeys(map(_bytes_of, paths)):
            if path not in known:
                connection.execute(insert(bucket_paths).values(file_id=file_id, path=path))

    def _charge(self, connection: Connection, more: int) -> None:
        """Count the bytes of a new entry against the quota, at the end of its transaction: until that ends, others wait here."""
        used = connection.scalar(update(bucket_usage).values(bytes=bucket_usage.c.bytes + more).returning(bucket_usage.c.bytes))
        if used is None:
            counted = select(func.coalesce(func.sum(bucket_files.c.size + ENTRY_OVERHEAD), 0)).scalar_subquery()
            connection.execute(insert(bucket_usage).values(id=1, bytes=counted).on_conflict_do_nothing())
            used = connection.scalar(select(bucket_usage.c.bytes))
        if self.quota and used > self.quota:
            raise self.quota_used_up()


class _Arriving(Incoming):
    """A content being received, which becomes an entry of the database, or one that waits for it."""

    def __init__(self, bucket: DatabaseBucket) -> None:
        super().__init__(bucket.pending)
        self.target = bucket

    def keep(self, value: str | None = None, path: str | None = None) -> str:
        """Make the content an entry, as `Incoming` does; Unavailable when the database is away and too much waits for it."""
        target = self.target
        if target.database.absence is not None:
            target.require_room(self.size)
        with target.lock:
            stored = super().keep(value, path)
            is_new = stored not in target.waiting
            target.waiting.setdefault(stored, Waiting(self.size, target.clock()))
        try:
            target.upload(stored)
        except StateAway as err:
            log.info("The file %s waits for the filebucket: %s", stored, err.message)
        except PuppetError:
            if is_new:  # nobody was told that it is stored
                with target.lock:
                    target.drop(stored)
            raise
        return stored


def _bytes_of(path: str) -> bytes:
    return path_line(path).encode("utf-8", "surrogateescape")


def _blocks(connection: Connection, file_id: int) -> Iterator[bytes]:
    """Yield the chunks of an entry, in their order."""
    number = 0
    while True:
        chunk = select(bucket_chunks.c.data).where(bucket_chunks.c.file_id == file_id, bucket_chunks.c.number == number)
        if (block := connection.scalar(chunk)) is None:
            return
        yield block
        number += 1


def _is_same(connection: Connection, file_id: int, fd: int, size: int) -> bool:
    """Return whether an entry has the content of an open file."""
    offset = 0
    for block in _blocks(connection, file_id):
        if os.pread(fd, len(block), offset) != block:
            return False
        offset += len(block)
    return offset == size

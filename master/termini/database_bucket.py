"""The filebucket in the masters' database, and the contents that wait for it on this host."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import Connection, delete, exists, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as insert_if_new

from shared.errors import NotFound, OutOfSpace, Unavailable
from shared.failpoints import failpoint
from shared.filesystem.bucket import ENTRY_OVERHEAD, Bucket, BucketEntry, Incoming, path_line
from shared.filesystem.checksums import Checksum
from shared.state.database import StateAway, StateDatabase
from shared.state.tables import bucket_chunks, bucket_files, bucket_paths, bucket_usage

CHUNK = 1 << 20  # bytes in one row


@dataclass(eq=False, repr=False)
class DatabaseBucket(Bucket):
    """
    A bucket in the masters' database. Blocks, as the one on files does.

    What arrives becomes an entry of the files below `root` first, whose limits are those of `Bucket`; it moves from there to the database,
    at once or, while that is away, by `upload_pending`.

    Args:
        quota: Bytes all entries in the database may take together.
        pending_quota: Bytes all entries below `root` may take together.
    """

    database: StateDatabase
    _: KW_ONLY
    pending_quota: int = 0
    pending: Bucket = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)  # held while entries below `root` change

    def __post_init__(self) -> None:
        super().__post_init__()
        self.pending = Bucket(
            self.root, algorithm=self.algorithm, quota=self.pending_quota, max_file=self.max_file, report=self.report, differ=self.differ
        )

    # -- reading ----------------------------------------------------------------------------------

    def has(self, value: str, path: str | None = None) -> bool:
        """Return whether the content is there and, if `path` is given, was stored under it; False while the database cannot say it."""
        if self.pending.has(value, path):
            return True
        with suppress(StateAway):  # the sender brings the content once more, and it waits
            return self.database.transact(lambda connection: self._has(connection, value, path))
        return False

    def open(self, value: str) -> BinaryIO:
        """Return the content, open for reading; NotFound when it is not there, StateAway."""
        try:
            return self.pending.open(value)
        except NotFound:
            return self.database.transact(lambda connection: self._copy(connection, value))

    def paths(self, value: str) -> list[str]:
        """Return the original paths of an entry in the database, oldest first; [] without an entry."""
        statement = select(bucket_paths.c.path).join(bucket_files).where(self._is(value)).order_by(bucket_paths.c.number)
        return self.database.transact(lambda connection: list(connection.scalars(statement)))

    def _is(self, value: str) -> bool:
        self._relative(value)  # BadRequest for anything but a checksum
        condition: bool = (bucket_files.c.algorithm == self.algorithm) & (bucket_files.c.value == value)  # type: ignore[assignment]
        return condition

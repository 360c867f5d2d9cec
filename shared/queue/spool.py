"""The queue of commands on the disk: every command in it is carried out some time, even after a restart."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self
from uuid import uuid4

from ..clock import microseconds_now
from ..errors import NO_SPACE, OutOfSpace, PuppetError, Unavailable
from ..failpoints import failpoint
from ..filesystem.files import FileLock, make_directory, sync_directory
from ..wire.packed_catalogs import PackedCatalog
from .discarded import DiscardedCommands, DiscardedLimits
from .segments import SUFFIX, Addition, QueuedCommand, QueueItem, SegmentDamaged, read_payload, read_segment, segment_path, write_segment

log = logging.getLogger("puppet.queue")


_SUFFIXES = {"identity": ".json", "gzip": ".json.gz", "packed": ".packed", "yaml": ".yaml"}


@dataclass(frozen=True, slots=True)
class SpoolLimits:
    """
    The limits of the queue.

    Attributes:
        commands: The number of commands.
        bytes: The bytes of their payloads.
        group_commands: The number of commands in one file.
        group_bytes: The bytes of payloads in one file, unless a single one is longer.
        reserve: The bytes that the queue leaves free on its file system, for the database that empties it.
        retry_after: The seconds that a client shall wait when the queue is full.
    """

    commands: int = 50_000
    bytes: int = 2**30
    group_commands: int = 256
    group_bytes: int = 16 * 2**20
    reserve: int = 64 * 2**20
    retry_after: int = 30
    discarded: DiscardedLimits = field(default_factory=DiscardedLimits)


@dataclass(slots=True)
class Spool:
    """
    A queue in a folder, for one process at a time.

    Commands come out in the order in which they were added, independent of the clock. A command leaves the disk when it is removed; what a
    killed process took and did not remove comes out again, so that each command comes out at least once.
    """

    folder: Path
    limits: SpoolLimits = field(default_factory=SpoolLimits)
    clock: Callable[[], int] = microseconds_now
    _lock: FileLock = field(init=False)
    _discarded: DiscardedCommands = field(init=False)
    _folder_fd: int = field(default=-1, init=False)
    _next_sequence: int = field(default=1, init=False)
    _pending: deque[tuple[Addition, asyncio.Future[None]]] = field(default_factory=deque, init=False)
    _ready: deque[QueuedCommand] = field(default_factory=deque, init=False)
    _has_ready: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _rest: Counter[int] = field(default_factory=Counter, init=False)  # how many commands of each file are not yet removed
    _flusher: asyncio.Task[None] | None = field(default=None, init=False)
    _depth: int = field(default=0, init=False)
    _size: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._lock = FileLock(self.folder / "lock")
        self._discarded = DiscardedCommands(self.folder / "discarded", self.limits.discarded)

    async def __aenter__(self) -> Self:
        """Take over the queue of an earlier process. Raise Unavailable when another process has the queue."""
        await asyncio.to_thread(self._open)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Finish the additions under way, and let another process have the queue."""
        if self._flusher is not None:
            await self._flusher
        os.close(self._folder_fd)
        self._lock.release()

    @property
    def depth(self) -> int:
        """Return how many commands are in the queue or on their way into it."""
        return self._depth

    @property
    def size(self) -> int:
        """Return the bytes of their payloads."""
        return self._size

    @property
    def next(self) -> QueuedCommand | None:
        """The command that comes out next; None when all that are in the queue have been taken."""
        return self._ready[0] if self._ready else None

    def _open(self) -> None:
        make_directory(self.folder, mode=0o700, inherit=True)
        self._lock.acquire()
        self._folder_fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for path in sorted(self.folder.iterdir()):
            if path.name.startswith(".") and path.name.endswith(".tmp"):
                path.unlink()  # nobody was told that these commands are accepted
            elif path.suffix == SUFFIX and path.stem.isdecimal():
                # The names sort by number, so the last one is the highest.
                self._next_sequence = int(path.stem) + 1
                self._take_over(path)
        # What is taken over may have been renamed by a process that was killed before it synced the folder.
        sync_directory(self.folder)

    def _take_over(self, path: Path) -> None:
        try:
            commands = read_segment(path)
        except SegmentDamaged as err:
            log.error("The queue's file %s is damaged and was moved to %s: %s", path.name, self._discarded.folder, err)
            self._discarded.keep_file(path, f"{self.clock():016d}-{path.name}", {"reason": str(err)})
            return
        self._enqueue(commands)
        self._depth += len(commands)
        self._size += sum(command.length for command in commands)

    def _enqueue(self, commands: list[QueuedCommand]) -> None:
        self._rest[commands[0].sequence] = len(commands)
        self._ready.extend(commands)
        self._has_ready.set()

    async def add(self, item: QueueItem, uuid: str | None = None, received: int | None = None) -> str:
        """
        Put a command into the queue and return its UUID once it survives a crash and a power loss.

        Args:
            uuid: The command's UUID; a new one without it.
            received: When it came, in microseconds since the epoch; now without it.
        Raises:
            Unavailable: The queue is full.
            OutOfSpace: The disk is full.
            OSError: The disk fails in another way. The command is not in the queue, after this and the other errors.
        """
        length = len(item.payload)
        # Commands that are not yet written count, too: otherwise a burst would pass the limit.
        if self._depth >= self.limits.commands or self._size + length > self.limits.bytes:
            raise Unavailable(
                f"The queue of commands is full: it has {self._depth} commands of {self._size} bytes",
                retry_after=self.limits.retry_after,
                hint="The database is slower than the commands come; look at its log.",
            )
        addition = Addition(uuid or str(uuid4()), self.clock() if received is None else received, item)
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._depth += 1
        self._size += length
        self._pending.append((addition, written))
        if self._flusher is None:
            self._flusher = asyncio.create_task(self._flush(), name="command queue")
        # The command is stored even if its sender leaves; a repetition would then be superseded.
        await asyncio.shield(written)
        return addition.uuid

    async def _flush(self) -> None:
        """Write all pending commands into one file; later ones, while the disk is busy, go into the next file."""
        try:
            while self._pending:
                group = self._next_group()
                # Used up even if writing fails, so that no file is ever written twice.
                sequence, self._next_sequence = self._next_sequence, self._next_sequence + 1
                try:
                    commands = await asyncio.to_thread(self._write, sequence, [addition for addition, _ in group])
                except Exception as err:  # noqa: BLE001  # whatever it is, those who wait get it
                    self._refuse(group, err)
                    continue
                self._enqueue(commands)
                for _, written in group:
                    if not written.done():
                        written.set_result(None)
        finally:
            self._flusher = None

    def _next_group(self) -> list[tuple[Addition, asyncio.Future[None]]]:
        group = [self._pending.popleft()]
        size = len(group[0][0].item.payload)
        # One fsync for all commands that arrived during the last one: that makes the queue fast on slow disks.
        while self._pending and len(group) < self.limits.group_commands:
            size += len(self._pending[0][0].item.payload)
            if size > self.limits.group_bytes:
                break
            group.append(self._pending.popleft())
        return group

    def _write(self, sequence: int, additions: list[Addition]) -> list[QueuedCommand]:
        # The database needs room to empty the queue; a full disk would block both for ever.
        space = os.fstatvfs(self._folder_fd)
        size = sum(len(addition.item.payload) for addition in additions)
        if space.f_bavail * space.f_frsize < size + self.limits.reserve:
            raise OSError(errno.ENOSPC, f"less than {self.limits.reserve >> 20} MiB are free", str(self.folder))
        return write_segment(self.folder, self._folder_fd, sequence, additions)

    def _refuse(self, group: list[tuple[Addition, asyncio.Future[None]]], error: Exception) -> None:
        for addition, written in group:
            self._depth -= 1
            self._size -= len(addition.item.payload)
            if written.done():
                continue
            if isinstance(error, OSError) and error.errno in NO_SPACE:
                full = OutOfSpace(
                    f"The file system of {self.folder} is full: {error.strerror}",
                    hint="Free some space; commands are then accepted again without a restart.",
                )
                full.__cause__ = error
                written.set_exception(full)
            else:
                written.set_exception(error)

    async def wait(self) -> None:
        """Return when there are commands that `take` has not yet returned."""
        await self._has_ready.wait()

    def take(self, most: int) -> list[QueuedCommand]:
        """Return the next commands, at most this many, each only once; they stay in the queue until they are removed or discarded."""
        commands = [self._ready.popleft() for _ in range(min(most, len(self._ready)))]
        if not self._ready:
            self._has_ready.clear()
        return commands

    @contextmanager
    def reading(self) -> Iterator[Callable[[QueuedCommand], bytes]]:
        """
        Yield a function that returns the payload of a command in the queue. Commands of one file that follow each other are read quickly.

        The function raises SegmentDamaged when a payload is lost; OSError is worth trying again. Blocks.
        """
        with ExitStack() as opened:
            files: dict[int, BinaryIO] = {}

            def payload(command: QueuedCommand) -> bytes:
                failpoint("queue.reading")
                # Commands come in the order of the files, so that one open file is enough.
                if command.sequence not in files:
                    opened.close()
                    files.clear()
                    try:
                        files[command.sequence] = opened.enter_context(segment_path(self.folder, command.sequence).open("rb"))
                    except FileNotFoundError as err:
                        raise SegmentDamaged("the queue's file was removed by somebody else") from err
                return read_payload(files[command.sequence], command)

            yield payload

    def payload(self, command: QueuedCommand) -> bytes:
        """Return the payload of one command, as `reading` does."""
        with self.reading() as payload:
            return payload(command)

    async def remove(self, commands: Iterable[QueuedCommand]) -> None:
        """Drop commands that were taken and carried out. A power loss may undo this, so that they come out again after it."""
        commands = list(commands)
        empty = []
        for command in commands:
            self._rest[command.sequence] -= 1
            if not self._rest[command.sequence]:
                del self._rest[command.sequence]
                empty.append(segment_path(self.folder, command.sequence))
        if empty:
            # Files are removed as a whole: rewriting one for each command would cost more than repeating a few after a crash.
            await asyncio.to_thread(_unlink, empty)
        self._depth -= len(commands)
        self._size -= sum(command.length for command in commands)

    async def discard(self, command: QueuedCommand, reason: str) -> None:
        """Move a command that was taken out of the queue, into the folder `discarded`. OSError when the disk is full."""
        # Stored there before it is removed here, so that a crash in between loses nothing.
        await asyncio.to_thread(self._keep, command, reason)
        await self.remove([command])

    def _keep(self, command: QueuedCommand, reason: str) -> None:
        failpoint("queue.discarding")
        try:
            payload = self.payload(command)
        except SegmentDamaged:
            payload = b""
        suffix = _SUFFIXES[command.coding]
        if command.coding == "packed":
            try:
                payload, suffix = PackedCatalog.unpack(payload).text(self.limits.discarded.bytes), ".json"
            except PuppetError:
                pass  # its reason says so
        about: dict[str, str | int] = {
            "command": command.command,
            "version": command.version,
            "certname": command.certname,
            "uuid": command.uuid,
            "received": command.received,
            "reason": reason,
        }
        self._discarded.keep(f"{command.received:016d}-{command.uuid}{suffix}", payload, about)


def _unlink(paths: list[Path]) -> None:
    failpoint("queue.removing")
    for path in paths:
        try:
            path.unlink()
        except OSError as err:
            log.error("The queue's file %s cannot be removed, so that its commands come again after a restart: %s", path.name, err)

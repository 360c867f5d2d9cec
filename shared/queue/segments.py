"""
The files of the queue. A file holds the commands that were synced together: a line of JSON about them, then their payloads.

A file never changes. It gets its name once it is whole and synced, so that a file with a name is whole unless the disk has damaged it.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

import orjson

from ..failpoints import failpoint
from ..filesystem.files import write_all

SUFFIX = ".commands"
_FORMAT = 1


class SegmentDamaged(Exception):
    """A file of the queue, or a payload in it, is not as it was written."""


class QueueItem(Protocol):
    """What is put into a queue: a payload, and what is to be done with it, for which node; `coding` says how to read the payload."""

    @property
    def command(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def certname(self) -> str: ...
    @property
    def coding(self) -> str: ...
    @property
    def payload(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Addition:
    """An item on its way into the queue; `received` are microseconds since the epoch."""

    uuid: str
    received: int
    item: QueueItem


@dataclass(frozen=True, slots=True)
class QueuedCommand:
    """
    A command in the queue, without its payload.

    Attributes:
        sequence: The number of the file that holds the command; later commands have equal or higher ones.
        offset: Where the payload begins in the file.
        length: The bytes of the payload, coded as `coding` says.
    """

    uuid: str
    command: str
    version: int
    certname: str
    received: int
    coding: str
    length: int
    crc32: int
    sequence: int
    offset: int


def segment_path(folder: Path, sequence: int) -> Path:
    """Return the path of a file of the queue."""
    return folder / f"{sequence:016d}{SUFFIX}"


def write_segment(folder: Path, folder_fd: int, sequence: int, additions: Sequence[Addition]) -> list[QueuedCommand]:
    """
    Put commands into a new file, and return them once they survive a crash and a power loss.

    Two syncs, however many commands there are: of the file and of its folder. After an OSError nothing of the file is left. Blocks.
    """
    about = [
        {
            "uuid": addition.uuid,
            "command": addition.item.command,
            "version": addition.item.version,
            "certname": addition.item.certname,
            "received": addition.received,
            "coding": addition.item.coding,
            "length": len(addition.item.payload),
            "crc32": zlib.crc32(addition.item.payload),
        }
        for addition in additions
    ]
    header = orjson.dumps({"format": _FORMAT, "commands": about}) + b"\n"
    path = segment_path(folder, sequence)
    temporary = folder / f".{path.name}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    written = temporary
    try:
        try:
            write_all(fd, b"".join((header, *(addition.item.payload for addition in additions))))
            failpoint("queue.written")
            os.fsync(fd)
        finally:
            os.close(fd)
        failpoint("queue.synced")
        temporary.rename(path)
        written = path
        failpoint("queue.renamed")
        os.fsync(folder_fd)
        failpoint("queue.added")
    except BaseException:
        written.unlink()
        raise
    return _queued(sequence, len(header), about)


def read_segment(path: Path) -> list[QueuedCommand]:
    """Return the commands of a file in their order; SegmentDamaged when it is not as it was written. Blocks."""
    with path.open("rb") as file:
        header = file.readline()
        size = os.fstat(file.fileno()).st_size
    try:
        content = orjson.loads(header)
        if content["format"] != _FORMAT:
            raise SegmentDamaged(f"{path.name} has the unknown format {content['format']}")
        commands = _queued(int(path.stem), len(header), content["commands"])
    except (ValueError, KeyError, TypeError) as err:
        raise SegmentDamaged(f"{path.name} does not begin with a description of its commands") from err
    if not commands or commands[-1].offset + commands[-1].length != size:
        raise SegmentDamaged(f"{path.name} does not have its announced length")
    return commands


def _queued(sequence: int, offset: int, about: list[dict[str, object]]) -> list[QueuedCommand]:
    commands = []
    for members in about:
        command = QueuedCommand(**members, sequence=sequence, offset=offset)  # type: ignore[arg-type]  # a TypeError says what is wrong
        offset += command.length
        commands.append(command)
    return commands


def read_payload(file: BinaryIO, command: QueuedCommand) -> bytes:
    """Return the payload of a command from its open file; raise SegmentDamaged when it differs from the written one. Blocks."""
    file.seek(command.offset)
    payload = file.read(command.length)
    if zlib.crc32(payload) != command.crc32:
        raise SegmentDamaged("the payload in the queue's file is damaged")
    return payload

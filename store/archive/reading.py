"""Reads archives: the commands of a `.tgz` whose bytes arrive piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass

from shared.errors import BadData, TooLarge
from shared.wire.inflate import Inflater

from ..commands.commands import PayloadRejected
from ..commands.payloads import parse_payload
from ..commands.submission import Submission
from ..jsontext import load_json
from .layout import METADATA, place_of
from .tar import TarEntry, TarReader


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """The limits of an archive: bytes of one payload, and bytes of all of it, decompressed."""

    entry: int = 256 * 2**20
    total: int = 2**40


class ArchiveReader:
    """
    Reads one archive.

    Args:
        on_refused: Is called with the name of each refused file, and the reason.
    """

    def __init__(self, on_refused: Callable[[str, str], None], limits: ArchiveLimits | None = None) -> None:
        self._on_refused = on_refused
        self._limits = limits or ArchiveLimits()
        self._inflater = Inflater("gzip", ignore_rest=True)
        self._tar = TarReader(self._limits.entry)
        self._size = 0
        self._versions: Mapping[str, int] | None = None

    def feed(self, data: bytes) -> Iterator[Submission]:
        """
        Yield the commands that end within `data`, whose payloads are sound. Read all of them before the next call.

        Raises:
            BadData: This is not an archive of a PuppetDB. TooLarge: It is over a limit.
        """
        for piece in self._inflater.feed(data):
            self._size += len(piece)
            if self._size > self._limits.total:
                raise TooLarge(f"The archive holds more than {self._limits.total} bytes")
            for entry in self._tar.feed(piece):
                submission = self._submission(entry)
                if submission is not None:
                    yield submission

    def finish(self) -> None:
        """Raise BadData when the archive has not come to its end."""
        self._tar.finish()

    def _submission(self, entry: TarEntry) -> Submission | None:
        if entry.name == METADATA:
            if self._versions is not None:
                raise BadData(f"The archive has {METADATA} twice")
            self._versions = _command_versions(entry.content)
            return None
        place = place_of(entry.name)
        if place is None:
            self._on_refused(entry.name, "it is not the name of a command's file")
            return None
        if self._versions is None:
            raise BadData(f"The archive does not begin with {METADATA}, which lists the versions of the commands")
        folder, certname = place
        version = self._versions.get(folder.command)
        if version is None:
            raise BadData(f"{METADATA} lacks the version of '{folder.command}'")
        try:
            command = parse_payload(folder.command, version, entry.content, 0)
            if command is not None and command.certname != certname:
                raise PayloadRejected(f"its name is that of {certname}, but its content that of {command.certname}")
        except PayloadRejected as err:
            self._on_refused(entry.name, str(err))
            return None
        return Submission(folder.command, version, certname, None, None, entry.content, "identity")


def _command_versions(content: bytes) -> Mapping[str, int]:
    """Return the versions by command. Archives of PuppetDB 3 write the names of commands with blanks."""
    try:
        metadata = load_json(content)
    except ValueError as err:
        raise BadData(f"{METADATA} is not JSON: {err}") from err
    versions = metadata.get("command_versions") if isinstance(metadata, dict) else None
    if not isinstance(versions, dict):
        raise BadData(f"{METADATA} has no command_versions")
    return {name.replace("_", " "): version for name, version in versions.items() if isinstance(version, int)}


async def read_archive(chunks: AsyncIterator[bytes], on_refused: Callable[[str, str], None]) -> AsyncIterator[Submission]:
    """Yield the commands of an archive, which are read in a thread; raise as ArchiveReader."""
    reader = ArchiveReader(on_refused)
    async for chunk in chunks:
        submissions = reader.feed(chunk)
        while (submission := await asyncio.to_thread(next, submissions, None)) is not None:
            yield submission
    reader.finish()

"""Tar files as they flow by: headers written, entries read within limits. Nothing is ever unpacked to a disk."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.errors import BadData, TooLarge

BLOCK = 512
END = b"\0" * (2 * BLOCK)
_MAX_EXTRA = 64 * 1024  # bytes of an entry that only says something about the next one
_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE)
_ABOUT_NEXT = (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME)


def entry_bytes(name: str, content: bytes, modified: int) -> bytes:
    """Return the header, the content and the padding of a file that only its owner reads; `modified`: seconds since the epoch."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    info.mode = 0o600
    info.mtime = modified
    return info.tobuf(tarfile.PAX_FORMAT) + content + bytes(-len(content) % BLOCK)


@dataclass(frozen=True, slots=True)
class TarEntry:
    """A file of a tar file."""

    name: str
    content: bytes


@dataclass(slots=True)
class TarReader:
    """
    Reads the files of a tar file whose bytes arrive piece by piece. Folders are passed over.

    `entry_limit`: the most bytes of one file.
    """

    entry_limit: int
    is_complete: bool = False
    _pending: bytearray = field(default_factory=bytearray)
    _header: tarfile.TarInfo | None = None
    _long_name: str = ""

    def feed(self, data: bytes) -> Iterator[TarEntry]:
        """
        Yield the files that end within `data`. What is behind the end of the tar file is ignored.

        Raises:
            BadData: This is not a tar file, or it has entries other than files and folders. TooLarge: A file is over the limit.
        """
        self._pending += data
        while not self.is_complete:
            if self._header is None:
                if len(self._pending) < BLOCK:
                    return
                self._header = self._next_header(bytes(self._take(BLOCK)))
                continue
            size = self._header.size
            if len(self._pending) < size + -size % BLOCK:
                return
            content = bytes(self._take(size + -size % BLOCK)[:size])
            header, self._header = self._header, None
            if header.type in _ABOUT_NEXT:
                self._long_name = _long_name(header.type, content) or self._long_name
            elif header.type in _FILES:
                name, self._long_name = self._long_name or header.name, ""
                yield TarEntry(name, content)

    def finish(self) -> None:
        """Raise BadData when the tar file has not come to its end."""
        if not self.is_complete:
            raise BadData("The archive is cut off")

    def _take(self, size: int) -> bytearray:
        taken = self._pending[:size]
        del self._pending[:size]
        return taken

    def _next_header(self, block: bytes) -> tarfile.TarInfo | None:
        """Return the header in a block; None, and the end is reached, where the block is empty."""
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "replace")
        except tarfile.HeaderError as err:
            if not any(block):
                self.is_complete = True
                return None
            raise BadData("This is not an archive: it holds no tar file") from err
        if header.type == tarfile.DIRTYPE:
            header.size = 0
            self._long_name = ""
        elif header.type in (*_ABOUT_NEXT, tarfile.XGLTYPE):
            if not 0 <= header.size <= _MAX_EXTRA:
                raise TooLarge(f"An entry of the archive describes itself in more than {_MAX_EXTRA} bytes")
        elif header.type not in _FILES:
            raise BadData(f"The archive has an entry that is no file: {(self._long_name or header.name)[:200]!r}")
        elif header.size < 0:
            raise BadData("The archive has a file of a negative size")
        elif header.size > self.entry_limit:
            raise TooLarge(f"The archive has a file of more than {self.entry_limit} bytes: {(self._long_name or header.name)[:200]!r}")
        return header


def _long_name(kind: bytes, content: bytes) -> str:
    """Return the name that an entry gives to the next one; '' for another entry. A size over 8 GiB is not read."""
    if kind == tarfile.GNUTYPE_LONGNAME:
        return content.rstrip(b"\0").decode("utf-8", "replace")
    name = ""
    while content:
        length, blank, _ = content.partition(b" ")
        if not blank or not length.isdigit() or not len(length) + 1 < int(length[:6]) <= len(content):
            raise BadData("The archive has a damaged entry")
        record, content = content[len(length) + 1 : int(length[:6])], content[int(length[:6]) :]
        key, _, value = record.rstrip(b"\n").partition(b"=")
        if key == b"path":
            name = value.decode("utf-8", "replace")
    return name

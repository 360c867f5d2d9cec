"""Places with files: a mount of the file server, out of which no path leads, or an administrator's local path. Everything here blocks."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import BadRequest, Denied, NotFound
from ..filesystem.files import descriptor_beneath, directory_beneath, parts_of
from ..names import quoted_for_log

MAX_PATH: Final = 4000  # characters of a path below a root; a model of metadata takes no more than 4096


class UnservedName(BadRequest):
    """A name that no document can hold, or no request ask for."""


@dataclass(frozen=True, slots=True)
class FileTree:
    """
    A place with files.

    Confined: paths and links lead nowhere but below `root`, each step is taken from an open directory, so nothing swapped in between leads
    out, and a file is read only up to its size when it was opened. Not confined: an administrator's local path, with links as the system
    follows them.
    """

    root: Path
    confined: bool = True

    def open(self, relative: str, *, follow: bool) -> int:
        """Return a descriptor, for reading, of a regular file or directory; never blocks. Raise NotFound, Denied or BadRequest."""
        try:
            if not self.confined:
                return self._open_plainly(relative, follow)
            return descriptor_beneath(self.root, relative, follow=follow)
        except NotFound as err:
            if isinstance(err.__cause__, PermissionError):
                raise Denied(f"Not allowed to read {quoted_for_log(relative)}") from err
            raise
        except PermissionError as err:
            raise Denied(f"Not allowed to read {quoted_for_log(relative)}") from err
        except OSError as err:
            raise NotFound(f"Could not find {quoted_for_log(relative)}") from err

    def _open_plainly(self, relative: str, follow: bool) -> int:
        path = self.path(relative)
        info = path.stat() if follow else path.lstat()
        if not (stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)):
            raise NotFound(f"Not a regular file: {quoted_for_log(str(path))}")
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))

    def lstat(self, relative: str) -> os.stat_result | None:
        """Return the status of the last component, without following it; None when there is nothing."""
        parts = parts_of(relative) if self.confined else tuple(relative.split("/"))
        try:
            if not self.confined or not parts:
                return self.path(relative).lstat() if parts else self.root.stat()
            with directory_beneath(self.root, "/".join(parts[:-1])) as fd:
                return os.lstat(parts[-1], dir_fd=fd)
        except (NotFound, OSError):
            return None

    def readlink(self, relative: str) -> str:
        """Return the text of a link; NotFound when it is not one."""
        try:
            if not self.confined:
                return os.readlink(self.path(relative))  # noqa: PTH115  # the text, not a Path
            parts = parts_of(relative)
            with directory_beneath(self.root, "/".join(parts[:-1])) as fd:
                return os.readlink(parts[-1], dir_fd=fd)
        except OSError as err:
            raise NotFound(f"Not a link: {quoted_for_log(relative)}") from err

    def path(self, relative: str) -> Path:
        return self.root / relative if relative not in ("", ".") else self.root


def local_tree(path: Path) -> tuple[FileTree, str]:
    """Return a local absolute path as a tree that is not confined, and the path below it."""
    return FileTree(path, confined=False), ""


def can_be_served(path: str) -> bool:
    """Return whether a relative path can be a key of a request: UTF-8 without control characters, and not too long."""
    return len(path) <= MAX_PATH and not any(ord(c) < 32 or ord(c) == 127 for c in path) and is_utf8(path)


def is_utf8(name: str) -> bool:
    """Return whether a name from the system is UTF-8; it has lone surrogates for other octets."""
    try:
        return name.isascii() or bool(name.encode())
    except UnicodeEncodeError:
        return False

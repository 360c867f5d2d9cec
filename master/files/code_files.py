"""Access to the files of an environment: on disk, with or without a record of what was read, or in memory."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

from shared.errors import BadData, EvaluationError

MAX_FILE = 64 * 1024 * 1024
"""Octets of one manifest, template or data file."""


class CodeFiles(Protocol):
    """The source of an environment's files; paths are absolute, as text."""

    def read(self, path: str) -> bytes | None:
        """Return the content; None when there is no such file."""

    def exists(self, path: str) -> bool:
        """Return whether there is a file or folder of that path."""

    def names(self, folder: str) -> Sequence[str]:
        """Return the names in a folder, sorted; none when there is no such folder."""

    def is_folder(self, path: str) -> bool: ...

    def signature(self, path: str) -> tuple[int, ...] | None:
        """Return what differs when the file does; None when there is none."""

    def matching(self, folder: str, pattern: str) -> Sequence[str]:
        """Return the files below `folder` that a glob pattern matches, sorted."""


class DiskFiles:
    """Files on disk."""

    def read(self, path: str) -> bytes | None:
        try:
            with Path(path).open("rb") as file:
                data = file.read(MAX_FILE + 1)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
                return None  # no file can have such a name
            raise EvaluationError(f"Could not read {path}: {error.__class__.__name__}", hint=str(error)) from error
        if len(data) > MAX_FILE:
            raise EvaluationError(f"{path} is larger than {MAX_FILE} octets")
        return data

    def exists(self, path: str) -> bool:
        return os.path.exists(path)  # noqa: PTH110 -- false, where Path raises, for a name that no file can have

    def names(self, folder: str) -> Sequence[str]:
        try:
            return sorted(path.name for path in Path(folder).iterdir())
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return []

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)  # noqa: PTH112 -- as above

    def signature(self, path: str) -> tuple[int, ...] | None:
        return _signature(path)

    def matching(self, folder: str, pattern: str) -> Sequence[str]:
        try:
            return sorted(str(path) for path in Path(folder).glob(pattern) if path.is_file())
        except (ValueError, NotImplementedError) as error:
            raise BadData(f"The pattern {pattern!r} is not valid", hint=str(error)) from error


class TrackedFiles(DiskFiles):
    """Files on disk, with a record of what was looked at, so that changes can be detected."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, ...] | None] = {}

    def read(self, path: str) -> bytes | None:
        self._note(path)
        return super().read(path)

    def exists(self, path: str) -> bool:
        self._note(path)
        return super().exists(path)

    def names(self, folder: str) -> Sequence[str]:
        self._note(folder)
        return super().names(folder)

    def is_folder(self, path: str) -> bool:
        self._note(path)
        return super().is_folder(path)

    def matching(self, folder: str, pattern: str) -> Sequence[str]:
        paths = super().matching(folder, pattern)
        self._note(folder)
        for path in paths:
            self._note(str(Path(path).parent))
        return paths

    def signature(self, path: str) -> tuple[int, ...] | None:
        now = _signature(path)
        self._seen.setdefault(path, now)
        return now

    def take_signatures(self) -> Mapping[str, tuple[int, ...] | None]:
        """Return what was looked at since this was last called, as it was then, and forget it."""
        signatures, self._seen = self._seen, {}
        return signatures

    def _note(self, path: str) -> None:
        if path not in self._seen:
            self._seen[path] = _signature(path)

    @property
    def count(self) -> int:
        """How many paths have been looked at; `changed` takes it to ask about later ones only."""
        return len(self._seen)

    def changed(self, since: int = 0, below: Sequence[str] | None = None) -> str | None:
        """
        Return a path that is not as it was when it was first looked at, or looked for in vain; None when all are.

        Args:
            since: How many of the first paths to skip.
            below: The only folders whose paths count; None: all.
        """
        for path, signature in islice(self._seen.items(), since, None):
            if (below is None or path.startswith(tuple(f"{folder}/" for folder in below))) and _signature(path) != signature:
                return path
        return None

    def are_unchanged(self) -> bool:
        """Return whether everything that was looked at, or looked for in vain, is still as it was."""
        return are_unchanged(self._seen)


def are_unchanged(signatures: Mapping[str, tuple[int, ...] | None]) -> bool:
    """Return whether all these files and folders, and those that did not exist, are as they were."""
    return all(_signature(path) == signature for path, signature in signatures.items())


def _signature(path: str) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 -- a Path for each of thousands of files costs more than the call
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev

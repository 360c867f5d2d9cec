"""A disk that forgets what was not synced, below one folder: the states that a power cut may leave."""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass
class Disk:
    """
    What is known to be on the disk of the tree at `root`: names as of each folder's last sync, contents as of each file's.

    `cut` is called before each sync, which is when anything may still be lost.
    """

    root: Path
    cut: Callable[[], None] = lambda: None
    names: dict[str, dict[str, int]] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)
    _held: dict[int, int] = field(default_factory=dict)  # an open descriptor keeps the number of a file from being used again

    @contextmanager
    def watched(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
        """Watch the syncs of this process; what is there now counts as synced."""
        for folder in [self.root, *(path for path in self.root.rglob("*") if path.is_dir())]:
            self._folder(str(folder))
            for path in folder.iterdir():
                if path.is_file():
                    self.contents[path.stat().st_ino] = path.read_bytes()
        real = os.fsync

        def fsync(fd: int) -> None:
            path = str(Path(f"/proc/self/fd/{fd}").readlink())
            inside = path == str(self.root) or path.startswith(f"{self.root}/")
            if inside:
                self.cut()
            real(fd)
            if not inside:
                return
            info = os.fstat(fd)
            if stat.S_ISDIR(info.st_mode):
                self._folder(path)
            else:
                self._hold(info.st_ino, os.dup(fd))
                self.contents[info.st_ino] = os.pread(fd, info.st_size, 0) if _readable(fd) else Path(path).read_bytes()

        monkeypatch.setattr(os, "fsync", fsync)
        try:
            yield self
        finally:
            monkeypatch.setattr(os, "fsync", real)
            for fd in self._held.values():
                os.close(fd)

    def _folder(self, path: str) -> None:
        found = {}
        for entry in os.scandir(path):
            found[entry.name] = entry.inode()
            self._hold(entry.inode(), os.open(entry.path, os.O_RDONLY | os.O_NONBLOCK))
        self.names[path] = found

    def _hold(self, inode: int, fd: int) -> None:
        if inode in self._held:
            os.close(fd)
        else:
            self._held[inode] = fd

    def after(self, target: Path, luck: random.Random | None = None) -> Path:
        """
        The tree as it is after a power cut now, made at `target`.

        Without `luck` nothing survives that was not synced; with it, each name and each content may or may not, or in part.
        """
        self._restore(str(self.root), target, luck)
        return target

    def _restore(self, folder: str, target: Path, luck: random.Random | None) -> None:
        target.mkdir(parents=True)
        synced = self.names.get(folder, {})
        now = {entry.name: entry.inode() for entry in os.scandir(folder)} if Path(folder).is_dir() else {}
        for name in sorted(synced.keys() | now.keys()):
            inode = (luck.choice([synced, now]) if luck else synced).get(name)
            if inode is None:
                continue
            path = f"{folder}/{name}"
            if path in self.names or (now.get(name) == inode and Path(path).is_dir()):
                self._restore(path, target / name, luck)
            else:
                (target / name).write_bytes(self._content(inode, path if now.get(name) == inode else None, luck))

    def _content(self, inode: int, path: str | None, luck: random.Random | None) -> bytes:
        synced = self.contents.get(inode, b"")
        if luck is None or path is None:
            return synced
        current = Path(path).read_bytes()
        kept = current[: luck.randint(len(synced), len(current))] if current.startswith(synced) else current
        return luck.choice([synced, kept, current])


def _readable(fd: int) -> bool:
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != os.O_WRONLY

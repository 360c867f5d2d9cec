"""
The cache of compiled code, by the content of the manifest: in memory, and on disk so that a fresh worker starts warm.

A file on disk is `MAGIC`, the SHA-256 of the rest, and a packed unit. Code is executed, so nothing is trusted that another account
could have written: the directory has to belong to the master's account alone (mode 0700), files are created with mode 0600, and a
file that is torn, of another version or of another account is not used.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import shutil
import stat
import sys
import tempfile
from pathlib import Path

from shared.errors import ConfigError, text_with_hint

from . import CODE_VERSION
from .units import Unit

MAGIC = b"bunraku code 2\n"
# Units, in each process; all of Debian's modules together have some 2,000 manifests.
MAX_IN_MEMORY = 20_000
MAX_ON_DISK = 50_000
"""Files; each change of a manifest leaves one that is not used any more."""
_FOLDER = re.compile(r"[0-9a-f]{2}")


class CodeCache:
    """
    `directory` None: in memory only. Otherwise somebody calls `save` now and then.

    Raises:
        ConfigError: the directory belongs to somebody else, or others may write to it.
    """

    def __init__(self, directory: Path | None = None, *, limit: int = MAX_IN_MEMORY, disk_limit: int = MAX_ON_DISK) -> None:
        self.directory = directory
        self.limit = limit
        self._memory: dict[str, Unit] = {}
        self._unsaved: dict[str, Unit] = {}
        if directory is not None:
            _make_private(directory)
            _prune(directory, disk_limit)

    @classmethod
    def at(cls, directory: Path | None) -> tuple[CodeCache, str]:
        """Return the cache in `directory`, or one in memory only and why the directory cannot be used."""
        try:
            return cls(directory), ""
        except ConfigError as err:
            return cls(), text_with_hint(err)

    def key(self, text: str, variant: str) -> str:
        """Return the key of a text; `variant` names the checks that were made. It changes with our version and with Python's."""
        # Bytecode of another Python, even of another patch release, may crash the interpreter.
        version = f"{CODE_VERSION}|{sys.implementation.cache_tag}|{sys.hexversion:x}|{variant}\0"
        # The content is the key, so that environments share code and a changed file needs no invalidation.
        return hashlib.sha256(version.encode() + text.encode("utf-8", "surrogatepass")).hexdigest()

    def get(self, key: str) -> Unit | None:
        """Return the unit, with the code that was needed so far."""
        unit = self._memory.get(key)
        if unit is None and self.directory is not None:
            unit = self._read(self.directory / key[:2] / key[2:])
            if unit is not None:
                self._remember(key, unit)
        return unit

    def put(self, key: str, unit: Unit) -> None:
        """Add a unit that is new or has more code than before; `save` writes it to disk."""
        self._remember(key, unit)
        if self.directory is not None:
            # Not written here: an agent waits for this catalog, and the disk may be slow.
            self._unsaved[key] = unit

    def save(self) -> None:
        """
        Write the added units to disk; call it while no request is pending. A disk error only makes the next start slower.

        The trees of these units are dropped: code that is needed later is written from the text again.
        """
        unsaved, self._unsaved = self._unsaved, {}
        if self.directory is None:
            return
        for key, unit in unsaved.items():
            # The tree takes more memory than the code; it is parsed again in the rare case that more code is needed.
            unit.program = None
            data = unit.pack()
            path = self.directory / key[:2] / key[2:]
            try:
                path.parent.mkdir(mode=0o700, exist_ok=True)
                # The digest detects a half-written file; it is no protection against a forger, for which the folder's mode is.
                _replace(path, MAGIC + hashlib.sha256(data).digest() + data)
            except OSError:
                return

    def _remember(self, key: str, unit: Unit) -> None:
        while len(self._memory) >= self.limit:
            # The oldest entry: dicts keep the order of insertion, and an LRU order would cost a write at each read.
            del self._memory[next(iter(self._memory))]
        self._memory[key] = unit

    def _read(self, path: Path) -> Unit | None:
        try:
            # Never through a link, and never blocking on a FIFO that somebody put there.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            # The open file is checked, not its path: marshalled code of another owner would run with the master's rights.
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
                return None
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                content = file.read()
        except OSError:
            return None
        finally:
            os.close(descriptor)
        data = content[len(MAGIC) + 32 :]
        if not content.startswith(MAGIC) or hashlib.sha256(data).digest() != content[len(MAGIC) : len(MAGIC) + 32]:
            return None
        try:
            return Unit.unpack(data)  # ours alone, and whole: checked above
        except (ValueError, EOFError, TypeError):
            return None


def _replace(path: Path, content: bytes) -> None:
    """Replace a file, whole or not at all, but without syncing: a file that a crash tears fails its digest, and is written again."""
    # Not `write_atomic`: a lost cache file costs one compilation, an fsync costs time for each file.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _prune(directory: Path, limit: int) -> None:
    """Remove all files but the newer half when there are more than `limit`."""
    files: list[tuple[float, Path]] = []
    try:
        for folder in directory.iterdir():
            if folder.is_dir() and not folder.is_symlink():
                files += [(path.lstat().st_mtime, path) for path in folder.iterdir()]
    except OSError:
        return  # another worker is at it
    if len(files) <= limit:
        return
    files.sort()
    # Down to half of the limit, so that not every start has to sort the files again.
    for _, path in files[: len(files) - limit // 2]:
        path.unlink(missing_ok=True)


def renew(directory: Path, uid: int, gid: int) -> None:
    """Empty a cache that root's earlier start made for another account, whose code must not be run; give it to this one. Blocks."""
    try:
        # Root works in the open folder only: another account could swap the path for a link in between.
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # there is none, or `_make_private` says what is wrong with it
    try:
        if os.fstat(fd).st_uid == uid:
            return
        # Only our own two-digit folders: code_cache may be misconfigured to a folder with other files.
        for name in filter(_FOLDER.fullmatch, os.listdir(fd)):  # noqa: PTH208 -- in an open folder
            shutil.rmtree(name, dir_fd=fd)
        # Given away only when empty, so that the new account owns nothing that root did not check.
        if not os.listdir(fd):  # noqa: PTH208
            os.fchown(fd, uid, gid)
            os.fchmod(fd, 0o700)
    finally:
        os.close(fd)


def _make_private(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as err:
        raise ConfigError(
            f"The directory for compiled code, {directory}, cannot be made: {err.strerror}",
            hint=f"Its folder has to be writable for {_account(os.geteuid())}, who runs the master.",
        ) from err
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        owner, ours = _account(status.st_uid), _account(os.geteuid())
        raise ConfigError(
            f"The directory for compiled code, {directory}, is not private: it belongs to {owner}, with mode {status.st_mode & 0o7777:04o}",
            hint=f"Code in it is executed, so only {ours} may own it: rm -rf {directory}, and the master creates it again.",
        )


def _account(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"

"""The versions of one environment on disk: those that are stored, the current one, and how another one becomes current."""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from environments.first import is_as_made
from environments.revisions import is_code_id
from environments.versions import deployment_record, versions_folder
from shared.data import plainjson
from shared.errors import BadData, Conflict, Denied, PuppetError, Unavailable
from shared.filesystem.files import FileLock, make_directory, sync_directory, write_atomic

from .history import DeployedVersion, VersionHistory

HISTORY: Final = "history.json"
ADOPTED: Final = "adopted-"
_LOCK: Final = ".lock"
_HALF: Final = (".new-", ".old-", ".link-")  # what begins so belongs to a deployment under way, or to one that was killed
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


@dataclass(frozen=True, slots=True)
class VersionArchive:
    """The versions of the environment at `root`, which is a link, or nothing yet."""

    root: Path

    @property
    def folder(self) -> Path:
        return versions_folder(self.root)

    def hand_over(self, uid: int, gid: int, *, adopt: bool) -> None:
        """
        Give root's files of an environment's deployments, and the folder of environments itself, to the account of a master. Blocks.

        Args:
            adopt: True: a folder in the link's place becomes a version; its content keeps its owners.
        """
        environments = self.root.parent.resolve()
        status = environments.stat()
        # Another user could swap folders for links while root gives them away.
        if status.st_uid not in (0, uid) or status.st_mode & stat.S_IWOTH:
            return  # `locked` says what is wrong with it
        is_untouched = is_as_made(self.root)
        # What is inside comes first: nobody but root changes it while it is given away.
        for path in (self.folder, self.root) if is_untouched else (self.folder,):
            for _, folders, names, fd in os.fwalk(path, topdown=False) if path.is_dir() else ():
                for name in (*folders, *names):
                    _give(name, uid, gid, at=fd)
        for path in (self.folder, self.folder.parent, *([self.root] if is_untouched or adopt else ()), environments):
            with suppress(FileNotFoundError):
                _give(str(path), uid, gid)

    @contextmanager
    def locked(self, patience: float = 0) -> Iterator[None]:
        """
        Keep other deployments of the environment out.

        Args:
            patience: Seconds to wait for the end of one that is under way.
        Raises:
            Unavailable: One is under way.
            Denied: A folder is somebody else's.
        """
        _check_owner(self.root.parent, may_be_root=True)
        if not os.access(self.root.parent, os.W_OK):
            message = f"The user {os.geteuid()}, as whom this deployment runs, may not write into {self.root.parent}"
            raise Denied(message, hint="puppet deploy, run once by root, hands the environments over to the master's account.")
        make_directory(self.folder)
        for folder in (self.folder.parent, self.folder):
            _check_owner(folder, may_be_root=False)
        lock = FileLock(self.folder / _LOCK)
        try:
            lock.acquire(timeout=patience)
        except Unavailable as err:
            message = f"Another deployment of {self.root.name} is under way, by process {lock.holder() or 'unknown'}"
            raise Unavailable(message, hint="Try again when it has ended.") from err
        try:
            self._sweep()
            yield
        finally:
            lock.release()

    def _sweep(self) -> None:
        """Remove leftovers of killed deployments."""
        for path in self.folder.iterdir():
            if path.name.startswith(_HALF):
                _remove(path)

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A new folder for the files of a version; it is removed at the end unless `add` has taken it."""
        folder = self.folder / f".new-{secrets.token_hex(8)}"
        folder.mkdir(mode=0o755)
        try:
            yield folder
        finally:
            _remove(folder)

    def add(self, staging: Path, code_id: str) -> None:
        """Make a complete folder a version; Conflict when there is one of that name."""
        target = self.folder / code_id
        if target.exists():
            raise Conflict(f"There is already a version {code_id} of {self.root.name}")
        staging.rename(target)
        sync_directory(self.folder)

    def current(self) -> str | None:
        """Return the current version's name; None when the environment is not deployed."""
        try:
            target = self.root.readlink()
        except OSError:
            return None
        return target.name if Path(os.path.normpath(self.root.parent / target)) == self.folder else self._name_behind()

    def _name_behind(self) -> str | None:
        path = Path(os.path.realpath(self.root))
        return path.name if path.parent == Path(os.path.realpath(self.folder)) else None

    def history(self) -> VersionHistory:
        """Return all versions; raise PuppetError when their history cannot be read."""
        return VersionHistory(self.root.name, self.versions())

    def versions(self) -> list[DeployedVersion]:
        """Return all versions, the one that was deployed first at the beginning; raise PuppetError when their history cannot be read."""
        try:
            names = {path.name for path in self.folder.iterdir() if path.is_dir() and is_code_id(path.name)}
        except FileNotFoundError:
            return []
        history, current = self._history(), self.current()
        unknown = sorted(names - set(history), key=lambda name: (self.folder / name).stat().st_mtime)
        ordered = [*unknown, *(name for name in history if name in names)]
        return [DeployedVersion(name, self.record(name), history.get(name), name == current) for name in ordered]

    def record(self, code_id: str) -> dict[str, Any]:
        """Return the stored record of a version; an empty one when there is none."""
        if (adopted_at := code_id.removeprefix(ADOPTED)) != code_id and adopted_at.isdecimal():
            return {"deployed_at": datetime.fromtimestamp(int(adopted_at), UTC).isoformat(timespec="seconds")}
        return deployment_record(self.folder / code_id)

    def check_removal(self) -> None:
        """Raise Conflict when a folder is in the link's place, or a link to elsewhere; or a folder that was there before was adopted."""
        if in_the_way := self._in_the_way():
            raise Conflict(f"{self.root} {in_the_way}", hint="It is not removed.")
        for version in self.versions():
            if version.code_id.startswith(ADOPTED):
                message = f"{self.folder / version.code_id} is the only copy of the files from before puppet deploy"
                raise Conflict(message, hint="It is not removed: move it away first.")

    def remove(self) -> None:
        """Remove the environment and all its versions; the caller holds the lock. Raise Conflict as `check_removal` does."""
        self.check_removal()
        self.root.unlink(missing_ok=True)
        sync_directory(self.root.parent)
        for path in self.folder.iterdir():
            if path.name != _LOCK:
                _remove(path)
        (self.folder / _LOCK).unlink(missing_ok=True)
        with suppress(OSError):  # another process that waits for the lock has made its file again
            self.folder.rmdir()

    def _history(self) -> dict[str, float | None]:
        """Return the names in the order of their deployment, with when they were replaced."""
        path = self.folder / HISTORY
        try:
            entries: Any = plainjson.loads(path.read_bytes())
            return {str(entry["version"]): entry["replaced"] for entry in entries}
        except FileNotFoundError:
            return {}
        except (BadData, KeyError, TypeError) as err:
            raise PuppetError(f"The history of deployments {path} cannot be read: {err}", hint="Remove it: the versions stay.") from err

    def switch(self, code_id: str, *, is_new: bool, adopt: bool = False) -> str | None:
        """
        Switch the environment to a version, atomically; return the previous one.

        Args:
            is_new: True: it was just deployed; otherwise the order of versions is unchanged.
            adopt: True: a folder that is in the link's place becomes a version. One that is as the master made it is removed.
        Raises:
            Conflict: A folder is in the link's place, or a link to elsewhere.
        """
        self.check_place(adopt=adopt)
        before, in_the_way = self.current(), self._in_the_way()
        is_untouched = bool(in_the_way) and not adopt
        target = f"{self.folder.parent.name}/{self.root.name}/{code_id}"  # as it leads there from the environment's place
        if in_the_way and self.root.is_dir() and not self.root.is_symlink():
            place = self.folder / (f".old-{secrets.token_hex(8)}" if is_untouched else f"{ADOPTED}{int(time.time())}")
            place.symlink_to(target)
            try:
                _exchange(place, self.root)
            except OSError:
                place.unlink()
                raise
            if is_untouched:
                _remove(place)
            else:
                before = place.name
        else:
            link = self.folder / f".link-{secrets.token_hex(8)}"
            link.symlink_to(target)
            try:
                link.rename(self.root)
            except OSError:
                link.unlink()
                raise
        sync_directory(self.root.parent)
        self._remember(code_id, before, is_new=is_new)
        return before

    def check_place(self, *, adopt: bool) -> None:
        """Raise Conflict when a folder is in the link's place, or a link to elsewhere, that `switch` would not replace."""
        if (in_the_way := self._in_the_way()) and not adopt and not is_as_made(self.root):
            hint = "--adopt stores it as a version, to which --rollback can return, and replaces it by a link."
            raise Conflict(f"{self.root} {in_the_way}", hint=hint)

    def _in_the_way(self) -> str:
        """Return the path at the environment's place if it is not a link to a version; '' for nothing."""
        if self.root.is_symlink():
            return "" if self.current() is not None else f"is a link to {self.root.readlink()}, which puppet deploy did not make"
        return "is a folder that puppet deploy did not make" if self.root.exists() else ""

    def _remember(self, code_id: str, before: str | None, *, is_new: bool) -> None:
        history = self._history()
        if before is not None and before != code_id:
            history[before] = time.time()
        if is_new:
            history.pop(code_id, None)
        history[code_id] = None
        self._write_history(history)

    def add_to_history(self, code_id: str) -> None:
        """Make a stored version the latest one although it is not the current one; what is replaced later stays as long as others."""
        history = self._history()
        history.pop(code_id, None)
        self._write_history({**history, code_id: time.time()})

    def _write_history(self, history: Mapping[str, float | None]) -> None:
        entries = [{"version": name, "replaced": replaced} for name, replaced in history.items() if (self.folder / name).is_dir()]
        write_atomic(self.folder / HISTORY, plainjson.dumps_pretty(entries))

    def expire(self, *, keep: int, for_seconds: float, spare: Collection[str] = ()) -> list[str]:
        """
        Remove old versions; return their names.

        Args:
            keep: The number of latest versions that stay.
            for_seconds: Seconds for which others stay after their replacement, for runs that began with them.
            spare: Versions that stay in any case.
        """
        versions, now = self.versions(), time.time()
        removed = []
        for version in versions[:-keep]:
            if version.code_id.startswith(ADOPTED) or version.code_id in spare:
                continue  # the former is the only copy of something that was not deployed
            is_in_use = version.replaced is not None and now - version.replaced < for_seconds
            if not version.current and not is_in_use:
                away = self.folder / f".old-{secrets.token_hex(8)}"
                (self.folder / version.code_id).rename(away)
                _remove(away)
                removed.append(version.code_id)
        return removed


def _check_owner(folder: Path, *, may_be_root: bool) -> None:
    """Raise Denied for a folder in which another account could change what this one deploys."""
    status = folder.stat()
    if status.st_uid != os.geteuid() and not (may_be_root and status.st_uid == 0):
        message = f"{folder} belongs to the user {status.st_uid}, not to {os.geteuid()}, as whom this deployment runs"
        raise Denied(message, hint="Deployed files belong to who deploys: run puppet deploy as that user.")
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        raise Denied(f"Everybody may write into {folder}", hint=f"chmod o-w {folder}")


def _give(path: str, uid: int, gid: int, *, at: int | None = None) -> None:
    """Give a file, folder or link of root's to an account, in the open folder `at` if there is one."""
    if os.stat(path, dir_fd=at, follow_symlinks=False).st_uid == 0:
        os.chown(path, uid, gid, dir_fd=at, follow_symlinks=False)


def _remove(path: Path) -> None:
    """Remove a folder or file, if it is there; folders that may not be written are made so, as modules from archives have some."""

    if path.is_symlink() or path.is_file():
        path.unlink()
        return
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except PermissionError:
        for folder, _, _ in os.walk(path):
            Path(folder).chmod(0o700)
        shutil.rmtree(path)


def _exchange(first: Path, second: Path) -> None:
    """Exchange two paths atomically."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), str(second))

"""
Plugin sync, which mirrors the master's plugins and external facts into local directories.

Only files that differ are fetched, and files that the master no longer has are removed. The names, kinds and sizes that the master lists
are checked before a byte is written: nothing is written outside of the directory, and no link or device is ever made.
Source: protocol reference 6.2, 3.5.
"""

from __future__ import annotations

import asyncio
import fnmatch
import logging
import os
import secrets
import shutil
import stat
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from urllib.parse import unquote

from shared.errors import BadData, ConfigError, NotFound, PuppetError, TooLarge
from shared.failpoints import failpoint
from shared.file_serving.metadata import MetadataOptions
from shared.file_serving.trees import can_be_served
from shared.filesystem import checksums
from shared.filesystem.checksums import Algorithm, Checksum
from shared.filesystem.files import make_directory, parts_of, write_all
from shared.models.file_metadata import FileMetadata
from shared.names import quoted_for_log
from shared.process.log import NOTICE

from ..servers.sources import SourceRouter

log = logging.getLogger("puppet.pluginsync")

# What is taken from the master's modes: no set-id bits, and no write access for others, as these files run as root.
MODE_MASK = 0o755
ALWAYS_KEPT = ("__pycache__",)


@dataclass(frozen=True, slots=True)
class PluginMount:
    """
    One tree to mirror.

    Attributes:
        label: Its name in messages (`plugin`).
        source: A URL as the setting `pluginsource` holds it.
        permissions: Take over the files' modes, as external facts are executed.
    """

    label: str
    source: str
    destination: Path
    permissions: bool = False


@dataclass(frozen=True, slots=True)
class PluginLimits:
    """The most files of one tree, and the most bytes of one file."""

    files: int = 50_000
    size: int = 16 * 2**20


@dataclass(frozen=True, slots=True)
class LocalEntry:
    """A local file or directory; `mode` has the permission bits."""

    kind: str  # file, directory, other
    mode: int


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """The changes that make the local tree equal to the master's, in the order of the fields; paths are relative."""

    remove: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    files: tuple[FileMetadata, ...] = ()  # to be compared, and fetched if they differ
    refused: tuple[str, ...] = ()  # a sentence for each refused entry


@dataclass(slots=True)
class SyncResult:
    """The result of a sync; paths are relative. `failed` counts files that could not be fetched; `problem` says why none could."""

    fetched: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    failed: int = 0
    problem: PuppetError | OSError | None = None

    @property
    def changed(self) -> bool:
        return bool(self.fetched or self.removed)


def plan_sync(entries: Sequence[FileMetadata], local: Mapping[str, LocalEntry], ignore: Sequence[str], limits: PluginLimits) -> SyncPlan:
    """
    Return the changes to make. Pure.

    Raises:
        TooLarge: the master lists more than `limits.files` entries.
    """
    if len(entries) > limits.files:
        raise TooLarge(f"The master lists {len(entries)} plugin files, over the limit of {limits.files}", hint="See max_plugin_files.")
    refused: list[str] = []
    entries_by_name: dict[str, FileMetadata] = {}
    for entry in entries:
        relative = entry.relative_path or "."
        if relative == ".":
            refused += [f"{name} cannot be served: a name has to be UTF-8 without control characters" for name in entry.unserved]
            continue
        if not can_be_served(relative):
            refused.append(f"{quoted_for_log(relative, 200)} is no name that can be asked for: it holds control characters, or is too long")
            continue
        name = "/".join(parts_of(relative))  # the model has refused paths with `..`
        if entry.type not in ("file", "directory"):
            refused.append(f"{quoted_for_log(name)} is a {entry.type}; only files and directories are copied")
        elif name in entries_by_name:
            refused.append(f"{quoted_for_log(name)} is listed twice")
        else:
            entries_by_name[name] = entry
    for name in sorted(entries_by_name):
        parents = name.split("/")[:-1]
        above = ["/".join(parents[: depth + 1]) for depth in range(len(parents))]
        if any(parent not in entries_by_name or entries_by_name[parent].type != "directory" for parent in above):
            refused.append(f"{quoted_for_log(name)} is not in a copied directory")
            del entries_by_name[name]
    obsolete = [
        name for name, local_entry in local.items() if _is_obsolete(name, local_entry, entries_by_name) and not _is_ignored(name, ignore)
    ]
    remove = tuple(name for name in sorted(obsolete) if not any(name.startswith(f"{other}/") for other in obsolete))
    return SyncPlan(
        remove,
        tuple(name for name in sorted(entries_by_name) if entries_by_name[name].type == "directory"),
        tuple(entries_by_name[name] for name in sorted(entries_by_name) if entries_by_name[name].type == "file"),
        tuple(refused),
    )


def _is_obsolete(name: str, local_entry: LocalEntry, entries_by_name: Mapping[str, FileMetadata]) -> bool:
    entry = entries_by_name.get(name)
    return entry is None or entry.type != local_entry.kind


def _is_ignored(name: str, ignore: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(part, pattern) for part in name.split("/") for pattern in (*ignore, *ALWAYS_KEPT))


def local_entries(root: Path, most: int) -> dict[str, LocalEntry]:
    """Return the entries below `root`, by relative path; links are not followed. Blocks."""
    found_entries: dict[str, LocalEntry] = {}
    pending = [""]
    while pending:
        folder = pending.pop()
        with os.scandir(root / folder) as entries:
            for entry in entries:
                relative = f"{folder}/{entry.name}" if folder else entry.name
                mode = entry.stat(follow_symlinks=False).st_mode
                kind = "directory" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"
                found_entries[relative] = LocalEntry(kind, stat.S_IMODE(mode))
                if len(found_entries) > most * 2:
                    raise TooLarge(f"{root} holds more than {most * 2} files", hint="Is it the right directory? See plugindest.")
                if kind == "directory":
                    pending.append(relative)
    return found_entries


@dataclass(eq=False, repr=False)
class PluginSync:
    """
    Mirrors mounts.

    Args:
        legacy: The server is of 3.x, which does not know all options of a search.
    """

    sources: SourceRouter
    _: KW_ONLY
    legacy: bool = False
    ignore: tuple[str, ...] = (".svn", "CVS", ".git", ".hg")
    checksum_type: Algorithm = "sha256"
    limits: PluginLimits = field(default_factory=PluginLimits)

    async def sync(self, mount: PluginMount) -> SyncResult:
        """
        Make `mount.destination` equal to the master's mount.

        Raises:
            NotFound: the master has no such mount. TooLarge. PeerError. ConfigError: the destination is not a directory.
            A single file that fails is logged and counted, and the others continue.
        """
        log.info("Retrieving %s", mount.label)
        source = unquote(mount.source)
        options = MetadataOptions(
            links="follow",
            checksum_type=self.checksum_type,
            source_permissions="use" if mount.permissions else "ignore",
            recurse=True,
            max_files=-1,
            ignore=self.ignore,
        )
        entries = await self.sources.listing(source, options, legacy=self.legacy)
        if entries is None:
            raise NotFound(f"Could not find {mount.source} in the environment {self.sources.environment}")
        await asyncio.to_thread(_make_destination, mount.destination)
        local = await asyncio.to_thread(local_entries, mount.destination, self.limits.files)
        plan = plan_sync(entries, local, self.ignore, self.limits)
        for sentence in plan.refused:
            log.warning("Refusing a part of %s: %s", mount.source, sentence)
        result = SyncResult()
        for name in plan.remove:
            await asyncio.to_thread(_remove, mount.destination / name)
            _log_change(mount.destination / name, "ensure", "removed")
            result.removed.append(name)
            failpoint("agent.plugin-removed")
        for name in plan.directories:
            if name not in local or local[name].kind != "directory":
                await asyncio.to_thread(_make_directory, mount.destination / name)
                _log_change(mount.destination / name, "ensure", "created")
        for file in await asyncio.to_thread(_changed_files, mount, plan.files):
            await self._update_file(mount, file, result)
        return result

    async def _update_file(self, mount: PluginMount, file: ChangedFile, result: SyncResult) -> None:
        path = mount.destination / file.name
        try:
            if file.problem:
                raise BadData(file.problem)
            assert file.wanted is not None
            await self._fetch(f"{unquote(mount.source).rstrip('/')}/{file.name}", path, file.wanted, file.mode)
        except (PuppetError, OSError) as err:
            result.failed += 1
            log.error("Could not copy %s: %s", path, err)
            return
        result.fetched.append(file.name)
        if file.before is None:
            _log_change(path, "ensure", f"defined content as '{file.wanted}'")
        else:
            _log_change(path, "content", f"content changed '{{{file.wanted.type}}}{file.before}' to '{file.wanted}'")
        failpoint("agent.plugin-fetched")

    async def _fetch(self, source: str, path: Path, checksum: Checksum, mode: int) -> None:
        """Put the file's new content, complete and with the right checksum, in its place; or leave everything as it is."""
        temporary = path.with_name(f".{path.name[:120]}.{secrets.token_hex(8)}.tmp")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            try:
                await self._copy(self.sources.content(source, None), fd, checksum)
                os.fchmod(fd, mode)
            finally:
                os.close(fd)
            failpoint("agent.plugin-written")
            temporary.rename(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    async def _copy(self, chunks: AsyncIterator[bytes], fd: int, checksum: Checksum) -> None:
        digest = checksums.new(checksum.type)
        size = 0
        async with aclosing(chunks) as stream:  # type: ignore[type-var]
            async for chunk in stream:
                size += len(chunk)
                if size > self.limits.size:
                    raise TooLarge(f"it is larger than {self.limits.size} bytes", hint="See max_file_body.")
                digest.update(chunk)
                await asyncio.to_thread(write_all, fd, chunk)
        if digest.hexdigest() != checksum.value:
            raise BadData(f"its content has the checksum {{{checksum.type}}}{digest.hexdigest()}, not {checksum}")


def _log_change(path: Path, attribute: str, text: str) -> None:
    log.log(NOTICE, "%s", text, extra={"source": f"/File[{path}]/{attribute}"})


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """
    A file that differs from the master's.

    Attributes:
        wanted: The checksum of the master's file.
        before: The checksum of the local file; None when there is none.
        problem: Why the file cannot be fetched; '' when it can.
    """

    name: str
    mode: int
    wanted: Checksum | None = None
    before: str | None = None
    problem: str = ""


def _changed_files(mount: PluginMount, files: Sequence[FileMetadata]) -> list[ChangedFile]:
    """Return those of `files` that differ locally, and correct the modes of the others. Blocks, once for all files."""
    changed = []
    for entry in files:
        name = "/".join(parts_of(entry.relative_path or ""))
        path = mount.destination / name
        mode = (entry.mode or 0o644) & MODE_MASK | 0o600 if mount.permissions else 0o644
        try:
            checksum = entry.sum
            if checksum is None or not checksums.is_digest(checksum.type):
                raise BadData(f"the master gives no checksum of its content but {checksum}")
            before = _checksum_of(path, checksum.type)
            if before != checksum.value:
                changed.append(ChangedFile(name, mode, checksum, before))
            else:
                _set_mode(path, mode)
        except (PuppetError, OSError) as err:
            changed.append(ChangedFile(name, mode, problem=str(err)))
    return changed


def _make_destination(destination: Path) -> None:
    make_directory(destination, mode=0o755)
    if not stat.S_ISDIR(destination.lstat().st_mode):
        raise ConfigError(f"{destination} is not a directory", hint="Plugins are mirrored into it; it may not be a link.")


def _make_directory(path: Path) -> None:
    path.mkdir(mode=0o755)
    path.chmod(0o755)


def _remove(path: Path) -> None:
    if stat.S_ISDIR(path.lstat().st_mode):
        shutil.rmtree(path)
    else:
        path.unlink()


def _set_mode(path: Path, mode: int) -> None:
    if stat.S_IMODE(path.lstat().st_mode) != mode:
        path.chmod(mode)


def _checksum_of(path: Path, algorithm: Algorithm) -> str | None:
    """Return the checksum of a regular file; None when it does not exist."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return checksums.of_file(algorithm, fd)
    finally:
        os.close(fd)

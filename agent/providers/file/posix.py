"""Files, directories and links on POSIX systems."""

from __future__ import annotations

import asyncio
import errno
import os
import shlex
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

from shared.errors import PuppetError, ResourceError
from shared.filesystem import checksums, modes
from shared.filesystem.checksums import Checksum
from shared.ral import Provider, State, Type
from shared.types.file import File

from ..commands import execute_command
from .backup import back_up, bucket_of, uses_bucket
from .context import FileContext
from .differences import TOO_LARGE, SpooledContent, difference, too_large
from .inheritance import inherited_rights, lost_rights
from .inspection import Inspection, desired_ownership, forget_selinux, inspect_path, inspect_paths
from .mounts import refuse_mounts
from .path_entries import file_type, open_entry, remove, set_mode, set_owner
from .recursion import children_of
from .replacement import Replacement, Rights, full_disk_error, make_link, remove_leftovers
from .source_metadata import adopt_metadata, metadata_of

NO_DIRECTORY = "Not removing directory; use 'force' to override"
MAX_FOLDERS = 100_000  # cleared of leftovers in one run


class NoSuchAccount(OSError):
    """An owner or group that this system does not know."""


class PosixFile(Provider[File], type=File, name="posix", features=("manages_symlinks",)):
    """Manages files by directory descriptors: a file swapped by another user during a run leads nowhere else. See `path_entries`."""

    def __init__(self, context: FileContext) -> None:
        self.context = context
        self.root = os.geteuid() == 0
        self._spooled: tuple[File, SpooledContent] | None = None
        self._warned = False
        self._swept_folders: set[str] = set()
        self._inspected_ahead: dict[File, Inspection] = {}  # states that were read before their resources' turn

    # --- further resources

    async def generate(self, resource: File) -> Sequence[Type]:
        """Return no resources; log the warnings about a resource before the run."""
        if resource.recurselimit is not None and not resource.recurses:
            self._warn_early(resource, "Possible error: recurselimit is set but not recurse, no recursion will happen")
        if resource.wanted("checksum_value") and not resource.wanted("content") and not resource.source:
            self._warn_early(resource, "Checksum value is ignored unless content or source are specified")
        where = f"\n   {resource.origin.where}" if resource.origin.where else ""
        if resource.is_given("source_permissions") and resource.source_permissions != "ignore":
            text = "The `source_permissions` parameter is deprecated. Explicitly set `owner`, `group`, and `mode`."
            self.context.log.log("warning", text + where)
        if resource.wanted("content") and resource.actual_content is None:
            self.context.log.log("warning", f'Using a checksum in a file\'s "content" property is deprecated.{where}')
        return ()

    def _warn_early(self, resource: File, text: str) -> None:
        self.context.log.log("warning", text, source=f"/{resource.ref}", tags=resource.origin.tags, where=resource.origin.where)

    async def eval_generate(self, resource: File) -> Sequence[Type]:
        if not resource.recurses:
            return ()
        self._choose_checksum(resource)
        return await children_of(resource, self.context.sources, self.context.inlined)

    # --- reading

    async def read_ahead(self, resources: Sequence[File]) -> None:
        readable = [resource for resource in resources if self._can_read_ahead(resource)]
        for resource in readable:
            self._choose_checksum(resource)
            if resource.source:
                metadata = await metadata_of(resource, self.context.sources, self.context.inlined, self.context.environment)
                adopt_metadata(resource, metadata, root=self.root)
        # One thread for all of them: handing each to a thread takes longer than looking at a file.
        self._inspected_ahead = await asyncio.to_thread(inspect_paths, readable)

    def _can_read_ahead(self, resource: File) -> bool:
        """Return whether no server must be contacted first, and the desired state does not depend on the current one."""
        if not resource.source:
            return True
        metadata = resource.metadata or self.context.inlined.single.get(resource.title)
        return metadata is not None and metadata.type in ("file", "directory") and resource.source_permissions == "ignore"

    def forget_ahead(self) -> None:
        self._inspected_ahead.clear()

    def _choose_checksum(self, resource: File) -> None:
        literal = resource.actual_content is not None or not resource.wanted("content")
        if literal and resource.metadata is None and not resource.is_given("checksum"):
            resource.use_checksum(self.context.algorithm)

    async def retrieve(self, resource: File) -> State | None:
        self._choose_checksum(resource)
        metadata = None
        if resource.source and resource.wanted("checksum_value") is None:
            metadata = await metadata_of(resource, self.context.sources, self.context.inlined, self.context.environment)

        def inspect() -> Inspection:
            if metadata is not None:
                adopt_metadata(resource, metadata, root=self.root)
            return inspect_path(resource, lambda text: resource.log("warning", text))

        ahead = self._inspected_ahead.pop(resource, None)
        state, ownership = await asyncio.to_thread(inspect) if ahead is None else ahead
        ownership.apply_to(resource)
        self._adapt(resource, state)
        return state

    def _adapt(self, resource: File, state: State | None) -> None:
        """Adapt the desired state to the current one and to the rights of this process."""
        kind = state["ensure"] if state else None
        resource.is_directory = kind == "directory"
        desired = resource.wanted("mode")
        if desired and resource.is_directory:
            resource.set_desired("mode", [modes.octal(modes.searchable(int(m, 8))) if modes.is_octal(m) else m for m in desired])
        if resource.wanted("owner") is not None and not self.root and state and state["owner"] not in (resource.wanted("owner") or ()):
            if not self._warned:
                self._warned = True
                resource.log("warning", "Cannot manage ownership unless running as root", "owner")
            resource.forget("owner")
        forget_selinux(resource)
        if resource.value_of("ensure") == "present" and resource.wanted("content") and kind not in (None, "file"):
            resource.log("warning", f"Ensure set to :present but file type is {kind} so no content will be synced")

    # --- messages

    async def preview(self, resource: File, attribute: str, desired: Any, state: State | None) -> None:
        """Log the diff of a content that will change."""
        if attribute not in ("content", "checksum_value") or not self.context.show_diff or not resource.show_diff:
            return
        if resource.is_sensitive(attribute):
            resource.log(resource.loglevel, "[diff redacted]", attribute)
            return
        self._release_spooled()
        # diff would hold both files in memory.
        if await asyncio.to_thread(too_large, resource.path):
            resource.log(resource.loglevel, f"\n{TOO_LARGE}", attribute)
            return
        spooled = SpooledContent()
        try:
            if not await self._fetch(resource, spooled, attribute):
                return
            text = await asyncio.to_thread(difference, resource, spooled, self.context.differ)
            if text:
                resource.log(resource.loglevel, f"\n{text}", attribute)
        except (OSError, PuppetError) as err:
            resource.log("warning", f"Could not show the difference: {_error_text(err)}", attribute)
        finally:
            # The content has been fetched for the diff; writing it must not fetch it again.
            if spooled.complete and spooled.size and not resource.simulated:
                self._spooled = (resource, spooled)
            else:
                spooled.close()

    async def _fetch(self, resource: File, spooled: SpooledContent, attribute: str) -> bool:
        """Fetch the desired content; return False when it cannot be had (logged in noop only: otherwise the change itself fails)."""
        try:
            await spooled.take(self._content(resource))
        except (OSError, PuppetError) as err:
            spooled.complete = False
            if resource.simulated:
                resource.log("warning", f"Could not show the difference: {_error_text(err)}", attribute)
            return False
        return True

    def _release_spooled(self) -> None:
        if self._spooled is not None:
            self._spooled[1].close()
            self._spooled = None

    async def flush(self, resource: File, now: State | None) -> None:
        self._release_spooled()

    async def finish(self) -> None:
        self._release_spooled()

    # --- changing

    async def create(self, resource: File, state: State | None) -> None:
        await self.set_ensure(resource, "present", state)

    async def destroy(self, resource: File, state: State | None) -> None:
        await self._make_way(resource, "absent")

    async def set_ensure(self, resource: File, desired: str, state: State | None) -> None:
        try:
            if desired in ("file", "present"):
                if state and state["ensure"] == "directory":
                    await self._make_way(resource, "file")
                await self._write(resource)
            elif desired == "directory":
                await self._make_directory(resource)
            else:
                if resource.wanted("target") is None:
                    raise ResourceError("Cannot create a symlink without a target")
                if state and state["ensure"] == "directory":
                    await self._make_way(resource, "link")
                await self._link(resource)
        except OSError as err:
            cause = _with_puppet_text(err, resource.path)
            raise ResourceError(f"Could not set '{desired}' on ensure: {_error_text(cause)}", where=resource.origin.where) from cause

    async def set_content(self, resource: File, desired: str, state: State | None) -> None:
        await self._write(resource)

    async def set_checksum_value(self, resource: File, desired: str, state: State | None) -> None:
        await self._write(resource)

    async def set_target(self, resource: File, desired: str, state: State | None) -> None:
        await self._link(resource)

    async def set_owner(self, resource: File, desired: Any, state: State | None) -> None:
        if not isinstance(desired, int):
            raise ResourceError(f"Could not find user {desired}")
        await self._change_owner(resource, desired, -1, f"Failed to set owner to '{desired}'")

    async def set_group(self, resource: File, desired: Any, state: State | None) -> None:
        if not isinstance(desired, int):
            raise ResourceError(f"Could not find group {desired}")
        await self._change_owner(resource, -1, desired, f"Failed to set group to '{desired}'")

    async def _change_owner(self, resource: File, uid: int, gid: int, problem: str) -> None:
        def give() -> None:
            with open_entry(resource.path, follow=resource.links == "follow") as entry:
                set_owner(entry, uid, gid)

        try:
            await asyncio.to_thread(give)
        except OSError as err:
            raise ResourceError(f"{problem}: {_error_text(err)}") from err

    async def set_mode(self, resource: File, desired: str, state: State | None) -> None:
        def change() -> None:
            with open_entry(resource.path, follow=resource.links == "follow") as entry:
                info = entry.lstat()
                if info is not None:
                    bits = modes.apply_mode(desired, stat.S_IMODE(info.st_mode), directory=stat.S_ISDIR(info.st_mode))
                    set_mode(entry, bits)

        try:
            await asyncio.to_thread(change)
        except OSError as err:
            raise ResourceError(f"failed to set mode {desired} on {resource.path}: {_error_text(err)}") from err

    # --- making way

    async def _make_way(self, resource: File, desired: str) -> None:
        """
        Back up the file at the path and, where a rename cannot replace it, remove it.

        A directory is removed only with `force`; without, it stays, with a notice.
        """
        kind = await asyncio.to_thread(_kind_at, resource.path)
        if kind is None:
            return
        # Before the back-up, which would copy what is mounted there.
        if kind == "directory" and desired != "directory" and resource.force:
            await asyncio.to_thread(refuse_mounts, resource.path)
        # In every case before anything is removed: a failing back-up fails the resource and keeps the file.
        await back_up(resource, self.context.buckets, lambda level, text: self.context.log.log(level, text))
        # A rename replaces a file of the same kind atomically; removing it first would leave a gap.
        if kind == desired and desired != "link":
            return
        if kind == "directory":
            if not resource.force:
                resource.log("notice", NO_DIRECTORY)
                return
            resource.log("debug", f"Removing existing directory for replacement with {desired}")
            await asyncio.to_thread(_remove_at, resource.path)
        elif kind in ("file", "link", "fifo", "socket"):
            if desired in ("absent", "directory"):
                resource.log("debug", f"Removing existing {kind} for replacement with {desired}")
                await asyncio.to_thread(_remove_at, resource.path)
        else:
            raise ResourceError(f"Could not remove files of type {kind}")

    # --- making

    async def _write(self, resource: File) -> None:
        """Write the desired content, with the desired owner and mode from the first byte on."""
        await self._make_way(resource, "file")
        await self._sweep_once(os.path.dirname(resource.path))  # noqa: PTH120
        rights, missing = await asyncio.to_thread(self._rights, resource)
        algorithm = checksums.algorithm(resource.checksum)
        replacement = await asyncio.to_thread(
            Replacement,
            resource.path,
            rights,
            algorithm,
            staging=resource.staging_location or "",
            plain_name=bool(resource.validate_cmd),
        )
        try:
            async for block in self._content(resource):
                await asyncio.to_thread(replacement.write, block)
            # Before the rename: a transfer that was cut off must not replace the good file.
            self._verify(resource, Checksum(algorithm, replacement.sum()))
            if resource.validate_cmd and (resource.source or resource.actual_content is not None):
                await self._validate(resource, replacement.temporary)
            await asyncio.to_thread(replacement.commit)
        except OSError as err:
            raise full_disk_error(err, replacement) or err from err
        finally:
            await asyncio.to_thread(replacement.close)
        if missing:
            raise NoSuchAccount(missing)

    async def _sweep_once(self, folder: str) -> None:
        """Remove leftovers of a killed run in a folder, once per run and folder."""
        if folder not in self._swept_folders and len(self._swept_folders) < MAX_FOLDERS:
            self._swept_folders.add(folder)
            await asyncio.to_thread(remove_leftovers, folder)

    def _rights(self, resource: File) -> tuple[Rights, str]:
        """Return the rights of a new file at this path, and which desired owner or group this system does not know. Blocking."""
        desired_ownership(resource, None).apply_to(resource)
        uid = gid = -1
        current = 0o644
        # Where no folder is, there is nothing to take over.
        with suppress(FileNotFoundError), open_entry(resource.path, follow=resource.links == "follow") as entry:
            info = entry.lstat()
            if info is not None and stat.S_ISREG(info.st_mode):
                old = inherited_rights(entry, info)
                uid, gid, current = old.uid, old.gid, old.mode
                lost = lost_rights(info, old, owner=bool(resource.wanted("owner")), mode=bool(resource.wanted("mode")))
                if lost:
                    resource.log("warning", f"The new file does not take over {lost}: the catalog has to ask for it")
        owner, group = resource.value_of("owner"), resource.value_of("group")
        if isinstance(owner, int) and self.root:
            uid = owner
        if isinstance(group, int):
            gid = group
        mode = resource.value_of("mode")
        bits = modes.apply_mode(mode, current, directory=False) if mode else current
        return Rights(uid, gid, bits), _unknown_account(owner, group)

    async def _content(self, resource: File) -> AsyncIterator[bytes]:
        """Yield the desired bytes, from whichever source has them."""
        if self._spooled is not None and self._spooled[0] is resource:
            async for block in self._spooled[1].blocks():
                yield block
        elif resource.actual_content is not None:
            yield resource.actual_content
        elif resource.source:
            metadata = await metadata_of(resource, self.context.sources, self.context.inlined, self.context.environment)
            async for block in self.context.sources.content(metadata.source or resource.source[0], metadata):
                yield block
        elif resource.wanted("content"):
            checksum = Checksum.parse(str(resource.content))
            bucket = bucket_of(resource) if uses_bucket(resource) else None
            try:
                async for block in self.context.buckets(bucket).fetch(checksum.value):
                    yield block
            except PuppetError as err:
                raise ResourceError(f"Could not retrieve content for {checksum} from filebucket: {err.message}") from err

    def _verify(self, resource: File, checksum: Checksum) -> None:
        """Raise ResourceError when the bytes are not those that were announced."""
        value = resource.value_of("checksum_value")
        if value is not None and checksum.type in checksums.HEX_LENGTH:
            expected: Checksum | None = Checksum(checksum.type, value)
        elif resource.source:
            expected = resource.metadata.sum if resource.metadata else None
        else:
            expected = Checksum.parse(str(resource.content)) if resource.wanted("content") else None
        if expected is None or expected.type != checksum.type or expected.type not in checksums.HEX_LENGTH:
            return
        if expected != checksum:
            raise ResourceError(f"File written to disk did not match desired checksum; discarding changes ({checksum} vs {expected})")

    async def _validate(self, resource: File, path: str) -> None:
        command = str(resource.validate_cmd).replace(resource.validate_replacement, shlex.quote(path))
        try:
            result = await execute_command(command, seconds=self.context.validation_seconds, fail=False)
        except ResourceError as err:
            raise ResourceError(err.message) from None  # one line of the log is enough
        output = result.text.rstrip("\n")
        if resource.is_sensitive("content") and output:
            output = "[output redacted]"
        if result.code:
            raise ResourceError(f"Execution of '{command}' returned {result.code}: {output}")
        for line in output.splitlines():
            resource.log("debug", line)

    async def _make_directory(self, resource: File) -> None:
        await self._make_way(resource, "directory")
        parent = os.path.dirname(resource.path)  # noqa: PTH120
        if not await asyncio.to_thread(os.path.isdir, parent):
            raise ResourceError(f"Cannot create {resource.path}; parent directory {parent} does not exist")
        rights, missing = await asyncio.to_thread(self._rights, resource)
        mode = resource.value_of("mode")
        bits = modes.apply_mode(mode, 0o755, directory=True) if mode else None
        await asyncio.to_thread(_create_directory, resource.path, rights, bits)
        if missing:
            raise NoSuchAccount(missing)

    async def _link(self, resource: File) -> None:
        await self._make_way(resource, "link")
        if await asyncio.to_thread(_kind_at, resource.path) == "directory":
            raise ResourceError("Could not remove existing file")
        rights, missing = await asyncio.to_thread(self._rights, resource)
        owner = rights.uid if resource.wanted("owner") else -1
        group = rights.gid if resource.wanted("group") else -1
        await asyncio.to_thread(make_link, resource.path, str(resource.target), owner, group)
        if missing:
            raise NoSuchAccount(missing)


def _unknown_account(owner: Any, group: Any) -> str:
    if isinstance(owner, str):
        return f"Could not find user {owner}"
    return f"Could not find group {group}" if isinstance(group, str) else ""


def _kind_at(path: str) -> str | None:
    try:
        with open_entry(path) as entry:
            info = entry.lstat()
            return file_type(info) if info is not None else None
    except (FileNotFoundError, NotADirectoryError):
        return None


def _remove_at(path: str) -> None:
    with open_entry(path) as entry:
        remove(entry)


def _create_directory(path: str, rights: Rights, bits: int | None) -> None:
    """Create a directory, private until its owner and mode are set; without `bits` 0755 and the folder's own set-group-id."""
    with open_entry(path) as entry:
        # Closed until owner and mode are set.
        os.mkdir(entry.name, 0o700, dir_fd=entry.folder)
        fd = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=entry.folder)
        try:
            info = os.fstat(fd)
            # Somebody who may write to the parent could have swapped the new directory for another one.
            if info.st_uid != os.geteuid():
                raise FileExistsError(errno.EEXIST, "was replaced while it was made", path)
            if (rights.uid, rights.gid) != (-1, -1):
                os.fchown(fd, rights.uid, rights.gid)
            os.fchmod(fd, 0o755 | (info.st_mode & stat.S_ISGID) if bits is None else bits)
        finally:
            os.close(fd)


def _with_puppet_text(err: OSError, path: str) -> OSError:
    """Return a system error with Puppet's text."""
    if isinstance(err, NoSuchAccount):
        return err
    details = {
        errno.ENOENT: f"A directory component in {path} does not exist or is a dangling symbolic link",
        errno.EISDIR: f"Is a directory: {path}",
    }
    return OSError(err.errno, os.strerror(err.errno or 0), details.get(err.errno or 0, path))


def _error_text(err: OSError | PuppetError) -> str:
    if isinstance(err, PuppetError):
        return err.message
    if err.strerror:
        return f"{err.strerror} - {err.filename}" if err.filename else err.strerror
    return str(err)

"""Placing modules into a folder of the modulepath: they are prepared in temporary folders, then renamed, all or none."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from language.values.versions import SemVer
from shared.errors import BadData, PuppetError
from shared.filesystem.files import owner_in, sync_directory

from ...puppet import command_names
from ..releases.archives import ModuleArchiveLimits, unpack
from ..releases.metadata import folder_of, name_and_version, read_metadata

log = logging.getLogger("puppet.modules")


@dataclass(frozen=True, slots=True)
class _Placement:
    """A module that is ready to be renamed from `ready` to `place`."""

    ready: Path
    place: Path
    old: Path  # where what was at `place` goes meanwhile


@dataclass(slots=True)
class ModulePlacement:
    """The modules of one installation; see `placement`."""

    limits: ModuleArchiveLimits
    _staging: dict[Path, Path] = field(default_factory=dict)
    _placements: list[_Placement] = field(default_factory=list)

    def room(self, folder: Path) -> Path:
        """Return a folder of the same file system, which only this account may enter. Blocks."""
        if folder not in self._staging:
            # On the same file system as the target, so that the last step is a rename. Puppet ignores folders with a dot.
            staging = folder / f".modules.{secrets.token_hex(8)}.tmp"
            try:
                staging.mkdir(mode=0o700)
            except OSError as err:
                raise PuppetError(f"Could not write to the folder of modules {folder}: {err}") from err
            self._staging[folder] = staging
        return self._staging[folder]

    def unpacked(self, archive: Path, folder: Path) -> tuple[Path, str, SemVer]:
        """Unpack an archive next to its target folder; return the module's path, its name and version. Blocks. Errors as `unpack`."""
        room = self.room(folder) / secrets.token_hex(8)
        room.mkdir(mode=0o700)
        owner = owner_in(folder)
        try:
            unpack(archive, room, self.limits, owner=owner)
        except OSError as err:
            raise PuppetError(f"Could not unpack {archive.name} in {folder}: {err}") from err
        roots = [path.parent for path in room.rglob("metadata.json") if path.is_file()]
        if not roots:
            raise BadData("No valid metadata.json found!", hint=f"{archive.name} holds no module.")
        # The outermost one: fixtures of tests bring further metadata.json files.
        root = min(roots, key=lambda path: (len(str(path)), str(path)))
        if root == room:
            root.chmod(0o755)
            if owner is not None:
                os.chown(root, *owner)
        return root, *name_and_version(read_metadata(root))

    def place(self, module: Path, name: str, folder: Path) -> Path:
        """
        Register the unpacked module `author-name` for `commit`; return its future folder.

        Raises:
            BadData: It brings a face with the name of a command, which would never be used.
        """
        if taken := sorted({face.stem for face in module.glob("lib/puppet/face/*.py")}.intersection(command_names())):
            raise BadData(f"{name} has a face {taken[0]}, but puppet {taken[0]} is built in", hint="The module is not installed.")
        place = folder / folder_of(name)
        self._placements.append(_Placement(module, place, self.room(folder) / secrets.token_hex(8)))
        return place

    def commit(self) -> None:
        """Put all modules into their places, replacing existing ones; if one fails, everything is restored. Blocks."""
        done: list[_Placement] = []
        try:
            for placement in self._placements:
                if placement.place.is_symlink() or placement.place.exists():
                    placement.place.rename(placement.old)
                # Before the rename that may fail: the old module has been moved away by now.
                done.append(placement)
                placement.ready.rename(placement.place)
        except OSError as err:
            for placement in reversed(done):
                if placement.place.exists() and not placement.ready.exists():
                    placement.place.rename(placement.ready)
                if placement.old.is_symlink() or placement.old.exists():
                    placement.old.rename(placement.place)
            raise PuppetError(f"Could not put a module in its place, and nothing was changed: {err}") from err
        for folder in self._staging:
            sync_directory(folder)
        self._placements.clear()

    def remove(self, module: Path) -> None:
        """Rename a module out of its folder at once; `clear` removes its files later. Blocks."""
        try:
            module.rename(self.room(module.parent) / secrets.token_hex(8))
            sync_directory(module.parent)
        except OSError as err:
            raise PuppetError(f"Could not remove {module}: {err}") from err

    def clear(self) -> None:
        """Remove the temporary folders. Blocks."""
        for staging in self._staging.values():
            shutil.rmtree(staging, onerror=lambda _, path, error: log.warning("Could not remove %s: %s", path, error[1]))


@contextmanager
def placement(limits: ModuleArchiveLimits) -> Iterator[ModulePlacement]:
    """Yield a placement whose temporary folders are always removed at the end."""
    modules = ModulePlacement(limits)
    try:
        yield modules
    finally:
        modules.clear()

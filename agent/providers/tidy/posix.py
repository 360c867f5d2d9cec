"""The provider of `tidy`: finds the files to remove; the type `file` removes them."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from shared.errors import ResourceError
from shared.filesystem.globs import Glob
from shared.ral import Provider, Ref, State, Type
from shared.types.file import File
from shared.types.tidy import Tidy

from ..file.mounts import mount_points_below

MANY = 1000  # entries above which a directory without max_files gets a warning


class TidyFinder(Provider[Tidy], type=Tidy, name=""):
    """Walks the tree once for each resource; links are not followed."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now  # seconds since the epoch

    async def retrieve(self, resource: Tidy) -> State | None:
        return {}

    async def generate(self, resource: Tidy) -> Sequence[Type]:
        candidates = await asyncio.to_thread(self._candidates, resource)
        paths = sorted((path for path in candidates if self._must_go(resource, path, candidates[path])), reverse=True)
        if paths:
            resource.log("notice", f"Tidying {len(paths)} files")
        removals = {path: resource.child(path, self._removal(resource, path), type=File) for path in paths}
        if resource.rmdirs:
            for path, file in removals.items():
                folder = removals.get(path.rpartition("/")[0])
                if folder is not None:
                    folder.assign("require", [*folder.require, file.ref])
        return list(removals.values())

    def _removal(self, resource: Tidy, path: str) -> dict[str, Any]:
        inherited = resource.given_metaparameters(relationships=True)
        return {"path": path, "backup": resource.backup, "ensure": "absent", "force": True} | inherited

    def _must_go(self, resource: Tidy, path: str, info: os.stat_result) -> bool:
        """Return whether to remove a path: no resource manages it, and its name, age and size match."""
        if resource.find(Ref("file", path)) is not None or (stat.S_ISDIR(info.st_mode) and not resource.rmdirs):
            return False
        if resource.matches and not any(Glob(pattern, dots=True).matches(path.rpartition("/")[2]) for pattern in resource.matches):
            resource.log("debug", f"No specified patterns match {path}, not tidying")
            return False
        when: float = getattr(info, f"st_{resource.type}")
        return resource.has_reached(seconds=int(self.now()) - int(when), size=info.st_size)

    def _candidates(self, resource: Tidy) -> dict[str, os.stat_result]:
        """Return every path that may have to be removed, with its status. Blocks."""
        candidates: dict[str, os.stat_result] = {}
        points = [f"{resource.path.rstrip('/')}/{point}" for point in mount_points_below(resource.path) if point != "."]
        for path, info in _walk(resource.path, _depth(resource), frozenset(points)):
            candidates[path] = info
            if resource.max_files and len(candidates) > resource.max_files:
                raise ResourceError(
                    f"The directory '{resource.path}' contains more than {resource.max_files} entries, which exceeds max_files",
                    hint="Raise max_files, or tidy a smaller directory.",
                )
        if not resource.max_files and len(candidates) > MANY:
            resource.log(
                "warning",
                f"The directory '{resource.path}' contains {len(candidates)} entries, more than the {MANY} above which a warning is given; "
                "max_files sets a limit",
            )
        return candidates


def _depth(resource: Tidy) -> int | None:
    """Return how many levels below the path are visited; None: all."""
    recurse = resource.recurse
    return None if recurse is True else (recurse if isinstance(recurse, int) else 0)


def _walk(path: str, depth: int | None, without: frozenset[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield each path at and below a path with its status, without mounted files (`without`)."""
    try:
        info = os.lstat(path)
    except OSError:
        return
    yield path, info
    folders = [("" if path == "/" else path, 0)] if stat.S_ISDIR(info.st_mode) else []
    while folders:
        folder, level = folders.pop()
        if depth is not None and level >= depth:
            continue
        for name, below in _entries(folder):
            if f"{folder}/{name}" in without:
                continue
            yield f"{folder}/{name}", below
            if stat.S_ISDIR(below.st_mode):
                folders.append((f"{folder}/{name}", level + 1))


def _entries(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the entries of a directory with their status; entries that vanish or cannot be read are left out."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    yield entry.name, entry.stat(follow_symlinks=False)
                except OSError:
                    continue
    except OSError:
        return

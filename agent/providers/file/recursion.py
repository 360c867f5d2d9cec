"""The resources that a recursive directory generates for its content. Source: resource layer reference 5.6."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shared.errors import ResourceError
from shared.file_serving.metadata import MetadataOptions
from shared.file_serving.searching import names_below
from shared.file_serving.trees import local_tree
from shared.models.file_metadata import FileMetadata
from shared.ral import Ref
from shared.types.file import File

from ...servers.sources import FileSources
from .mounts import describe_mounts, leads_to_mount, mount_points_below
from .source_metadata import Inlined, metadata_options

Children = dict[str, File]  # by path relative to the directory


async def children_of(resource: File, sources: FileSources, inlined: Inlined) -> list[File]:
    """Return the resources below a directory, sorted by path, without those that the catalog manages itself or that lie below such."""
    children: Children = {}
    points: list[str] = []
    if resource.recurse == "true":
        points = await asyncio.to_thread(_points_below, resource.path)
        await _add_local(resource, children, points)
    if resource.wanted("target"):
        await _add_links(resource, sources, children)
    elif resource.source:
        await _add_remote(resource, sources, inlined, children)
    if resource.purge and resource.recurse == "true":
        for name, child in children.items():
            if not child.source and not leads_to_mount(name, points):
                child.set_desired("ensure", ["absent"])
    return sorted((child for name, child in children.items() if not _managed_elsewhere(resource, name)), key=lambda child: child.path)


def _managed_elsewhere(resource: File, name: str) -> bool:
    """Return whether the catalog has a path below the directory, or one between the two, as a file of its own."""
    path = resource.path.rstrip("/")
    for part in name.split("/"):
        path = f"{path}/{part}"
        if resource.find(Ref("file", path)) is not None:
            return True
    return False


def _metadata_options(resource: File) -> MetadataOptions:
    more: dict[str, Any] = {
        "recurse": True,
        "recurselimit": resource.recurselimit,
        "max_files": resource.max_files,
        "ignore": tuple(resource.ignore),
    }
    options = metadata_options(resource, **more)
    if resource.source or resource.wanted("content"):
        return options
    return MetadataOptions(links=options.links, checksum_type="none", source_permissions=options.source_permissions, **more)


def _points_below(folder: str) -> list[str]:
    return [point for point in mount_points_below(folder) if point != "."]


async def _add_local(resource: File, children: Children, points: Sequence[str]) -> None:
    """Add the local entries, without mounted files below: only a resource of its own leads there, or a source that has the path."""
    names, warnings = await asyncio.to_thread(names_below, *local_tree(Path(resource.path)), _metadata_options(resource), without=points)
    for warning in warnings:
        resource.log("warning", warning)
    foreign = [point for point in points if resource.find(Ref("file", f"{resource.path.rstrip('/')}/{point}")) is None]
    if foreign:
        resource.log(
            "warning", f"Not recursing into mount points: {describe_mounts(resource.path, foreign)}; give them a file resource of their own"
        )
    for name in names:
        children[name] = resource.child_at(name)


def _child_at(resource: File, relative: str, children: Children) -> File:
    """Return the child of that path, which is made and added when there is none yet."""
    child = children.get(relative)
    if child is None:
        child = children[relative] = resource.child_at(relative)
    return child


async def _add_links(resource: File, sources: FileSources, children: Children) -> None:
    """Add directories as in the target's tree, and a link to each of its files."""
    target = str(resource.target)
    if not target.startswith("/"):
        raise ResourceError(f"A link farm needs an absolute target, not '{target}'")
    for entry in await sources.search(f"file://{target}", _metadata_options(resource)) or ():
        relative = str(entry.relative_path)
        if relative == ".":
            resource.set_desired("ensure", ["directory"])
            continue
        child = _child_at(resource, relative, children)
        if entry.type == "directory":
            child.set_desired("ensure", ["directory"])
        else:
            child.set_desired("ensure", ["link"])
            child.set_desired("target", [entry.full_path])


async def _add_remote(resource: File, sources: FileSources, inlined: Inlined, children: Children) -> None:
    for source, entry in await _source_entries(resource, sources, inlined):
        relative = str(entry.relative_path)
        if relative == ".":
            resource.metadata = entry.model_copy(update={"source": source})
            continue
        child = _child_at(resource, relative, children)
        below = f"{source}/{relative}"
        child.assign("source", below)
        if entry.checksum is not None and entry.type == "file":
            child.use_checksum(entry.checksum.type)
        child.metadata = entry.model_copy(update={"source": below})


async def _source_entries(resource: File, sources: FileSources, inlined: Inlined) -> list[tuple[str, FileMetadata]]:
    """Return the entries of the first source that has any; with sourceselect `all` those of all sources, of one path the first."""
    entries_by_path: dict[str, tuple[str, FileMetadata]] = {}
    trees = inlined.trees.get(resource.title)
    for source in resource.source:
        entries = trees.get(source) if trees is not None else await sources.search(source, _metadata_options(resource))
        if not entries:
            continue
        top = next((entry for entry in entries if entry.relative_path == "."), None)
        if top is not None and top.type != "directory":
            return []
        for entry in entries:
            entries_by_path.setdefault(str(entry.relative_path), (source, entry))
        if resource.sourceselect == "first":
            break
    return list(entries_by_path.values())

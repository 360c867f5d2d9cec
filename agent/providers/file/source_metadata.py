"""The attributes that a file resource adopts from its source: kind, checksum, and the permissions if requested."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.errors import PuppetError, ResourceError
from shared.file_serving.metadata import MetadataOptions
from shared.filesystem import checksums, modes
from shared.models.catalog import Catalog
from shared.models.file_metadata import FileMetadata
from shared.types.file import File

from ...servers.sources import FileSources


@dataclass(frozen=True, slots=True)
class Inlined:
    """The metadata in a static catalog: of single files by title, of trees by title and source."""

    single: Mapping[str, FileMetadata] = field(default_factory=dict)
    trees: Mapping[str, Mapping[str, list[FileMetadata]]] = field(default_factory=dict)

    @classmethod
    def of(cls, catalog: Catalog) -> Inlined:
        """Return the metadata that a catalog contains inline; BadData when it is not metadata."""
        return cls(
            {title: FileMetadata.from_data(data) for title, data in catalog.metadata.items()},
            {
                title: {source: [FileMetadata.from_data(data) for data in listed] for source, listed in trees.items()}
                for title, trees in catalog.recursive_metadata.items()
            },
        )


def metadata_options(resource: File, **more: Any) -> MetadataOptions:
    """Return the options with which a resource requests metadata."""
    return MetadataOptions(
        links=resource.links,  # type: ignore[arg-type]
        checksum_type=checksums.algorithm(resource.checksum),
        source_permissions=resource.source_permissions,  # type: ignore[arg-type]
        **more,
    )


async def metadata_of(resource: File, sources: FileSources, inlined: Inlined, environment: str) -> FileMetadata:
    """
    Return the metadata of a resource's source, which is requested once: inlined, else of the first source that has any.

    Raises:
        ResourceError: no source has any, or a request failed.
    """
    if resource.metadata is not None:
        return resource.metadata
    metadata = inlined.single.get(resource.title)
    for source in resource.source if metadata is None else ():
        try:
            metadata = await sources.metadata(source, metadata_options(resource))
        except PuppetError as err:
            raise ResourceError(f"Could not retrieve file metadata for {source}: {err.message}", hint=err.hint) from err
        if metadata is not None:
            metadata = metadata.model_copy(update={"source": source})
            break
    if metadata is None:
        raise ResourceError(f"Could not retrieve information from environment {environment} source(s) {', '.join(resource.source)}")
    if metadata.source is None:
        metadata = metadata.model_copy(update={"source": resource.source[0]})
    resource.metadata = metadata
    return metadata


def adopt_metadata(resource: File, metadata: FileMetadata, *, root: bool) -> None:
    """
    Set the desired kind, checksum and permissions from the source, where the manifest sets none.

    Args:
        root: whether this process may give files away.
    Source: resource layer reference 5.5.
    """
    managed_link = metadata.type == "link" and metadata.links == "manage"
    if metadata.type not in ("file", "directory", "link"):
        raise ResourceError(f"Cannot manage files of type {metadata.type}: {metadata.source}")
    if metadata.type != "directory" and not managed_link and resource.wanted("content") is None:
        total = metadata.sum
        if total is None:
            raise ResourceError(f"The server gave no checksum for {metadata.source}")
        resource.manage_checksum(total)
    _take_permissions(resource, metadata, root=root)
    if resource.value_of("ensure") == "absent":
        return
    if metadata.type != "link":
        resource.set_desired("ensure", [metadata.type])
    elif resource.links == "follow":
        resource.set_desired("ensure", ["present"])
    else:
        resource.set_desired("ensure", ["link"])
        resource.set_desired("target", [metadata.destination or ""])


def _take_permissions(resource: File, metadata: FileMetadata, *, root: bool) -> None:
    policy = resource.source_permissions
    if policy == "ignore" or (policy == "use_when_creating" and os.path.lexists(Path(resource.path))):
        return
    if root:
        for attribute, number in (("owner", metadata.owner), ("group", metadata.group)):
            if number is not None and resource.wanted(attribute) is None:
                resource.set_desired(attribute, [number])
    if metadata.mode is not None and resource.wanted("mode") is None:
        resource.set_desired("mode", [modes.octal(metadata.mode)])

"""Termini that choose among termini by the request's URI. Source: protocol reference 1.6."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Generic

from shared.errors import BadRequest, Unsupported
from shared.file_serving.contents import open_content
from shared.file_serving.metadata import MetadataOptions, metadata_of
from shared.file_serving.searching import search
from shared.file_serving.trees import local_tree
from shared.filesystem.bucket import Bucket, BucketKey
from shared.filesystem.checksums import BLOCK, algorithm
from shared.indirector.core import M, Request, Terminus
from shared.models.file_bucket_file import FileBucketFile
from shared.models.file_content import FileContent
from shared.models.file_metadata import FileMetadata

Elsewhere = Callable[[str, int | None], Terminus[M]]


class Selector(Terminus[M], Generic[M]):
    """
    `puppet:` with a host asks that host, without one the default; `file:` and absolute paths are local.

    Args:
        elsewhere: The terminus for a host and port (None: the usual one).
    """

    def __init__(self, default: Terminus[M], local: Terminus[M], elsewhere: Elsewhere[M]) -> None:
        self.default = default
        self.local = local
        self.elsewhere = elsewhere

    def terminus_for(self, request: Request[M]) -> Terminus[M]:
        """Who is asked."""
        target = request.target
        if target is None:
            return self.local if request.key.startswith("/") else self.default
        if target.protocol == "file":
            return self.local
        if target.protocol in ("puppet", "https"):
            return self.elsewhere(target.host, target.port) if target.host else self.default
        raise Unsupported(f"URI protocol '{target.protocol}' is not currently supported for file serving")

    async def find(self, request: Request[M]) -> M | None:
        return await self.terminus_for(request).find(request)

    async def search(self, request: Request[M]) -> list[M] | None:
        return await self.terminus_for(request).search(request)

    async def save(self, request: Request[M]) -> object:
        return await self.terminus_for(request).save(request)

    async def head(self, request: Request[M]) -> bool:
        return await self.terminus_for(request).head(request)


class LocalMetadata(Terminus[FileMetadata]):
    """What is known of this machine's own files."""

    async def find(self, request: Request[FileMetadata]) -> FileMetadata | None:
        wanted = MetadataOptions.of(request, checksum_type="sha256")
        return await asyncio.to_thread(metadata_of, *local_tree(_path(request)), wanted)

    async def search(self, request: Request[FileMetadata]) -> list[FileMetadata] | None:
        wanted = replace(MetadataOptions.of(request, checksum_type="sha256"), recurse=request.flag("recurse"))
        listing = await asyncio.to_thread(search, *local_tree(_path(request)), wanted)
        return None if listing is None else listing.entries


class LocalContent(Terminus[FileContent]):
    """The bytes of this machine's own files."""

    async def find(self, request: Request[FileContent]) -> FileContent | None:
        opened = await asyncio.to_thread(open_content, *local_tree(_path(request)))
        return FileContent(name=request.key, chunks=opened.chunks)


def _path(request: Request[FileMetadata] | Request[FileContent]) -> Path:
    if not request.key.startswith("/"):
        raise BadRequest(f"Not an absolute path: {request.key}")
    return Path(request.key)


class LocalBucket(Terminus[FileBucketFile]):
    """This machine's own filebucket; keys are `<algorithm>/<hex>[/<path>]`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def _bucket(self, key: str) -> tuple[Bucket, BucketKey]:
        bucket = Bucket(self.root, algorithm=algorithm(key.partition("/")[0]))
        return bucket, bucket.key(key)

    async def head(self, request: Request[FileBucketFile]) -> bool:
        bucket, key = self._bucket(request.key)
        return await asyncio.to_thread(bucket.has, key.checksum.value, key.path)

    async def find(self, request: Request[FileBucketFile]) -> FileBucketFile | None:
        bucket, key = self._bucket(request.key)
        if not await asyncio.to_thread(bucket.has, key.checksum.value):
            return None

        async def chunks() -> AsyncIterator[bytes]:
            with await asyncio.to_thread(bucket.open, key.checksum.value) as file:
                while block := await asyncio.to_thread(file.read, BLOCK):
                    yield block

        return FileBucketFile(name=request.key, chunks=chunks)

    async def save(self, request: Request[FileBucketFile]) -> object:
        bucket, key = self._bucket(request.key)
        with bucket.incoming() as new:
            async for block in request.instance.chunks():
                await asyncio.to_thread(new.write, block)
            return await asyncio.to_thread(new.keep, key.checksum.value, key.path)

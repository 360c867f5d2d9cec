"""Filebuckets, which store replaced contents: local ones, and those of servers over the indirection `file_bucket_file`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from shared.errors import NotFound, Unsupported
from shared.filesystem import checksums
from shared.filesystem.checksums import Algorithm
from shared.indirector import Binding, Request
from shared.models.file_bucket_file import FileBucketFile
from shared.types.filebucket import Filebucket

if TYPE_CHECKING:
    from shared.filesystem.bucket import Bucket, Report


class Dipper(Protocol):
    """A filebucket, local or remote."""

    async def keep(self, fd: int, path: str) -> str:
        """Store the content of the open file `fd`, which came from `path`; return the hex value of its checksum."""

    def fetch(self, value: str) -> AsyncIterator[bytes]:
        """Yield the content with that checksum; raise NotFound when the bucket does not have it."""


RemoteBucket = Callable[[str | None, int | None], Dipper]
"""Makes the bucket of a server: its name (None: the agent's own) and port (None: the usual one)."""


class LocalDipper:
    """A filebucket in a directory of this machine."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket

    async def keep(self, fd: int, path: str) -> str:
        return await asyncio.to_thread(self._keep, fd, path)

    def _keep(self, fd: int, path: str) -> str:
        value = checksums.of_file(self.bucket.algorithm, fd)
        if self.bucket.has(value, path):
            return value
        with self.bucket.incoming() as new:
            offset = 0
            while block := os.pread(fd, checksums.BLOCK, offset):
                new.write(block)
                offset += len(block)
            return new.keep(path=path)

    async def fetch(self, value: str) -> AsyncIterator[bytes]:
        with await asyncio.to_thread(self.bucket.open, value) as file:
            while block := await asyncio.to_thread(file.read, checksums.BLOCK):
                yield block


@dataclass(eq=False, repr=False)
class RemoteDipper:
    """
    A server's filebucket. Content is sent only when the server says that it does not have it.

    Args:
        algorithm: The digest that the server stores by, or a function that finds it out.
    """

    binding: Binding[FileBucketFile]
    _: KW_ONLY
    algorithm: Algorithm | Callable[[], Awaitable[Algorithm]] = "sha256"
    environment: str = "production"

    async def keep(self, fd: int, path: str) -> str:
        digest = await self._digest()
        value = await asyncio.to_thread(checksums.of_file, digest, fd)
        key = f"{digest}/{value}/{path}"
        request: Request[FileBucketFile] = Request(key, self.environment)
        if not await self.binding.head(request):
            body = FileBucketFile(name=key, chunks=lambda: _chunks(fd), size=os.fstat(fd).st_size)
            await self.binding.save(replace(request, body=body))
        return value

    async def fetch(self, value: str) -> AsyncIterator[bytes]:
        digest = await self._digest()
        stored_file = await self.binding.find(Request(f"{digest}/{value}", self.environment))
        if stored_file is None:
            raise NotFound(f"Could not find a file with checksum {{{digest}}}{value} in the filebucket")
        async for chunk in stored_file.chunks():
            yield chunk

    async def _digest(self) -> Algorithm:
        return self.algorithm if isinstance(self.algorithm, str) else await self.algorithm()


def bucket_factory(
    folder: Path,
    *,
    algorithm: Algorithm = "sha256",
    remote: RemoteBucket | None = None,
    report: Report = lambda level, message: None,
) -> Callable[[Filebucket | None], Dipper]:
    """
    Return a function that returns the bucket of a filebucket resource; for None, the default bucket.

    Args:
        folder: The directory of the default local bucket, which is the setting clientbucketdir.
        remote: Makes the bucket of a server; None: no server can be reached.
        report: Receives (level, message) about duplicates and damage in local buckets.
    """

    def bucket_of(resource: Filebucket | None) -> Dipper:
        if resource is not None and resource.path is False:
            if remote is None:
                raise Unsupported(f"{resource.ref} is on a server, and there is none here", hint="Give the bucket a local path.")
            return remote(resource.server, resource.port)
        from shared.filesystem.bucket import Bucket

        path = folder if resource is None or resource.path is None else Path(str(resource.path))
        return LocalDipper(Bucket(path, algorithm=algorithm, report=report))

    return bucket_of


async def _chunks(fd: int) -> AsyncIterator[bytes]:
    offset = 0
    while block := await asyncio.to_thread(os.pread, fd, checksums.BLOCK, offset):
        yield block
        offset += len(block)

"""The filebucket over HTTP. Source: protocol reference 3.7."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import BinaryIO

from shared.errors import BadRequest, Denied, NotFound
from shared.file_serving.contents import CHUNK
from shared.filesystem.bucket import Bucket
from shared.indirector import Request, Terminus
from shared.models.file_bucket_file import FileBucketFile
from shared.process.log import LEVELS

log = logging.getLogger("puppet.master")


def report_to_log(level: str, text: str) -> None:
    """Log what a bucket reports; the levels are Puppet's."""
    log.log(LEVELS[level], "%s", text)


class BucketFiles(Terminus[FileBucketFile]):
    """
    The contents of a bucket by `<algorithm>/<hex>[/<path>]`.

    `?diff_with=<hex>` finds the differences of two contents; listing is for local use only. `legacy` is the same bucket by the
    algorithm of 3.x agents, which know no other.
    """

    def __init__(self, bucket: Bucket, *, legacy: Bucket | None = None) -> None:
        self.bucket = bucket
        self.legacy = legacy

    def _bucket(self, request: Request[FileBucketFile]) -> Bucket:
        old = self.legacy
        return old if old is not None and request.key.startswith(f"{old.algorithm}/") else self.bucket

    async def find(self, request: Request[FileBucketFile]) -> FileBucketFile | None:
        if request.flag("list_all"):
            raise Denied("Listing remote file buckets is not allowed")
        bucket = self._bucket(request)
        key = bucket.key(request.key)
        other = request.option("diff_with")
        if other:
            text = await asyncio.to_thread(bucket.diff, key.checksum.value, _hex(bucket, other))
            return FileBucketFile(name=request.key, size=len(text), chunks=lambda: _once(text))
        try:
            file = await asyncio.to_thread(bucket.open, key.checksum.value)
        except NotFound:
            return None
        size = (await asyncio.to_thread(file.seek, 0, 2)) or 0
        await asyncio.to_thread(file.seek, 0)
        return FileBucketFile(name=request.key, size=size, chunks=lambda: _blocks(file, CHUNK))

    async def head(self, request: Request[FileBucketFile]) -> bool:
        bucket = self._bucket(request)
        key = bucket.key(request.key)
        return await asyncio.to_thread(bucket.has, key.checksum.value, key.path)

    async def save(self, request: Request[FileBucketFile]) -> object:
        bucket = self._bucket(request)
        key = bucket.key(request.key)
        incoming = bucket.incoming()
        await asyncio.to_thread(incoming.__enter__)
        try:
            async for block in request.instance.chunks():
                await asyncio.to_thread(incoming.write, block)
            # Shielded: a complete content is stored, whether or not the client still waits.
            await asyncio.shield(asyncio.to_thread(incoming.keep, key.checksum.value, key.path))
        finally:
            await asyncio.to_thread(incoming.__exit__, None, None, None)
        return None


def _hex(bucket: Bucket, text: str) -> str:
    """Return the checksum that `diff_with` names, with or without its algorithm."""
    value = text.rpartition("/")[2]
    if not value:
        raise BadRequest("diff_with needs a checksum")
    return bucket.key(f"{bucket.algorithm}/{value}").checksum.value


async def _once(text: bytes) -> AsyncIterator[bytes]:
    yield text


async def _blocks(file: BinaryIO, chunk: int) -> AsyncIterator[bytes]:
    try:
        while block := await asyncio.to_thread(file.read, chunk):
            yield block
    finally:
        file.close()

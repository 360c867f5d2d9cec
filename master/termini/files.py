"""The file server's termini: metadata and content of the files in its mounts. Source: protocol reference 3.5, 3.6."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from environments.code_commands import CodeCommands, check_code_id, check_path
from environments.versions import find_version
from shared.errors import BadRequest, NotFound, Unavailable
from shared.file_serving.contents import CHUNK, FileBytes, open_content
from shared.file_serving.metadata import MetadataOptions, metadata_of
from shared.file_serving.searching import MetadataListing, search_merged
from shared.file_serving.trees import FileTree
from shared.filesystem.checksums import Algorithm, algorithm
from shared.indirector import Request, Terminus
from shared.models.file_content import FileContent
from shared.models.file_metadata import FileMetadata
from shared.models.static_file_content import StaticFileContent
from shared.names import quoted_for_log

from .mounts import MERGED_MOUNTS, FileServer

log = logging.getLogger("puppet.fileserver")

MAX_NAMED: Final = 10_000  # paths that were left out of answers; each is logged once
MAX_TOLD: Final = 100  # of these paths in one answer


MAX_ENTRIES = 200_000  # of a search


class MetadataServer(Terminus[FileMetadata]):
    """
    Metadata of the files in the mounts.

    Args:
        digest: The checksum type when a modern client names none; 3.x clients always get their dialect's.
    """

    def __init__(self, server: FileServer, *, digest: str) -> None:
        self.server = server
        self.digest: Algorithm = algorithm(digest)
        self._named_unserved: set[str] = set()

    def authorized(self, verb: str, request: Request[FileMetadata]) -> bool:
        return self.server.allowed(request)

    def options_of(self, request: Request[FileMetadata]) -> MetadataOptions:
        """Return the parsed options, with the defaults of the client's dialect."""
        legacy = request.dialect is not None and request.dialect.wraps
        options = MetadataOptions.of(
            request,
            checksum_type=algorithm(request.dialect.digest) if legacy and request.dialect else self.digest,
            source_permissions="use" if legacy else "ignore",
        )
        if legacy and request.dialect:
            options = replace(options, checksum_type=algorithm(request.dialect.digest))
        return replace(options, max_entries=MAX_ENTRIES)

    async def find(self, request: Request[FileMetadata]) -> FileMetadata | None:
        return await asyncio.to_thread(self.find_now, request)

    def find_now(self, request: Request[FileMetadata], version: str | None = None) -> FileMetadata | None:
        """Do the same as `find`, for threads, in a version of the environment; None: that of the client's run. Blocks."""
        options = self.options_of(request)
        for tree, relative in self.server.places(request.key, request.environment, request.client, version):
            entry = metadata_of(tree, relative, options)
            if entry is not None:
                return entry
        return None

    async def search(self, request: Request[FileMetadata]) -> list[FileMetadata] | None:
        return await asyncio.to_thread(self.search_now, request)

    def search_now(self, request: Request[FileMetadata], version: str | None = None) -> list[FileMetadata] | None:
        """Do the same as `search`, for threads, in a version of the environment; None: that of the client's run. Blocks."""
        options = self.options_of(request)
        if request.dialect is not None and request.dialect.wraps:
            options = replace(options, source_permissions="use")
        if self.server.is_merged(request.key):
            # The tree of all modules, whatever the sub-path of the request is; without any, the module folders themselves.
            mount = request.key.split("/", 1)[0]
            if version is None:
                version = self.server.version_for_listing(mount, request.environment, request.client, is_probe=not options.recurse)
            roots = [(FileTree(root), "") for root in self.server.roots(MERGED_MOUNTS[mount], request.environment, version)]
            if not roots:
                # The answer is never None, which would tell an agent that the environment does not exist.
                bare = self.server.bare_root(request.environment, version)
                roots = [(FileTree(bare), "")] if bare is not None else []
                options = replace(options, recurse=False)
            listing = search_merged(roots, options)
        else:
            places = self.server.places(request.key, request.environment, request.client, version)
            listing = search_merged(places, options) if places else None
        if listing is None:
            return None
        for warning in listing.warnings:
            log.warning("%s", warning)
        if listing.unserved:
            self._name_unserved(request, listing)
        return listing.entries

    def _name_unserved(self, request: Request[FileMetadata], listing: MetadataListing) -> None:
        """Log omitted paths, each once, and report them to an agent that asks."""
        for root, name in listing.unserved:
            path = quoted_for_log(f"{root}/{name}", 4096)
            if path not in self._named_unserved and len(self._named_unserved) < MAX_NAMED:
                self._named_unserved.add(path)
                log.warning("A file whose name is not UTF-8, or holds control characters, cannot be served and is left out: %s", path)
        if request.flag("unserved"):
            names = tuple(quoted_for_log(name, 200) for _, name in listing.unserved[:MAX_TOLD])
            listing.entries[0] = listing.entries[0].model_copy(update={"unserved": names})


class ContentServer(Terminus[FileContent]):
    """The contents of files, in pieces that are read in threads."""

    def __init__(self, server: FileServer) -> None:
        self.server = server

    def authorized(self, verb: str, request: Request[FileContent]) -> bool:
        return self.server.allowed(request)

    async def find(self, request: Request[FileContent]) -> FileContent | None:
        content = await asyncio.to_thread(self._open, request)
        if content is None:
            return None
        return FileContent(name=request.key, size=content.size, chunks=lambda: pieces(content, CHUNK))

    def _open(self, request: Request[FileContent]) -> FileBytes | None:
        for tree, relative in self.server.places(request.key, request.environment, request.client):
            try:
                return open_content(tree, relative)
            except NotFound:
                continue
        return None


class VersionedContent(Terminus[StaticFileContent]):
    """
    The contents of modules' files at a version of the code, from the site's program, or else from the versions of `puppet deploy`.

    Args:
        root_of: Returns the folder of an environment; NotFound.
        is_elsewhere: See `Runs`.
    """

    def __init__(
        self,
        code: CodeCommands | None,
        root_of: Callable[[str], str],
        is_elsewhere: Callable[[str, str], bool],
    ) -> None:
        self.code = code
        self.root_of = root_of
        self.is_elsewhere = is_elsewhere

    async def find(self, request: Request[StaticFileContent]) -> StaticFileContent | None:
        code_id = request.option("code_id")
        if not code_id:
            raise BadRequest("A /static_file_content request requires an environment, a code-id, and a file-path")
        check_code_id(code_id)
        check_path(request.key)
        if self.code is None:
            content = await asyncio.to_thread(self._open_kept, request.environment, code_id, request.key)
            return StaticFileContent(name=request.key, size=content.size, chunks=lambda: pieces(content, CHUNK))
        file = self.code.file
        return StaticFileContent(name=request.key, chunks=lambda: file(request.environment, code_id, request.key))

    def _open_kept(self, environment: str, code_id: str, path: str) -> FileBytes:
        """Return an open file of a stored version; raise NotFound."""
        version = find_version(self.root_of(environment), code_id)
        if version is None:
            if self.is_elsewhere(environment, code_id):
                raise Unavailable(f"This master does not have the version {code_id} of the environment '{environment}' yet", retry_after=10)
            hint = "puppet deploy stores versions; other tools need code_id_command and code_content_command."
            raise NotFound(f"This master does not have the version {code_id} of the environment '{environment}'", hint=hint)
        return open_content(FileTree(Path(version)), path)


async def pieces(content: FileBytes, chunk: int) -> AsyncIterator[bytes]:
    """Yield an open content as chunks, each read in a thread; it is closed at the end, however that comes."""
    blocks = content.blocks(chunk)
    try:
        while (block := await asyncio.to_thread(next, blocks, None)) is not None:
            yield block
    finally:
        content.close()

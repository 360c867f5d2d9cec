"""Sources of managed files and plugins: local files, a master's file server, web servers, and the code of a static catalog."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Protocol

from shared.errors import BadRequest, NotFound, Unsupported
from shared.file_serving.contents import open_content
from shared.file_serving.metadata import MetadataOptions, metadata_of
from shared.file_serving.searching import search
from shared.file_serving.trees import can_be_served, local_tree
from shared.indirector import Binding, Option, Request
from shared.models.file_content import FileContent
from shared.models.file_metadata import FileMetadata
from shared.names import quoted_for_log

log = logging.getLogger("puppet.file")

StaticContent = Callable[[str, str], AsyncIterator[bytes]]
"""Yields the bytes of a file of code: path below the environment, code id."""


class FileSources(Protocol):
    """The files that a kind of URL leads to. A source is a URL as the type `file` holds it; its path is not percent-encoded."""

    async def metadata(self, source: str, options: MetadataOptions) -> FileMetadata | None:
        """Return the metadata of one file; None when it does not exist."""

    async def search(self, source: str, options: MetadataOptions) -> list[FileMetadata] | None:
        """Return the metadata of a tree, its root (`.`) first; None when it does not exist."""

    def content(self, source: str, metadata: FileMetadata | None) -> AsyncIterator[bytes]:
        """Yield the bytes of a file; with `metadata.content_uri`, those of the code that the static catalog was compiled from."""


class LocalSources:
    """This machine's own files (`file:` URLs); links are followed as the system follows them."""

    async def metadata(self, source: str, options: MetadataOptions) -> FileMetadata | None:
        return await asyncio.to_thread(metadata_of, *local_tree(local_path(source)), options)

    async def search(self, source: str, options: MetadataOptions) -> list[FileMetadata] | None:
        listing = await asyncio.to_thread(search, *local_tree(local_path(source)), options)
        if listing is None:
            return None
        for warning in listing.warnings:
            log.warning("%s", warning)
        for root, name in listing.unserved:
            log.warning("Left out, as its name is not UTF-8 or holds control characters: %s", quoted_for_log(f"{root}/{name}", 400))
        return listing.entries

    async def content(self, source: str, metadata: FileMetadata | None) -> AsyncIterator[bytes]:
        opened = await asyncio.to_thread(open_content, *local_tree(local_path(source)))
        async with aclosing(opened.chunks()) as chunks:
            async for block in chunks:
                yield block


def local_path(source: str) -> Path:
    """Return the path of a `file:` URL; raise BadRequest when it names another host."""
    path = source.removeprefix("file:")
    if path.startswith("//"):
        path = path[2:]
        if not path.startswith("/"):
            raise BadRequest(f"A file: URL cannot name a host: {source}")
    return Path(path)


Bindings = tuple[Binding[FileMetadata], Binding[FileContent]]


class SourceRouter:
    """
    Files from wherever their URL leads: a Puppet file server, this machine (`file:`, or an absolute path), or a web server.

    File servers are asked over the indirections `file_metadata` and `file_content`, whose termini are REST on an agent and local under
    `puppet apply`.

    Args:
        elsewhere: Returns the same two indirections at the server that a URL names (host, port or None); None: only the default server
            can be asked.
        static: Fetches bytes of a static catalog's code; None: the server has none.
        code_id: The code that the catalog was compiled from.
        web: Makes what answers `http:` and `https:` URLs, when there is the first one; None: they are refused.
    """

    def __init__(
        self,
        metadata: Binding[FileMetadata],
        content: Binding[FileContent],
        *,
        environment: str,
        elsewhere: Callable[[str, int | None], Bindings] | None = None,
        static: StaticContent | None = None,
        code_id: str = "",
        web: Callable[[], FileSources] | None = None,
    ) -> None:
        self.environment = environment
        self.local = LocalSources()
        self._default = (metadata, content)
        self._elsewhere = elsewhere
        self._static = static
        self._code_id = code_id
        self._make_web = web
        self._web: FileSources | None = None

    async def metadata(self, source: str, options: MetadataOptions) -> FileMetadata | None:
        if handler := self._handler_for(source):
            return await handler.metadata(source, options)
        (binding, _), key = self._file_server_for(source)
        return await binding.find(Request(key, self.environment, options=_metadata_parameters(options)))

    async def search(self, source: str, options: MetadataOptions) -> list[FileMetadata] | None:
        entries = await self.listing(source, options)
        if entries is None or self._handler_for(source):
            return entries
        for name in (name for entry in entries for name in entry.unserved):
            log.warning("%s has a file that cannot be served, its name is not UTF-8 or holds control characters: %s", source, name)
        return [entry for entry in entries if _can_be_made(source, entry)]

    async def listing(self, source: str, options: MetadataOptions, *, legacy: bool = False) -> list[FileMetadata] | None:
        """
        Return the result of `search`, including the entries that it leaves out because their names cannot be requested.

        Args:
            legacy: Leave out the options that servers of 3.x do not know.
        """
        if handler := self._handler_for(source):
            return await handler.search(source, options)
        parameters: dict[str, Option] = {**_metadata_parameters(options), "recurse": "true" if options.recurse else "false"}
        if not legacy:
            parameters |= {"max_files": str(options.max_files), "unserved": "true"}
        if options.recurselimit is not None:
            parameters["recurselimit"] = str(options.recurselimit)
        if options.ignore:
            parameters["ignore"] = list(options.ignore)
        (binding, _), key = self._file_server_for(source)
        return await binding.search(Request(key, self.environment, options=parameters))

    async def content(self, source: str, metadata: FileMetadata | None) -> AsyncIterator[bytes]:
        if metadata is not None and metadata.content_uri:
            if self._static is None or not self._code_id:
                raise Unsupported(f"The catalog wants static content for {source}, which this server does not offer")
            _, _, path = _split_url(metadata.content_uri)
            async for chunk in self._static(path, self._code_id):
                yield chunk
            return
        if handler := self._handler_for(source):
            async for chunk in handler.content(source, metadata):
                yield chunk
            return
        (_, binding), key = self._file_server_for(source)
        content = await binding.find(Request(key, self.environment))
        if content is None:
            raise NotFound(f"Could not find the content of {source}")
        async for chunk in content.chunks():
            yield chunk

    def _handler_for(self, source: str) -> FileSources | None:
        """Return the handler of a URL that leads to no file server; None for `puppet:` and for a key without a scheme."""
        scheme, colon, _ = source.partition(":")
        if scheme in ("http", "https"):
            if self._make_web is None:
                raise Unsupported(f"Files of web servers cannot be fetched here: {source}")
            self._web = self._web or self._make_web()
            return self._web
        if scheme == "file" or source.startswith("/"):
            return self.local
        if colon and scheme != "puppet" and "://" in source:
            raise Unsupported(f"URI protocol '{scheme}' is not currently supported for file serving")
        return None

    def _file_server_for(self, source: str) -> tuple[Bindings, str]:
        """Return the indirections at the server that a `puppet:` URL leads to, and the key to ask for."""
        host, port, key = _split_url(source)
        if not host:
            return self._default, key
        if self._elsewhere is None:
            raise Unsupported(
                f"Files of another server cannot be fetched here: {source}", hint="Write puppet:///… for the agent's own server."
            )
        return self._elsewhere(host, port), key


def _can_be_made(source: str, entry: FileMetadata) -> bool:
    """Return whether the name of a listing's entry can be requested; otherwise log a warning."""
    name = entry.relative_path or "."
    if can_be_served(name):
        return True
    log.warning("%s lists a file whose name cannot be requested: %s", source, quoted_for_log(name, 200))
    return False


def _metadata_parameters(options: MetadataOptions) -> dict[str, Option]:
    return {"links": options.links, "checksum_type": options.checksum_type, "source_permissions": options.source_permissions}


def _split_url(source: str) -> tuple[str, int | None, str]:
    """Return host ('' for the default), port and key of a `puppet:` URL, whose path is plain text; BadRequest when it has another form."""
    address = source.removeprefix("puppet:")
    host, slash, key = address.removeprefix("//").partition("/") if address.startswith("//") else ("", "/", address.lstrip("/"))
    name, colon, port = host.rpartition(":") if re.search(r":\d{1,5}$", host, re.ASCII) else (host, "", "")
    if not slash or not key:
        raise BadRequest(f"Not a file on a server: {source}", hint="Such URLs look like puppet:///modules/MODULE/FILE.")
    return name, int(port) if colon else None, key

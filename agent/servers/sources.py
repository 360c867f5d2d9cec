"""Where the contents of managed files come from: local files, a master's file server, a static catalog's code."""

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
from shared.names import shown

log = logging.getLogger("puppet.file")

StaticContent = Callable[[str, str], AsyncIterator[bytes]]  # (path below the environment, code id) → the bytes


class FileSources(Protocol):
    """What a file resource may ask of its sources. A source is a URL as the type `file` holds it; its path is not percent-encoded."""

    async def metadata(self, source: str, wanted: MetadataOptions) -> FileMetadata | None:
        """What is known of one file; None: there is none."""

    async def search(self, source: str, wanted: MetadataOptions) -> list[FileMetadata] | None:
        """What is known of a tree, its root (`.`) first; None: there is none."""

    def content(self, source: str, metadata: FileMetadata | None) -> AsyncIterator[bytes]:
        """The bytes; with `metadata.content_uri`, those of the code that the static catalog was compiled from."""


class LocalSources:
    """`file:` URLs: this machine's own files, links followed as the system follows them."""

    async def metadata(self, source: str, wanted: MetadataOptions) -> FileMetadata | None:
        return await asyncio.to_thread(metadata_of, *local_tree(local_path(source)), wanted)

    async def search(self, source: str, wanted: MetadataOptions) -> list[FileMetadata] | None:
        listing = await asyncio.to_thread(search, *local_tree(local_path(source)), wanted)
        if listing is None:
            return None
        for warning in listing.warnings:
            log.warning("%s", warning)
        for root, name in listing.unserved:
            log.warning("Left out, as its name is not UTF-8 or holds control characters: %s", shown(f"{root}/{name}", 400))
        return listing.entries

    async def content(self, source: str, metadata: FileMetadata | None) -> AsyncIterator[bytes]:
        opened = await asyncio.to_thread(open_content, *local_tree(local_path(source)))
        async with aclosing(opened.chunks()) as chunks:
            async for block in chunks:
                yield block


def local_path(source: str) -> Path:
    """The path of a `file:` URL; BadRequest when it names another host."""
    path = source.removeprefix("file:")
    if path.startswith("//"):
        path = path[2:]
        if not path.startswith("/"):
            raise BadRequest(f"A file: URL cannot name a host: {source}")
    return Path(path)


Bindings = tuple[Binding[FileMetadata], Binding[FileContent]]


class Sources:
    """
    All kinds of sources, over the indirections `file_metadata` and `file_content`; their termini are REST on an agent, local under `apply`.

    Args:
        elsewhere: The same two indirections at the server that a URL names (host, port or None); None: only the default server is asked.
        static: How bytes of a static catalog's code are fetched; None: the server has none.
        code_id: Of the catalog.
        web: What answers `http:` and `https:` URLs; None: they are refused.
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
        web: FileSources | None = None,
    ) -> None:
        self.environment = environment
        self.local = LocalSources()
        self._default = (metadata, content)
        self._elsewhere = elsewhere
        self._static = static
        self._code_id = code_id
        self._web = web

    async def metadata(self, source: str, wanted: MetadataOptions) -> FileMetadata | None:
        if plain := self._plain(source):
            return await plain.metadata(source, wanted)
        (binding, _), key = self._asked(source)
        return await binding.find(Request(key, self.environment, options=_options(wanted)))

    async def search(self, source: str, wanted: MetadataOptions) -> list[FileMetadata] | None:
        if plain := self._plain(source):
            return await plain.search(source, wanted)
        options: dict[str, Option] = {
            **_options(wanted), "recurse": "true" if wanted.recurse else "false", "max_files": str(wanted.max_files), "unserved": "true"
        }  # fmt: skip
        if wanted.recurselimit is not None:
            options["recurselimit"] = str(wanted.recurselimit)
        if wanted.ignore:
            options["ignore"] = list(wanted.ignore)
        (binding, _), key = self._asked(source)
        entries = await binding.search(Request(key, self.environment, options=options))
        for name in (name for entry in entries or () for name in entry.unserved):
            log.warning("%s has a file that cannot be served, its name is not UTF-8 or holds control characters: %s", source, name)
        return [entry for entry in entries if _can_be_made(source, entry)] if entries is not None else None

    async def content(self, source: str, metadata: FileMetadata | None) -> AsyncIterator[bytes]:
        if metadata is not None and metadata.content_uri:
            if self._static is None or not self._code_id:
                raise Unsupported(f"The catalog wants static content for {source}, which this server does not offer")
            _, _, path = _taken_apart(metadata.content_uri)
            async for chunk in self._static(path, self._code_id):
                yield chunk
            return
        if plain := self._plain(source):
            async for chunk in plain.content(source, metadata):
                yield chunk
            return
        (_, binding), key = self._asked(source)
        found = await binding.find(Request(key, self.environment))
        if found is None:
            raise NotFound(f"Could not find the content of {source}")
        async for chunk in found.chunks():
            yield chunk

    def _plain(self, source: str) -> FileSources | None:
        """What answers URLs that are no file server's; None for `puppet:`."""
        scheme = source.partition(":")[0]
        if scheme in ("http", "https"):
            if self._web is None:
                raise Unsupported(f"Files of web servers cannot be fetched here: {source}")
            return self._web
        return self.local if scheme == "file" else None

    def _asked(self, source: str) -> tuple[Bindings, str]:
        """Who is asked for a `puppet:` URL, and for which key."""
        host, port, key = _taken_apart(source)
        if not host:
            return self._default, key
        if self._elsewhere is None:
            raise Unsupported(
                f"Files of another server cannot be fetched here: {source}", hint="Write puppet:///… for the agent's own server."
            )
        return self._elsewhere(host, port), key


def _can_be_made(source: str, entry: FileMetadata) -> bool:
    """Whether an entry of a listing has a name that can be asked for; one that has not is named and left out."""
    name = entry.relative_path or "."
    if can_be_served(name):
        return True
    log.warning("%s lists a file whose name cannot be asked for: %s", source, shown(name, 200))
    return False


def _options(wanted: MetadataOptions) -> dict[str, Option]:
    return {"links": wanted.links, "checksum_type": wanted.checksum_type, "source_permissions": wanted.source_permissions}


def _taken_apart(source: str) -> tuple[str, int | None, str]:
    """Host ('' for the default), port and key of a `puppet:` URL, whose path is plain text; BadRequest when it has another form."""
    rest = source.removeprefix("puppet:")
    host, slash, key = rest.removeprefix("//").partition("/") if rest.startswith("//") else ("", "/", rest.lstrip("/"))
    name, colon, port = host.rpartition(":") if re.search(r":\d{1,5}$", host, re.ASCII) else (host, "", "")
    if not slash or not key:
        raise BadRequest(f"Not a file on a server: {source}", hint="Such URLs look like puppet:///modules/MODULE/FILE.")
    return name, int(port) if colon else None, key

"""
Static catalogs: the metadata of files goes with the catalog, their bytes come from the version of the code it was compiled from.

So a run applies one version of the code, however much later, and asks for no metadata. Source: protocol reference 3.4.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from environments.code_commands import CodeCommands
from environments.directories import Environments
from environments.runs import Runs
from environments.versions import code_id_of_version
from shared.data import plainjson
from shared.errors import BadData, CompileError, Denied, Location, PuppetError
from shared.filesystem.checksums import ALGORITHMS, Algorithm, is_algorithm
from shared.indirector import Client, Option, Request
from shared.models.file_metadata import FileMetadata
from shared.wire.deflated import DeflatedText
from shared.wire.dialects import MODERN

from ..termini.files import MetadataServer

log = logging.getLogger("puppet.compiler")

_SOURCE = re.compile(r"puppet:(?://)?/([^/].*)", re.DOTALL)
_OF_A_MODULE = re.compile(r"[^/]+/[^/]+/files/.+", re.DOTALL)

Resource = Mapping[str, Any]


class MetadataSource(Protocol):
    """The file server, with options as on the wire; its methods raise Denied for files that the node may not see."""

    def find(self, key: str, options: Mapping[str, Option]) -> FileMetadata | None: ...

    def search(self, key: str, options: Mapping[str, Option]) -> list[FileMetadata] | None: ...


def negotiate_checksum(offered: str) -> Algorithm:
    """Return the first checksum type of an agent's list (`sha256.md5`) that is known here; CompileError when there is none."""
    # The agent's order counts, its preferred checksum first; Puppet joins them with dots.
    for name in offered.split("."):
        if is_algorithm(name):
            return name
    raise CompileError(f"Unable to find a common checksum type between agent '{offered[:200]}' and master '{' '.join(ALGORITHMS)}'.")


def inline_metadata(
    resources: Sequence[Resource], files: MetadataSource, *, root: str, checksum: Algorithm
) -> tuple[dict[str, Any], dict[str, Any]]:
    """
    Return the `metadata` (by title) and `recursive_metadata` (by title and source) of the files of a catalog that come from modules.

    Args:
        root: The environment's folder; files elsewhere have no version and are left to the run.
        checksum: The checksum type for resources that name none.
    Raises:
        CompileError: None of a file's sources exists.
    """
    single: dict[str, Any] = {}
    trees: dict[str, Any] = {}
    for resource in resources:
        if resource["type"] != "File":
            continue
        parameters = resource.get("parameters", {})
        sources = _sources(parameters)
        if not sources:
            continue
        queries = _MetadataQueries(files, root, _options(parameters, checksum))
        try:
            if str(parameters.get("recurse", "")) in ("True", "true", "remote"):
                metadata_by_source = queries.trees(sources, every=parameters.get("sourceselect") == "all")
                if metadata_by_source:
                    trees[resource["title"]] = metadata_by_source
            else:
                metadata = queries.first_with_uri(sources)
                if metadata is None:
                    where = Location(resource.get("file"), resource.get("line"))
                    raise CompileError(f"Could not get metadata for {', '.join(sources)}", where=where)
                if metadata.content_uri is not None:
                    single[resource["title"]] = metadata.to_data(MODERN)
        except CompileError:
            raise
        except PuppetError as err:
            # The run reports the problem of a single file, at that file.
            log.info("Not inlining the metadata of File[%s]: %s", resource["title"], err)
    return single, trees


def _sources(parameters: Mapping[str, Any]) -> list[str]:
    """Return the sources, without slashes at their ends; none when one of them is not our own file server's."""
    values = parameters.get("source")
    sources = [source for source in (values if isinstance(values, list) else [values]) if isinstance(source, str)]
    # Sources on web servers or in local folders have no metadata at a version.
    if parameters.get("ensure") == "absent" or not all(_SOURCE.fullmatch(source) for source in sources):
        return []
    return [source.rstrip("/") for source in sources]


def _options(parameters: Mapping[str, Any], checksum: Algorithm) -> dict[str, Option]:
    """Return the options with which the agent would ask for the metadata of a resource."""
    options: dict[str, Option] = {"links": "manage", "checksum_type": checksum, "source_permissions": "ignore"}
    for name, option in (("links", "links"), ("checksum", "checksum_type"), ("source_permissions", "source_permissions")):
        if parameters.get(name):
            options[option] = str(parameters[name])
    for name in ("recurselimit", "max_files"):
        if parameters.get(name) is not None:
            options[name] = str(parameters[name])
    ignore = parameters.get("ignore")
    if ignore:
        options["ignore"] = [str(pattern) for pattern in ignore] if isinstance(ignore, list) else [str(ignore)]
    return options


@dataclass(frozen=True, slots=True)
class _MetadataQueries:
    """The queries of one resource to the file server."""

    files: MetadataSource
    root: str
    options: Mapping[str, Option]

    def first_with_uri(self, sources: Sequence[str]) -> FileMetadata | None:
        """Return the metadata of the first source that has any; with a content URI when it may be inlined."""
        metadata = self.first(sources)
        if metadata is None or metadata.source is None:
            return None
        return metadata.model_copy(update={"content_uri": self._uri(metadata.source, metadata.full_path)})

    def first(self, sources: Sequence[str]) -> FileMetadata | None:
        """Return the metadata of the first source that has any."""
        for source in sources:
            metadata = self.files.find(_key(source), self.options)
            if metadata is not None:
                return metadata.model_copy(update={"source": source})
        return None

    def trees(self, sources: Sequence[str], *, every: bool) -> dict[str, Any]:
        """Return the trees of the first source that is there, or of `every` one, by source; none when one of them has no version."""
        trees: dict[str, Any] = {}
        for source in sources:
            entries = self.files.search(_key(source), {**self.options, "recurse": "true"})
            if entries is None:
                continue
            uri = self._uri(source, entries[0].path)
            # One source without a version makes the whole recursion fall back to ordinary requests.
            if uri is None:
                return {}
            trees[source] = [_with_uri(entry, uri).to_data(MODERN) for entry in entries]
            if not every:
                break
        return trees

    def _uri(self, source: str, path: str) -> str | None:
        """Return the URI at which the bytes of a module's file are found by version; None for every other file."""
        # Only files of the environment's modules have contents by version; others keep their usual metadata.
        if not path.startswith(f"{self.root}/") or not _key(source).startswith("modules/"):
            return None
        relative = path.removeprefix(f"{self.root}/")
        return f"puppet:///{relative}" if _OF_A_MODULE.fullmatch(relative) else None


def _key(source: str) -> str:
    match = _SOURCE.fullmatch(source)
    assert match is not None
    return match[1]


def _with_uri(entry: FileMetadata, base: str) -> FileMetadata:
    return entry.model_copy(update={"content_uri": base if entry.relative_path == "." else f"{base}/{entry.relative_path}"})


@dataclass(frozen=True, slots=True)
class _NodeFileServer:
    """The master's own file server with the rights of a node."""

    server: MetadataServer
    environment: str
    client: Client | None
    version: str

    def find(self, key: str, options: Mapping[str, Option]) -> FileMetadata | None:
        return self.server.find_now(self._request("find", key, options), self.version)

    def search(self, key: str, options: Mapping[str, Option]) -> list[FileMetadata] | None:
        return self.server.search_now(self._request("search", key, options), self.version)

    def _request(self, verb: str, key: str, options: Mapping[str, Option]) -> Request[FileMetadata]:
        request: Request[FileMetadata] = Request(key, self.environment, client=self.client, options=options, dialect=MODERN)
        # The master asks for the node: rules of fileserver.conf that deny it must hold here, too.
        if not self.server.authorized(verb, request):
            raise Denied(f"The node may not {verb} {key}")
        return request


@dataclass(frozen=True, slots=True)
class CodeVersion:
    """
    The version of the code that a catalog is made of.

    Attributes:
        pin: The folder that the environment's link led to when the run began; '' when it is not a link.
        code_id: The code id under which its files can be fetched later; None when they cannot.
    """

    pin: str = ""
    code_id: str | None = None


@dataclass(frozen=True, slots=True)
class StaticCatalogs:
    """
    The maker of static catalogs; `environments` names the environments that have them.

    Args:
        code: The site's programs for versions of code; without them only stored versions of `puppet deploy` can be fetched by version.
        runs: Knows the versions that runs use.
    """

    code: CodeCommands | None
    environments: Environments
    server: MetadataServer
    runs: Runs

    async def version_for(self, environment: str, client: Client | None, transaction: str) -> CodeVersion:
        """Return the version of the code that a client's catalog is made of; for `transaction` see `Runs.for_catalog`."""
        pin = ""
        if await self.environments.is_link(environment):
            pin = await asyncio.to_thread(self.runs.for_catalog, client.name if client is not None else "", environment, transaction)
        if self.code is not None:
            return CodeVersion(pin, await self.code.code_id(environment))
        return CodeVersion(pin, await asyncio.to_thread(code_id_of_version, pin) if pin else None)

    def is_static(self, environment: str, pin: str) -> bool:
        """Return whether the catalogs of an environment, pinned to a version, should be static. Blocks, briefly."""
        return self.environments.read(environment, version=pin).static_catalogs

    def make_static(self, text: DeflatedText, environment: str, checksum: Algorithm, client: Client | None, pin: str) -> bytes:
        """Return a catalog's JSON with the metadata in it; raise CompileError when a source does not exist. Blocks."""
        catalog = plainjson.loads_trusted(bytes(text))
        if not isinstance(catalog, dict):
            raise BadData("Expected a catalog")
        files = _NodeFileServer(self.server, environment, client, pin)
        root = pin or os.path.normpath(self.environments.root_of(environment))
        single, trees = inline_metadata(catalog["resources"], files, root=root, checksum=checksum)
        if single:
            catalog["metadata"] = single
        if trees:
            catalog["recursive_metadata"] = trees
        return plainjson.dumps(catalog)

    def add_metadata(self, text: DeflatedText, environment: str, checksum: Algorithm, client: Client | None, pin: str) -> bytes:
        """
        Return a catalog's JSON with the metadata of all single files on the file server, which the agent would ask for next.

        Unlike in a static catalog, the bytes are those that are served at the time of the agent's request. Blocks.
        """
        catalog = plainjson.loads_trusted(bytes(text))
        if not isinstance(catalog, dict):
            raise BadData("Expected a catalog")
        files = _NodeFileServer(self.server, environment, client, pin)
        metadata_by_title = {}
        for resource in catalog["resources"]:
            parameters = resource.get("parameters", {})
            sources = _sources(parameters) if resource["type"] == "File" and not parameters.get("recurse") else []
            try:
                metadata = _MetadataQueries(files, "", _options(parameters, checksum)).first(sources)
            except PuppetError as err:
                log.debug("Not inlining the metadata of File[%s]: %s", resource["title"], err)
                continue
            if metadata is not None:
                metadata_by_title[resource["title"]] = metadata.to_data(MODERN)
        if metadata_by_title:
            catalog["metadata"] = metadata_by_title
        return plainjson.dumps(catalog)

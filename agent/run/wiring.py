"""The services of one run: servers, file sources, filebuckets, and the terminus of each indirection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from shared.errors import ConfigError, NotFound, PeerAnswered
from shared.indirector.core import Binding, Indirection, Indirector, Request, Terminus
from shared.indirector.paths import Outgoing
from shared.indirector.rest import Rest
from shared.indirector.routes import Route
from shared.indirector.termini import FilePerKey, Json, MemoryTerminus, WriteOnlyYaml, Yaml
from shared.models.catalog import CATALOG, Catalog
from shared.models.certificate import CERTIFICATE
from shared.models.certificate_request import CERTIFICATE_REQUEST
from shared.models.certificate_revocation_list import CERTIFICATE_REVOCATION_LIST
from shared.models.facts import FACTS
from shared.models.file_bucket_file import FILE_BUCKET_FILE
from shared.models.file_content import FILE_CONTENT
from shared.models.file_metadata import FILE_METADATA
from shared.models.node import NODE
from shared.models.report import REPORT, Report
from shared.settings import AgentSettings
from shared.suggestions import did_you_mean
from shared.wire.dialects import LEGACY, MODERN, Dialect

from ..facts.builtin.host import Host
from ..facts.facter import Facter
from ..servers.http import HttpClient
from ..servers.server import DialectCache, Server
from ..servers.sites import Site
from ..servers.sources import Bindings, FileSources, SourceRouter
from ..state.runlog import RunLog
from ..state.statefiles import write_report
from .factsources import fact_sources

if TYPE_CHECKING:
    from ..servers.dipper import RemoteDipper

CATALOG_MODE = 0o600  # a cached catalog holds passwords


class _Reports(Rest[Report]):
    """Sends reports in the format that the server's version and the settings ask for."""

    def __init__(self, server: Server, form: str) -> None:
        super().__init__(REPORT, server)
        self.server = server
        self.form = form

    async def save(self, request: Request[Report]) -> object:
        dialect = await self.server.dialect()
        if dialect is LEGACY and self.form == "yaml":
            body = request.instance.to_ruby_yaml(legacy=True)
            outgoing = self._outgoing("save", request, dialect)
            return await self.server.send(outgoing, {"Accept": "pson, yaml", "Content-Type": "text/yaml"}, body)
        if dialect is MODERN and (self.server.version or (5,))[0] < 5:
            speaking = _FixedDialect(self.server, replace(MODERN, preferred="pson"))
            return await Rest(REPORT, speaking).save(request)
        return await super().save(request)


class _FixedDialect:
    """A server, spoken to in a dialect of our choice."""

    def __init__(self, server: Server, dialect: Dialect) -> None:
        self._dialect = dialect
        self.send = server.send
        self.open = server.open

    async def dialect(self) -> Dialect:
        return self._dialect


class LastRunReport(Terminus[Report]):
    """Writes the report of the last run for people and other programs, to the file of the setting `lastrunreport`."""

    def __init__(self, path: Path, legacy: Callable[[], bool]) -> None:
        self.path = path
        self.legacy = legacy

    async def save(self, request: Request[Report]) -> object:
        body = await asyncio.to_thread(request.instance.to_ruby_yaml, legacy=self.legacy())
        await write_report(self.path, body, RunLog())
        return str(self.path)


@dataclass
class Wiring:
    """
    The services that one run uses.

    Attributes:
        environment: The current environment, which the master may change.
        files: The server of files whose URL names no host; None: the master.
    """

    settings: AgentSettings
    client: HttpClient
    dialects: DialectCache
    routes: Mapping[str, Route] = field(default_factory=dict)
    host: Host = field(default_factory=Host)
    environment: str = "production"
    files: Site | None = None

    def __post_init__(self) -> None:
        settings = self.settings
        self.server = self.server_at(settings.server, settings.masterport)
        self.file_server = self.server if self.files in (None, self.server.site) else self._server(self.files)
        self.report_server = self.server_at(settings.report_server, settings.report_port)
        self.ca_server = self.server_at(settings.ca_server, settings.ca_port)
        self.indirector = Indirector([self._binding(indirection) for indirection in self._default_termini()])

    def server_at(self, host: str, port: int | None) -> Server:
        """Return a server by name, over this run's connections."""
        return self._server(Site(host, port or self.settings.masterport))

    def _server(self, site: Site) -> Server:
        return Server(site, self.client, self.dialects, lambda: self.environment)

    def _default_termini(self) -> Mapping[Indirection[Any], tuple[str, str]]:
        """Return the default terminus and cache of each indirection, by name. Source: protocol reference 1.6."""
        return {
            CATALOG: ("rest", "json"),
            NODE: ("rest", ""),
            FACTS: ("facter", ""),
            REPORT: ("rest", "yaml"),
            FILE_METADATA: ("selector", ""),
            FILE_CONTENT: ("selector", ""),
            CERTIFICATE: ("rest", "file"),
            CERTIFICATE_REQUEST: ("rest", "file"),
            CERTIFICATE_REVOCATION_LIST: ("rest", "file"),
        }

    def _binding(self, indirection: Indirection[Any]) -> Binding[Any]:
        terminus, cache = self._default_termini()[indirection]
        route = self.routes.get(indirection.name, Route())
        terminus = route.terminus or terminus
        cache = cache if route.cache is None else route.cache
        return Binding(indirection, self._terminus(indirection, terminus), cache=self._terminus(indirection, cache) if cache else None)

    def _terminus(self, indirection: Indirection[Any], name: str) -> Terminus[Any]:
        factories = self._factories(indirection)
        if name in factories:
            return factories[name]()
        from shared.indirector.plugins import PluginContext, find_models, find_plugins, terminus_of

        plugin = find_plugins([self.settings.plugindest]).get((indirection.name, name))
        if plugin is None:
            raise ConfigError(
                f"Could not find terminus {name} for indirection {indirection.name}",
                hint=did_you_mean(name, factories, otherwise=f"There are {', '.join(sorted(factories))}."),
            )
        find_models([self.settings.plugindest])
        return terminus_of(plugin, PluginContext(self.settings.model_dump(), self.server, indirection))

    def _factories(self, indirection: Indirection[Any]) -> dict[str, Callable[[], Terminus[Any]]]:
        settings, name = self.settings, indirection.name
        factories: dict[str, Callable[[], Terminus[Any]]] = {
            "rest": lambda: self.rest(indirection),
            "memory": MemoryTerminus,
            "json": lambda: Json(indirection, settings.client_datadir / name, mode=CATALOG_MODE if indirection is CATALOG else 0o640),
            "yaml": lambda: Yaml(indirection, settings.clientyamldir / name),
            "write_only_yaml": lambda: WriteOnlyYaml(indirection, settings.clientyamldir / name),
        }
        if indirection is REPORT:
            factories["yaml"] = lambda: LastRunReport(settings.lastrunreport, lambda: self.dialects.get(self.server.site) is LEGACY)
        if indirection is FACTS:
            factories["facter"] = lambda: Facter(self.host, fact_sources(settings), lambda: datetime.now(UTC).astimezone().isoformat())
        if indirection in (FILE_METADATA, FILE_CONTENT):
            factories["selector"] = factories["rest"]  # Puppet's name; here the SourceRouter chooses between local files and servers
        folders = {
            CERTIFICATE: settings.certdir,
            CERTIFICATE_REQUEST: settings.requestdir,
            CERTIFICATE_REVOCATION_LIST: settings.ssldir,
        }
        if indirection in folders:
            factories["file"] = lambda: FilePerKey(indirection, folders[indirection], suffix=".pem", mode=0o644, folder_mode=0o755)
        return factories

    def rest(self, indirection: Indirection[Any]) -> Terminus[Any]:
        """Return the terminus that asks the server of an indirection."""
        if indirection is REPORT:
            return _Reports(self.report_server, self.settings.report_serialization_format)
        if indirection in (CERTIFICATE, CERTIFICATE_REQUEST, CERTIFICATE_REVOCATION_LIST):
            return Rest(indirection, self.ca_server, prefix="puppet-ca")
        server = self.file_server if indirection in (FILE_METADATA, FILE_CONTENT) else self.server
        return Rest(indirection, server, post=indirection is CATALOG, required=indirection in (CATALOG, NODE))

    def sources(self, *, static: bool = False, code_id: str = "") -> SourceRouter:
        """
        Return the function that fetches files in the current environment: from this run's file server, unless a URL names another.

        Args:
            static: The server serves the code that a static catalog, of `code_id`, was compiled from.
        """
        return SourceRouter(
            self.indirector["file_metadata"],
            self.indirector["file_content"],
            environment=self.environment,
            elsewhere=self._file_bindings_at,
            static=self._static_content if static else None,
            code_id=code_id,
            web=self._web_sources,
        )

    def _web_sources(self) -> FileSources:
        from ..servers.websources import web_sources

        return web_sources(self.settings)

    def _file_bindings_at(self, host: str, port: int | None) -> Bindings:
        server = self.server_at(host, port)
        return Binding(FILE_METADATA, Rest(FILE_METADATA, server)), Binding(FILE_CONTENT, Rest(FILE_CONTENT, server))

    async def _static_content(self, path: str, code_id: str) -> AsyncIterator[bytes]:
        query = urlencode({"environment": self.environment, "code_id": code_id})
        outgoing = Outgoing("GET", f"/puppet/v3/static_file_content/{quote(path)}?{query}")
        answer = await self.file_server.open(outgoing, {"Accept": "application/octet-stream"})
        if answer.status != 200:
            text = (await answer.read()).decode("utf-8", "replace").strip()
            if answer.status == 404:
                raise NotFound(f"The master does not have {path} at code_id {code_id}: {text}")
            raise PeerAnswered(f"Error {answer.status} on SERVER: {text}", code=answer.status, body=text)
        async for chunk in answer.chunks():
            yield chunk

    def bucket_at(self, host: str | None, port: int | None) -> RemoteDipper:
        """Return the filebucket of a server; `host` None: of the agent's own."""
        from ..servers.dipper import RemoteDipper

        server = self.server_at(host or self.settings.server, port)
        configured = self.settings.given("digest_algorithm")
        binding = Binding(FILE_BUCKET_FILE, Rest(FILE_BUCKET_FILE, server))
        return RemoteDipper(binding, algorithm=lambda: server.digest(configured), environment=self.environment)

    @property
    def catalog(self) -> Binding[Catalog]:
        return self.indirector["catalog"]

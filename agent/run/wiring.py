"""Which terminus answers which indirection on an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shared import __version__
from shared.errors import ConfigError
from shared.indirector.core import Binding, Indirection, Indirector, Request, Terminus
from shared.indirector.plugins import PluginContext, find_plugins, terminus_of
from shared.indirector.rest import Rest
from shared.indirector.routes import Route
from shared.indirector.termini import FilePerKey, Json, Memory, WriteOnlyYaml, Yaml
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
from ..facts.configured import fact_sources
from ..facts.facter import Facter
from ..servers.http import Client
from ..servers.selectors import LocalBucket, LocalContent, LocalMetadata, Selector
from ..servers.server import Server, Spoken
from ..servers.sites import Limits, Observer, Proxy, Site, bounds_of
from ..servers.tls import Verifier
from ..state.statefiles import write_report

CATALOG_MODE = 0o600  # a cached catalog holds passwords


def client_for(settings: AgentSettings, verifier: Verifier | None, observer: Observer | None = None) -> Client:
    """A pool of connections with the limits and the proxy of the settings."""
    return Client(
        verifier,
        limits=Limits(
            connect=settings.http_connect_timeout,
            read=settings.http_read_timeout,
            keepalive=settings.http_keepalive_timeout,
            body=settings.max_catalog_body,
            retries=settings.http_retries,
            longest_wait=settings.http_longest_wait,
            bounds=bounds_of(settings),
        ),
        proxy=Proxy.of(settings),
        user_agent=settings.http_user_agent or f"Puppet/{MODERN.version} Bunraku/{__version__}",
        version=MODERN.version,
        extra_headers={name: value.strip() for name, _, value in (each.partition(":") for each in settings.http_extra_headers)},
        source=settings.sourceaddress,
        ciphers=settings.ciphers,
        observer=observer,
    )


class _Reports(Rest[Report]):
    """Reports in the form that the server of this age, and the settings, want."""

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
            speaking = _As(self.server, replace(MODERN, preferred="pson"))
            return await Rest(REPORT, speaking).save(request)
        return await super().save(request)


class _As:
    """A server spoken to in a dialect of our choice."""

    def __init__(self, server: Server, dialect: Dialect) -> None:
        self._dialect = dialect
        self.send = server.send
        self.open = server.open

    async def dialect(self) -> Dialect:
        return self._dialect


class LastRunReport(Terminus[Report]):
    """`lastrunreport`: the report of the last run, for people and other programs."""

    def __init__(self, path: Path, legacy: Callable[[], bool]) -> None:
        self.path = path
        self.legacy = legacy

    async def save(self, request: Request[Report]) -> object:
        from ..state.runlog import RunLog

        body = await asyncio.to_thread(request.instance.to_ruby_yaml, legacy=self.legacy())
        await write_report(self.path, body, RunLog())
        return str(self.path)


@dataclass
class Wiring:
    """
    All that one run talks to. `environment` is the current one; it changes when the master says so.

    `files` is where files come from whose URL names no host; None: the master.
    """

    settings: AgentSettings
    client: Client
    spoken: Spoken
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
        self.indirector = Indirector([self._binding(indirection) for indirection in self._declared()])

    def server_at(self, host: str, port: int | None) -> Server:
        """A server by name, over this run's connections."""
        return self._server(Site(host, port or self.settings.masterport))

    def _server(self, site: Site) -> Server:
        return Server(site, self.client, self.spoken, lambda: self.environment)

    def _declared(self) -> Mapping[Indirection[Any], tuple[str, str]]:
        """Terminus and cache of each indirection, by name, before routes.yaml. Source: protocol reference 1.6."""
        return {
            CATALOG: ("rest", "json"),
            NODE: ("rest", ""),
            FACTS: ("facter", ""),
            REPORT: ("rest", "yaml"),
            FILE_METADATA: ("selector", ""),
            FILE_CONTENT: ("selector", ""),
            FILE_BUCKET_FILE: ("selector", ""),
            CERTIFICATE: ("rest", "file"),
            CERTIFICATE_REQUEST: ("rest", "file"),
            CERTIFICATE_REVOCATION_LIST: ("rest", "file"),
        }

    def _binding(self, indirection: Indirection[Any]) -> Binding[Any]:
        terminus, cache = self._declared()[indirection]
        route = self.routes.get(indirection.name, Route())
        terminus = route.terminus or terminus
        cache = cache if route.cache is None else route.cache
        return Binding(indirection, self._terminus(indirection, terminus), cache=self._terminus(indirection, cache) if cache else None)

    def _terminus(self, indirection: Indirection[Any], name: str) -> Terminus[Any]:
        makers = self._makers(indirection)
        if name in makers:
            return makers[name]()
        plugin = find_plugins([self.settings.plugindest]).get((indirection.name, name))
        if plugin is None:
            raise ConfigError(
                f"Could not find terminus {name} for indirection {indirection.name}",
                hint=did_you_mean(name, makers, otherwise=f"There are {', '.join(sorted(makers))}."),
            )
        return terminus_of(plugin, PluginContext(self.settings.model_dump(), self.server, indirection))

    def _makers(self, indirection: Indirection[Any]) -> dict[str, Callable[[], Terminus[Any]]]:
        settings, name = self.settings, indirection.name
        makers: dict[str, Callable[[], Terminus[Any]]] = {
            "rest": lambda: self._rest(indirection),
            "memory": Memory,
            "json": lambda: Json(indirection, settings.client_datadir / name, mode=CATALOG_MODE if indirection is CATALOG else 0o640),
            "yaml": lambda: Yaml(indirection, settings.clientyamldir / name),
            "write_only_yaml": lambda: WriteOnlyYaml(indirection, settings.clientyamldir / name),
        }
        if indirection is REPORT:
            makers["yaml"] = lambda: LastRunReport(settings.lastrunreport, lambda: self.spoken.of(self.server.site) is LEGACY)
        if indirection is FACTS:
            makers["facter"] = lambda: Facter(self.host, fact_sources(settings), lambda: datetime.now(UTC).astimezone().isoformat())
        if indirection in (FILE_METADATA, FILE_CONTENT, FILE_BUCKET_FILE):
            makers["selector"] = lambda: self._selector(indirection)
        folders = {
            CERTIFICATE: settings.certdir,
            CERTIFICATE_REQUEST: settings.requestdir,
            CERTIFICATE_REVOCATION_LIST: settings.ssldir,
        }
        if indirection in folders:
            makers["file"] = lambda: FilePerKey(indirection, folders[indirection], suffix=".pem", mode=0o644, folder_mode=0o755)
        return makers

    def _rest(self, indirection: Indirection[Any], server: Server | None = None) -> Terminus[Any]:
        if indirection is REPORT:
            return _Reports(self.report_server, self.settings.report_serialization_format)
        if indirection in (CERTIFICATE, CERTIFICATE_REQUEST, CERTIFICATE_REVOCATION_LIST):
            return Rest(indirection, self.ca_server, prefix="puppet-ca")
        usual = self.file_server if indirection in (FILE_METADATA, FILE_CONTENT) else self.server
        return Rest(indirection, server or usual, post=indirection is CATALOG, required=indirection in (CATALOG, NODE))

    def _selector(self, indirection: Indirection[Any]) -> Terminus[Any]:
        def elsewhere(host: str, port: int | None) -> Terminus[Any]:
            return self._rest(indirection, self.server_at(host, port))

        if indirection is FILE_BUCKET_FILE:
            bucket: Terminus[Any] = LocalBucket(self.settings.clientbucketdir)
            return Selector(bucket, bucket, elsewhere)  # only a URI with a host leads to a server's bucket
        local: Terminus[Any] = LocalMetadata() if indirection is FILE_METADATA else LocalContent()
        return Selector(self._rest(indirection), local, elsewhere)

    @property
    def catalog(self) -> Binding[Catalog]:
        return self.indirector["catalog"]

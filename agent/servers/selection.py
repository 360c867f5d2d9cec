"""Selection of each service's server: from DNS, from `server_list`, or from the settings. Source: protocol reference 6.3, 6.9."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from shared.clock import utc_now
from shared.errors import ConfigError, PeerError, PuppetError
from shared.names import quoted_for_log
from shared.settings import AgentSettings

from .http import HttpClient
from .sites import PROBE, READY_PROBES, Site
from .srv import SrvLookup
from .tls import Verifier

log = logging.getLogger("puppet.agent")

# The settings that name each service's server, when neither DNS nor `server_list` does.
SERVICES = {
    "puppet": ("server", "masterport"),
    "ca": ("ca_server", "ca_port"),
    "report": ("report_server", "report_port"),
    "fileserver": ("server", "masterport"),
}
CONNECT_SECONDS = 10.0  # for one server; short, as there are others

ServerCheck = Callable[[Site], Awaitable[bool]]


def parse_server_list(entries: Sequence[str], port: int) -> list[Site]:
    """Return the servers that `host[:port]` texts name; `port` is the default. Raise ConfigError for a text that names no server."""
    sites = []
    for entry in entries:
        host, colon, text = entry.rpartition(":")
        # An IPv6 address in brackets without a port ends with the bracket.
        if not colon or entry.endswith("]"):
            host, text = entry, str(port)
        if not host or not (text.isascii() and text.isdigit()) or not 0 < int(text) < 65536:
            raise ConfigError(
                f"Could not set server_list: {quoted_for_log(entry)} is not a server", hint="Write host or host:port, separated by commas."
            )
        sites.append(Site(host.strip("[]"), int(text)))
    return sites


def readiness_check(client: HttpClient) -> ServerCheck:
    """
    Return a check whether a server can serve agents, according to its own status.

    A Ruby master of 3.x to 5.x has no status page; it passes when its answer names its version.
    """

    async def is_ready(site: Site) -> bool:
        try:
            status, names_version = await _readiness(client, site)
        except (PeerError, PuppetError, TimeoutError) as err:
            log.warning("Unable to connect to server from server_list setting: %s: %s", site, err or "it did not answer in time")
            return False
        if status != 200 and not (names_version and status < 500):
            log.warning("Puppet server %s is unavailable: %d", site, status)
            return False
        return True

    return is_ready


def connection_check(client: HttpClient) -> ServerCheck:
    """Return a check whether a server answers at all."""

    async def is_reachable(site: Site) -> bool:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await _probe(client, site, PROBE)
        except (PeerError, PuppetError, TimeoutError) as err:
            log.error("Connection to %s failed, trying next route: %s", site, err or "it did not answer in time")
            return False
        return True

    return is_reachable


async def _readiness(client: HttpClient, site: Site) -> tuple[int, bool]:
    """Return the status of the first of READY_PROBES that the server knows, 404 for none, and whether an answer named a version."""
    any_names_version = False
    async with asyncio.timeout(CONNECT_SECONDS):
        for target in READY_PROBES:
            status, names_version = await _probe(client, site, target)
            any_names_version = any_names_version or names_version
            # Older masters lack the first page, so a 404 says nothing about their readiness.
            if status != 404:
                break
    return status, any_names_version


async def _probe(client: HttpClient, site: Site, target: str) -> tuple[int, bool]:
    """Return the status of the answer, and whether that names a version."""
    answer = await client.request(site, "GET", target, {"Accept": "text/plain, */*"})
    await answer.read()
    return answer.status, "x-puppet-version" in answer.headers


class ServerSelection:
    """
    The server of each service, selected at its first use.

    Args:
        readiness: The check that a server of `server_list` must pass.
        reachability: The check that a server from DNS must pass; None: the same.
        srv: Looks up SRV records; None: with the system's DNS.
    """

    def __init__(
        self, settings: AgentSettings, readiness: ServerCheck, *, reachability: ServerCheck | None = None, srv: SrvLookup | None = None
    ) -> None:
        self.settings = settings
        self._readiness_check = readiness
        self._connection_check = reachability or readiness
        self._srv = srv or SrvLookup(settings.srv_domain)
        self._selected: dict[str, Site] = {}
        self._reachable: dict[Site, bool] = {}
        self._listed: Site | None = None

    @classmethod
    def of(cls, client: HttpClient, settings: AgentSettings, *, srv: SrvLookup | None = None) -> ServerSelection:
        """Return a selection that checks servers over the client's connections."""
        return cls(settings, readiness_check(client), reachability=connection_check(client), srv=srv)

    async def site(self, service: str) -> Site:
        """
        Return the server of a service (a key of SERVICES).

        With `use_srv_records` it is the first server from DNS that answers; else the first of `server_list` that answers, for services
        whose own setting is not set; else the server that the setting names.

        Raises:
            PeerError: none of server_list answers.
        """
        if service not in self._selected:
            self._selected[service] = await self._select(service)
            log.debug("Resolved service '%s' to %s", service, self._selected[service])
        return self._selected[service]

    async def _select(self, service: str) -> Site:
        settings = self.settings
        if settings.use_srv_records:
            for site in await self._srv.sites(service):
                if site not in self._reachable:
                    self._reachable[site] = await self._connection_check(site)
                if self._reachable[site]:
                    return site
        host, port = SERVICES[service]
        # An explicit ca_server or report_server is never replaced by an entry of the list.
        if settings.server_list and (host == "server" or settings.given(host) is None):
            return await self._first_listed()
        return Site(getattr(settings, host), getattr(settings, port))

    async def _first_listed(self) -> Site:
        """Return the server of `server_list` that is used for everything."""
        if self._listed is None:
            for site in parse_server_list(self.settings.server_list, self.settings.masterport):
                if await self._readiness_check(site):
                    log.debug("Selected server from the `server_list` setting: %s", site)
                    self._listed = site
                    break
            else:
                names = ",".join(self.settings.server_list)
                raise PeerError(f"Could not select a functional puppet server from server_list: '{names}'")  # noqa: S608  # not SQL
        return self._listed

    async def settings_with_servers(self, services: Iterable[str] = SERVICES) -> AgentSettings:
        """Return the settings with the selected servers in them; raise PeerError when none of server_list answers."""
        changes: dict[str, object] = {}
        for service in services:
            if service != "fileserver":  # which no setting names
                site = await self.site(service)
                changes |= zip(SERVICES[service], (site.host, site.port), strict=True)
        return self.settings.model_copy(update=changes)


async def locate_ca(settings: AgentSettings, *, srv: SrvLookup | None = None) -> Site:
    """
    Return the server of the CA, for a host that may have no certificate yet.

    No certificate is shown, and no server is trusted before the CA's certificate is on disk.

    Raises:
        PeerError: none of server_list answers.
    """
    has_ca = settings.localcacert.exists()
    verifier = Verifier(settings.localcacert, None, False, utc_now, None, None) if has_ca else None
    async with HttpClient.of(settings, verifier) as client:
        return await ServerSelection.of(client, settings, srv=srv).site("ca")

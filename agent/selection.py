"""Which servers a run talks to: those of `server_list`, or those that DNS names. Source: protocol reference 6.3, 6.9."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from shared.errors import ConfigError, PeerError, PuppetError
from shared.names import shown
from shared.settings import AgentSettings

from .http import Client
from .sites import Site
from .srv import Srv

log = logging.getLogger("puppet.agent")

SERVICES = (("puppet", "server", "masterport"), ("ca", "ca_server", "ca_port"), ("report", "report_server", "report_port"))
CONNECT_SECONDS = 10.0  # for one server of several: there are others


def sites(entries: Sequence[str], port: int) -> list[Site]:
    """The servers of `host[:port]` texts; `port` for those that name none. ConfigError for what is no server."""
    found = []
    for entry in entries:
        host, colon, text = entry.rpartition(":")
        if not colon or entry.endswith("]"):
            host, text = entry, str(port)
        if not host or not (text.isascii() and text.isdigit()) or not 0 < int(text) < 65536:
            raise ConfigError(
                f"Could not set server_list: {shown(entry)} is not a server", hint="Write host or host:port, separated by commas."
            )
        found.append(Site(host.strip("[]"), int(text)))
    return found


async def listening(site: Site) -> bool:
    """Whether somebody takes a connection there; who that is, nobody has looked."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(site.host, site.port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


def running(client: Client) -> Callable[[Site], Awaitable[bool]]:
    """Whether a verified server says that it is running; one of 3.x has no such page, but its version."""

    async def answers(site: Site) -> bool:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                answer = await client.request(site, "GET", "/status/v1/simple", {"Accept": "text/plain, */*"})
                await answer.read()
        except (PeerError, PuppetError, TimeoutError) as err:
            log.debug("Unable to connect to server from server_list setting: %s: %s", site, err or "it did not answer in time")
            return False
        return answer.status == 200 or "x-puppet-version" in answer.headers

    return answers


def reachable(client: Client) -> Callable[[Site], Awaitable[bool]]:
    """Whether a verified server answers at all."""

    async def answers(site: Site) -> bool:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await (await client.request(site, "GET", "/status/v1/simple", {"Accept": "text/plain, */*"})).read()
        except (PeerError, PuppetError, TimeoutError) as err:
            log.error("Connection to %s failed, trying next route: %s", site, err or "it did not answer in time")
            return False
        return True

    return answers


async def located(settings: AgentSettings, srv: Srv, answers: Callable[[Site], Awaitable[bool]]) -> tuple[AgentSettings, bool]:
    """The settings with the servers that DNS names and that answer, and whether a master is among them; others stay as they are."""
    tried: dict[Site, bool] = {}
    changes: dict[str, object] = {}
    for service, host, port in SERVICES:
        for site in await srv.sites(service):
            if site not in tried:
                tried[site] = await answers(site)
            if tried[site]:
                log.debug("Resolved service '%s' to %s", service, site)
                changes |= {host: site.host, port: site.port}
                break
    return settings.model_copy(update=changes), "server" in changes


async def selected(
    settings: AgentSettings,
    answers: Callable[[Site], Awaitable[bool]],
    *,
    srv: Srv | None = None,
    reached: Callable[[Site], Awaitable[bool]] | None = None,
) -> AgentSettings:
    """
    The settings with the servers to use: with `use_srv_records` those that DNS names; else, or when none of these is
    there, the first of `server_list` that answers as `server` and for all that followed `server`.

    Args:
        srv: the records; by default asked of the system's DNS. reached: what answers by DNS must pass; `answers` by default.
    Raises:
        PeerError: none of server_list answers.
    """
    if settings.use_srv_records:
        settings, found = await located(settings, srv or Srv(settings.srv_domain), reached or answers)
        if found:
            return settings
    if not settings.server_list:
        return settings
    for site in sites(settings.server_list, settings.masterport):
        if await answers(site):
            log.debug("Selected server from the `server_list` setting: %s", site)
            return pointed_at(settings, site)
    names = ",".join(settings.server_list)
    raise PeerError(f"Could not select a functional puppet server from server_list: '{names}'")  # noqa: S608  # not SQL


def pointed_at(settings: AgentSettings, site: Site) -> AgentSettings:
    """The settings with another server; the servers for certificates and reports follow unless they were set to others."""
    changes: dict[str, object] = {"server": site.host, "masterport": site.port}
    for host, port in (("ca_server", "ca_port"), ("report_server", "report_port")):
        if getattr(settings, host) == settings.server:
            changes |= {host: site.host, port: site.port}
    return settings.model_copy(update=changes)

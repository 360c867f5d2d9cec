"""A server asked with this host's certificate, for commands that are not a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent.run.wiring import Wiring
from agent.servers.http import HttpClient
from agent.servers.selection import ServerSelection
from agent.servers.server import DialectCache, Server
from agent.servers.tls import Verifier
from shared.clock import utc_now
from shared.errors import PeerNotTrusted
from shared.indirector.routes import read_routes
from shared.settings import AgentSettings


@asynccontextmanager
async def verified_client(settings: AgentSettings) -> AsyncIterator[HttpClient]:
    """
    Verified connections with this host's certificate, which end with the block.

    Raises:
        PeerNotTrusted: this host has no certificates of a CA yet.
    """
    if not settings.localcacert.exists():
        raise PeerNotTrusted(
            f"The CA certificates are missing from '{settings.localcacert}'", hint="Run `puppet agent -t`: its first run fetches them."
        )
    revocation = settings.certificate_revocation
    verifier = Verifier(
        settings.localcacert,
        settings.hostcrl if revocation != "false" else None,
        revocation if revocation != "false" else False,
        utc_now,
        settings.hostcert if settings.hostcert.exists() else None,
        settings.hostprivkey if settings.hostcert.exists() else None,
    )
    async with HttpClient.of(settings, verifier) as client:
        yield client


@asynccontextmanager
async def open_server(settings: AgentSettings, service: str = "puppet") -> AsyncIterator[Server]:
    """
    The server of one service over such connections, by the settings, `server_list` or DNS.

    Raises:
        PeerNotTrusted: the server is not trusted. PeerError: no server of server_list answers.
    """
    async with verified_client(settings) as client:
        site = await ServerSelection.of(client, settings).site(service)
        yield Server(site, client, DialectCache(), lambda: settings.environment or "production")


@asynccontextmanager
async def open_wiring(settings: AgentSettings, service: str) -> AsyncIterator[Wiring]:
    """
    Open the servers and termini of an agent's run: those of routes.yaml, and the selected server of one service.

    Raises:
        PeerNotTrusted: the server is not trusted. PeerError: no server of server_list answers.
    """
    dialects = await asyncio.to_thread(DialectCache.load, settings.scheme, settings.statedir / "dialects.json")
    routes = await asyncio.to_thread(read_routes, settings.route_file, "agent")
    async with verified_client(settings) as client:
        selection = ServerSelection.of(client, settings)
        settings, files = (
            await selection.settings_with_servers([service]),
            await selection.site("fileserver") if service == "fileserver" else None,
        )
        yield Wiring(settings, client, dialects, routes, environment=settings.environment or "production", files=files)

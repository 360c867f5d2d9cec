"""A server asked with this host's certificate, for commands that are not a run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from agent.http import Client
from agent.server import Server, Spoken
from agent.sites import Site
from agent.tls import Verifier
from agent.wiring import client_for
from shared.errors import PeerNotTrusted
from shared.settings import AgentSettings


@asynccontextmanager
async def verified(settings: AgentSettings) -> AsyncIterator[Client]:
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
        lambda: datetime.now(UTC),
        settings.hostcert if settings.hostcert.exists() else None,
        settings.hostprivkey if settings.hostcert.exists() else None,
    )
    async with client_for(settings, verifier) as client:
        yield client


@asynccontextmanager
async def connected(settings: AgentSettings, host: str, port: int) -> AsyncIterator[Server]:
    """One server over such connections; PeerNotTrusted as there."""
    async with verified(settings) as client:
        yield Server(Site(host, port), client, Spoken(), lambda: settings.environment or "production")

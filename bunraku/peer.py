"""A server asked with this host's certificate, for commands that are not a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

from agent.run.wiring import Wiring
from agent.servers.http import HttpClient
from agent.servers.selection import ServerSelection
from agent.servers.server import DialectCache, Server
from agent.servers.tls import Verifier
from shared.data import plainjson
from shared.errors import PeerAnswered, PeerNotTrusted, PuppetError, TooLarge
from shared.indirector.routes import read_routes
from shared.names import quoted_for_log
from shared.settings import AgentSettings

MAX_LINE = 1 << 30
"""Bytes of a line of an answer, such as the result of a preview."""
_SHOWN = 500  # characters of an error's text


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
    async with HttpClient.of(settings, Verifier.of(settings)) as client:
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


async def answered_lines(settings: AgentSettings, target: str, question: Mapping[str, Any], what: str) -> AsyncGenerator[Any]:
    """
    Yield the lines of the answer to a POST, each as plain data.

    Args:
        what: The name of what is asked for, in errors.
    Raises:
        PeerNotTrusted, PeerError: the server cannot be asked. PuppetError: it refuses, or a line says that it failed.
    """
    async with open_server(settings) as server:
        headers = {"Accept": "application/x-ndjson, application/json", "Content-Type": "application/json"}
        body = plainjson.dumps(dict(question))
        answer = await server.client.request(server.site, "POST", target, headers, body, compressed=False)
        if answer.status != 200:
            text = (await answer.read()).decode("utf-8", "replace")
            raise PeerAnswered(
                f"{server.site} answered the request for {what} with {answer.status}: {quoted_for_log(text, _SHOWN)}", code=answer.status
            )
        async with aclosing(_lines(answer.chunks())) as lines:
            async for line in lines:
                match plainjson.loads(line):
                    case {"error": {"message": str(message), "hint": str(hint)}}:
                        raise PuppetError(message, hint=hint)
                    case data:
                        yield data


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    rest: list[bytes] = []
    size = 0
    async for chunk in chunks:
        *whole, last = chunk.split(b"\n")
        for part in whole:
            yield b"".join([*rest, part])
            rest, size = [], 0
        rest.append(last)
        size += len(last)
        if size > MAX_LINE:
            raise TooLarge(f"A line of an answer is longer than {MAX_LINE} bytes")

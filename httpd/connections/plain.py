"""A listener without TLS, at an address or at a Unix socket. Its clients have no names: everyone who can reach it is a client."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import stat
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from aiohttp import web_response
from aiohttp.web_protocol import RequestHandler

from shared.errors import ConfigError

from ..limits import ServerLimits
from .connection import Connection, ConnectionServer, Handler, HttpRequest
from .listener import BACKLOG, listening_socket
from .webpages import RequestOfPage, check_sender, host_names

log = logging.getLogger("puppet.http")

LONGEST_SOCKET_PATH = 107  # bytes; the kernel's sockaddr_un has no more


def unix_listening_socket(path: Path) -> socket.socket:
    """
    Return a Unix socket that listens at `path` and that only this process's user may connect to; an abandoned one is replaced.

    Raises:
        OSError: It cannot listen; EADDRINUSE when another process does, or a file that is not a socket is there.
    """
    if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
        raise OSError(errno.ENAMETOOLONG, f"the path of a Unix socket has at most {LONGEST_SOCKET_PATH} bytes")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_abandoned(path)
        os.fchmod(listening.fileno(), 0o600)  # the file that bind makes gets this mode from its first moment on
        listening.setblocking(False)
        listening.bind(os.fspath(path))
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def _remove_abandoned(path: Path) -> None:
    """Remove the Unix socket at `path` if no process listens there; raise OSError if one does, or if it is another kind of file."""
    if (problem := occupation_of(path)) is not None:
        raise OSError(errno.EADDRINUSE, problem)
    path.unlink(missing_ok=True)


def occupation_of(path: Path) -> str | None:
    """Return why a Unix socket cannot be made at `path`; None when there is no file, or one that a process has abandoned. OSError."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISSOCK(mode):
        return "there is a file that is no socket"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return None
        except BlockingIOError:
            pass  # somebody listens and is busy
    return os.strerror(errno.EADDRINUSE)


class _BoundedConnections(ConnectionServer):
    """A bounded number of connections at a time: further ones are cut, and those that come after a stop has begun."""

    def __init__(self, handler: Handler, limits: ServerLimits, most: int) -> None:
        super().__init__(handler, limits)
        self.most = most

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if len(self.connections) > self.most and isinstance(handler, Connection):
            handler.abort()

    async def drain(self, timeout: float) -> None:
        self.most = 0
        await super().drain(timeout)


class PlainListener:
    """
    Accepts connections and hands their requests to `handler`; clients' identities are not verified. At an address, requests of web pages
    are refused.

    Args:
        most: The connections at the same time; further ones are cut.
        names: Names by which clients may address this host, in addition to its own name and its listening address.
    """

    def __init__(self, handler: Handler, limits: ServerLimits, most: int, names: Iterable[str] = ()) -> None:
        self._handler = handler
        self._names = tuple(names)
        self.connections = _BoundedConnections(handler, limits, most)
        self._server: asyncio.Server | None = None
        self._socket_path: Path | None = None

    async def start(self, place: tuple[str, int] | Path, *, hint: str = "Another program may use the address already.") -> str:
        """
        Listen at an address and port (0: any free one) or at the path of a Unix socket; return the place as text, with the port.

        Raises:
            ConfigError: It cannot listen there; `hint` has a remedy.
        """
        loop = asyncio.get_running_loop()
        try:
            if isinstance(place, Path):
                listening = await loop.run_in_executor(None, unix_listening_socket, place)
                self._server = await loop.create_unix_server(self.connections, sock=listening, backlog=BACKLOG)
                self._socket_path = place
                return str(place)
            listening = await loop.run_in_executor(None, listening_socket, *place)
            names = await loop.run_in_executor(None, host_names, (*self._names, place[0]))
            self.connections.handler = partial(self._handle_checked, names)
            self._server = await loop.create_server(self.connections, sock=listening, backlog=BACKLOG)
        except OSError as err:
            name = str(place) if isinstance(place, Path) else f"{place[0]} port {place[1]}"
            raise ConfigError(f"Could not listen on {name}: {err.strerror or err}", hint=hint) from err
        host, port, *_ = listening.getsockname()
        return f"{host} port {port}"

    async def _handle_checked(self, names: frozenset[str], request: HttpRequest) -> web_response.StreamResponse:
        try:
            check_sender(request.method, request.headers, names)
        except RequestOfPage as err:
            log.warning("Refused a request of %s: %s", request.connection.client_address, err)
            response = web_response.Response(status=err.status, text=f"{err}")
            response.force_close()
            return response
        return await self._handler(request)

    async def stop(self, timeout: float) -> None:
        """Stop accepting at once, let requests in flight end within `timeout` seconds, cut the rest."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            if self._socket_path is not None:
                await asyncio.to_thread(self._socket_path.unlink, missing_ok=True)
        await self.connections.drain(timeout)

"""The listeners of a store: at a Unix socket, without TLS at an address, and over TLS."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from httpd.connections.plain import PlainListener
from httpd.dispatch.dispatcher import Dispatcher
from httpd.limits import ServerLimits
from httpd.options import ServerOptions
from shared.errors import ConfigError
from shared.filesystem.files import make_directory
from shared.process.supervision import Supervisor
from shared.settings import MasterSettings

from ..endpoints.application import AccessRules, StoreApplication
from ..endpoints.metrics import StoreMetrics

if TYPE_CHECKING:
    from httpd.server import HttpServer

_SOCKET_HINT = "Another store may run already; the setting is store_socket."
_PLAIN_HINT = "Another program may use the port already; the settings are store_plain_bindaddress and store_plain_port."


def read_access(settings: MasterSettings) -> AccessRules:
    """Return the access rules of the store over TLS; raise ConfigError when the list cannot be read. Blocks."""
    if not settings.store_allowlist:
        return AccessRules(settings.certname)
    try:
        lines = Path(settings.store_allowlist).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as err:
        raise ConfigError(f"Could not read {settings.store_allowlist}: {err}", hint="The setting is store_allowlist.") from err
    return AccessRules(settings.certname, frozenset(name for line in lines if (name := line.strip()) and not name.startswith("#")))


class Listeners:
    """
    The places where a store listens, all for the same application.

    Args:
        metrics: Counts the answers.
    """

    def __init__(self, application: StoreApplication, settings: MasterSettings, metrics: StoreMetrics, supervisor: Supervisor) -> None:
        self._application = application
        self._settings = settings
        self._supervisor = supervisor
        self._options = ServerOptions(limits=ServerLimits.of(settings), on_answer=metrics.count_answer)
        self._plain: list[PlainListener] = []
        self._tls: HttpServer | None = None

    async def start(self) -> list[str]:
        """Listen; return the places as texts. Raise ConfigError or BadData when one of them cannot be had."""
        settings = self._settings
        places = []
        await asyncio.to_thread(make_directory, settings.store_socket.parent, mode=0o755)
        places.append(await self._listen_plainly(settings.store_socket, _SOCKET_HINT))
        if settings.store_plain_port:
            place = (settings.store_plain_bindaddress, settings.store_plain_port)
            places.append(await self._listen_plainly(place, _PLAIN_HINT))
        if settings.store_port:
            from .tls import tls_server

            self._tls = await asyncio.to_thread(tls_server, self._application, settings, self._options, self._supervisor)
            host, port = await self._tls.start(settings.store_bindaddress, settings.store_port)
            places.append(f"{host} port {port} over TLS")
        self._application.state = "running"
        return places

    async def _listen_plainly(self, place: Path | tuple[str, int], hint: str) -> str:
        names = (self._settings.certname, *self._settings.dns_alt_names)
        listener = PlainListener(Dispatcher(self._application, None, self._options).handle, self._options.limits, self._most, names)
        shown = await listener.start(place, hint=hint)
        self._plain.append(listener)
        return shown

    @property
    def _most(self) -> int:
        """The most connections without TLS at one place: each may have a request that works or waits."""
        return 2 * self._settings.store_active_requests + self._settings.store_queued_requests

    @property
    def open_connections(self) -> int:
        return sum(len(listener.connections.connections) for listener in self._plain) + (self._tls.open_connections if self._tls else 0)

    @property
    def is_idle(self) -> bool:
        """True if no request is active."""
        return not any(listener.connections.working for listener in self._plain) and (self._tls is None or self._tls.active_requests == 0)

    async def reload(self) -> None:
        """Reload certificates and revocations; on failure raise PuppetError and keep the old ones."""
        if self._tls is not None:
            await self._tls.reload()

    async def stop(self, timeout: float) -> None:
        """Stop accepting at once, let requests in flight end within `timeout` seconds, cut the rest."""
        self._application.state = "stopping"
        async with asyncio.TaskGroup() as group:
            for listener in self._plain:
                group.create_task(listener.stop(timeout))
            if self._tls is not None:
                group.create_task(self._tls.stop(timeout))

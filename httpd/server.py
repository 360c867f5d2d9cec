"""A server as one thing to start and stop: TLS, listener, application, the watcher of the certificates."""

from __future__ import annotations

from collections.abc import Mapping

from shared.errors import ConfigError
from shared.process.supervision import Supervisor

from .application import HttpApplication
from .connections.connection import ConnectionServer
from .connections.listener import USUAL_REFUSALS, Listener
from .dispatch.dispatcher import Dispatcher
from .dispatch.identity import ClientIdentity
from .options import ServerOptions
from .tasks import WATCH_CERTIFICATES
from .tls.trust import ServerTls


class HttpServer:
    """
    Serves an application over TLS.

    Args:
        options: They name the files of certificates.
        supervisor: Runs the server's long tasks; it knows HTTP_TASKS.
    """

    def __init__(self, application: HttpApplication, options: ServerOptions, supervisor: Supervisor) -> None:
        self.application = application
        self.options = options
        self.supervisor = supervisor
        if options.trust is None:
            raise ConfigError("A server over TLS needs certificates")
        self.tls = ServerTls(options.trust, interval=options.limits.trust_poll_interval, on_expired=options.on_crl_expired, now=options.now)
        self.listener: Listener | None = None

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Load application and certificates, then listen; return address and port. Raise ConfigError when that cannot be done."""
        await self.application.start()
        await self.tls.start()
        identity = ClientIdentity(self.tls, self.options)
        connections = ConnectionServer(Dispatcher(self.application, identity.client_of, self.options).handle, self.options.limits)
        self.listener = Listener(connections, self.tls, self.options, self.supervisor)
        address = await self.listener.start(host, port)
        self.supervisor.start(WATCH_CERTIFICATES, self.tls.watch)
        self.application.state = "running"
        return address

    @property
    def open_connections(self) -> int:
        """The number of connections, those in their handshakes included."""
        return self.listener.open_count if self.listener is not None else 0

    @property
    def max_connections(self) -> int:
        """The most connections that descriptors and limits allow."""
        return self.listener.max_open if self.listener is not None else 0

    @property
    def active_requests(self) -> int:
        """The number of requests that are being answered."""
        return len(self.listener.server.working) if self.listener is not None else 0

    def refused_handshakes(self) -> Mapping[str, int]:
        """Return the number of TLS handshakes that failed, by reason; the usual reasons are always there."""
        return dict.fromkeys(USUAL_REFUSALS, 0) | (self.listener.refused if self.listener is not None else {})

    async def reload(self) -> None:
        """Read certificates, CRLs and the application's files now; raise PuppetError when some cannot be read, and keep those."""
        try:
            await self.application.reload()
        finally:
            await self.tls.reload()

    async def stop(self, timeout: float | None = None) -> None:
        """Stop accepting at once, let requests in flight end within `timeout` (default: the drain limit) seconds, cut the rest."""
        self.application.state = "stopping"
        if self.listener is not None:
            await self.listener.stop(timeout)
        await self.supervisor.stop(WATCH_CERTIFICATES)

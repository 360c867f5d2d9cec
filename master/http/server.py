"""The HTTP server as one thing to start and stop: TLS, listener, application, the watcher of the certificates."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from certs.oids import OidNames
from shared import __version__
from shared.indirector.core import Indirector
from shared.process.supervision import Supervisor

from ..authorization.auth_conf import AuthFile
from ..endpoints.app import Ca, MasterApp
from ..endpoints.handlers import EnvironmentLookup, Handlers
from ..endpoints.puppetserver import ServerEndpoints
from ..endpoints.service import ServiceEndpoints
from ..observability.health import Health, State
from ..observability.longtasks import WATCH_CERTIFICATES, master_supervisor
from ..observability.metrics import Metrics, Samples
from ..pools.parse_pool import Parsers
from .admission import Admission
from .connection import ConnectionServer
from .identity import ProxyRules
from .limits import HttpLimits
from .listener import USUAL_REFUSALS, Listener
from .tls import ServerTls, TrustFiles


def _random_delay(most: int) -> int:
    return 1 + secrets.randbelow(max(most, 1))


class HttpServer:
    """
    Serves the bindings of `indirector` and, where there is one, the CA.

    Args:
        auth_conf: the file of rules; None: only the defaults.
        compiler, on_refused: see MasterApp.
        parsers: read large bodies, and YAML, in processes of their own; None: all are read here.
        health: of what the services need; None: nothing but this server.
        on_crl_expired: signs the CRL anew; awaited when the one in force has ended.
        now: the time by which certificates are valid. delay: seconds of Retry-After, given the most.
    """

    def __init__(
        self,
        *,
        indirector: Indirector,
        environments: EnvironmentLookup,
        trust: TrustFiles,
        limits: HttpLimits,
        parsers: Parsers | None = None,
        server_endpoints: ServerEndpoints | None = None,
        ca: Ca | None = None,
        auth_conf: Path | None = None,
        filetimeout: float = 15.0,
        proxy: ProxyRules | None = None,
        oid_names: OidNames | None = None,
        compiler: str = "",
        on_crl_expired: Callable[[], Awaitable[object]] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        delay: Callable[[int], int] = _random_delay,
        metrics: Metrics | None = None,
        health: Health | None = None,
        on_refused: Callable[[dict[str, object]], None] = lambda entry: None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self.limits = limits
        self.auth = AuthFile(auth_conf, names=oid_names, filetimeout=filetimeout)
        self.tls = ServerTls(trust, interval=limits.trust_poll_interval, on_expired=on_crl_expired, now=now)
        self.admission = Admission(
            limits.max_active_requests, limits.max_queued_requests, limits.max_client_requests, limits.max_retry_delay, delay
        )
        self.state: State = "starting"
        self.metrics = metrics or Metrics()
        self.supervisor = supervisor or master_supervisor()
        self.app = MasterApp(
            handlers=Handlers(indirector, environments, limits, parsers),
            native=ServiceEndpoints(environments, lambda: self.state, __version__, self.metrics.text, health),
            server=server_endpoints,
            ca=ca,
            auth=self.auth,
            tls=self.tls,
            limits=limits,
            admission=self.admission,
            proxy=proxy,
            oid_names=oid_names,
            compiler=compiler,
            draining=lambda: self.state == "stopping",
            now=now,
            on_answer=self.metrics.answered,
            on_refused=on_refused,
        )
        self._describe()
        self.listener: Listener | None = None

    def _describe(self) -> None:
        """What the metrics read here."""

        def connections() -> Samples:
            yield (), self.listener.open if self.listener is not None else 0

        def refused() -> Samples:
            counts = self.listener.refused if self.listener is not None else {}
            for reason in sorted({*USUAL_REFUSALS, *counts}):
                yield (reason,), counts.get(reason, 0)

        def waiting() -> Samples:
            yield (), self.admission.waiting

        self.metrics.read("puppet_connections", "gauge", "Open connections.", connections)
        self.metrics.read("puppet_handshakes_refused_total", "counter", "TLS handshakes that failed.", refused, "reason")
        self.metrics.read("puppet_requests_waiting", "gauge", "Requests that wait for others to end.", waiting)

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Load rules and certificates, listen; gives address and port. ConfigError when that cannot be."""
        await self.auth.start()
        await self.tls.start()
        self.listener = Listener(ConnectionServer(self.app.handle, self.limits), self.tls, self.limits, self.supervisor)
        address = await self.listener.start(host, port)
        self.supervisor.start(WATCH_CERTIFICATES, self.tls.watch)
        self.state = "running"
        return address

    @property
    def deserted(self) -> bool:
        """Whether nobody is connected."""
        return self.listener is None or not self.listener.open

    @property
    def idle(self) -> bool:
        """Whether no request is under way."""
        return self.listener is None or not self.listener.server.working

    async def reload(self) -> None:
        """Read rules, certificates and CRLs now. PuppetError: what cannot be read stays as it was."""
        try:
            await self.auth.reload()
        finally:
            await self.tls.reload()

    async def stop(self, timeout: float | None = None) -> None:
        """Stop accepting at once, let requests in flight end within `timeout` (default: the drain limit) seconds, cut the rest."""
        self.state = "stopping"
        if self.listener is not None:
            await self.listener.stop(timeout)
        await self.supervisor.stop(WATCH_CERTIFICATES)

"""The configuration of a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from shared.clock import utc_now

from .limits import ServerLimits
from .peers import ProxyRules

if TYPE_CHECKING:  # a server without TLS does not load what reads certificates: 10 MB
    from certs.oids import OidNames

    from .tls.trust import TrustFiles


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """
    The options of a server.

    Attributes:
        trust: The files of TLS certificates; None: for listeners without TLS.
        proxy: The proxies whose identity headers count.
        oid_names: The names of the extensions in clients' certificates; None: Puppet's own.
        now: Returns the time by which certificates are valid, UTC.
        on_crl_expired: Is awaited when the revocation list in force has ended; signs it anew.
        on_answer: Is called after each request with its endpoint, method, status (0: none was sent) and seconds.
        on_refused: Is called with an entry for the audit trail after each request that its sender may not make.
        listen_hint: What to try when the address cannot be listened on.
        handshake_hint: What to look for when clients give up the TLS handshake; a part of a log line.
    """

    trust: TrustFiles | None = None
    limits: ServerLimits = field(default_factory=ServerLimits)
    proxy: ProxyRules = field(default_factory=ProxyRules)
    oid_names: OidNames | None = None
    now: Callable[[], datetime] = utc_now
    on_crl_expired: Callable[[], Awaitable[object]] | None = None
    on_answer: Callable[[str, str, int, float], None] = lambda endpoint, method, status, seconds: None
    on_refused: Callable[[dict[str, object]], None] = lambda entry: None
    listen_hint: str = "Another program may use the port already."
    handshake_hint: str = ""

"""
A handshake that fails tells the peer why, as TLS has it: revoked, expired, unknown CA.

OpenSSL writes an alert when it refuses a certificate, and both asyncio and uvloop close the connection without sending it, so
that an agent's log would show an end of file and no reason.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from contextvars import ContextVar

accepted: ContextVar[socket.socket | None] = ContextVar("accepted", default=None)
"""The socket whose handshake the current task is about to begin; non-blocking."""


class _TellingObject(ssl.SSLObject):
    outgoing: ssl.MemoryBIO
    peer: socket.socket | None

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            if self.peer is not None:
                with contextlib.suppress(OSError):  # who has gone, or reads nothing, is not told
                    self.peer.send(self.outgoing.read())
            raise


class TellingContext(ssl.SSLContext):
    """An SSLContext whose failed handshakes send their alert to the socket in `accepted`."""

    sslobject_class = _TellingObject

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(made, _TellingObject)
        made.outgoing, made.peer = outgoing, accepted.get()
        return made

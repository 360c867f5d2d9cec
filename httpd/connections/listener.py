"""The listening socket: accepts, performs handshakes, bounds the number of connections, stops gracefully."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
import socket
import ssl
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509

from certs import certificates
from shared.errors import ConfigError
from shared.names import quoted_for_log
from shared.process.supervision import Supervisor
from shared.process.threads import PacedThreads

from ..options import ServerOptions
from ..tasks import ACCEPT, COUNT_TURNS, HANDSHAKE
from ..tls.handshakes import Handshake, session_for_transport
from .connection import ConnectionServer

if TYPE_CHECKING:  # plain.py listens by the functions of this file, and does without TLS
    from ..tls.trust import ServerTls

log = logging.getLogger("puppet.tls")

# A thousand agents may start at the same moment; the kernel caps it by net.core.somaxconn.
BACKLOG = 1024
_SPARE_DESCRIPTORS = 128  # for files, workers and the loop itself
# More at once would starve the connections that are open already.
_ACCEPTS_PER_TURN = 8  # connections accepted in one iteration of the loop
_TURN_SECONDS = 0.1  # seconds of a turn, at least; see Listener._turn
_SILENT_TURNS = 2  # turns after which a peer that has not begun is dropped, when no handshake succeeds
_HESITANT_TURNS = 10  # the same when others succeed: it may be one of many that connect at once, with a slow line
_SLOW_TURNS = 30  # turns after which a peer that has begun is dropped
GAVE_WAY, TOO_SLOW = "gave way to newer connections", "handshake not finished in time"
LOST, ONLY_CONNECTED, NOT_TLS = "connection lost", "only connected", "not TLS"
USUAL_REFUSALS = ("certificate has expired", "certificate revoked", GAVE_WAY, TOO_SLOW, LOST, ONLY_CONNECTED, NOT_TLS)  # others: OpenSSL's
_PEER_GAVE_UP = "%s gave up the TLS handshake after our answer: %s. See its own log%s"
_ONLY_CONNECTED = "%s connected and left without a word of TLS, as port scans and simple health checks do"
_PEER_BROKE_OFF = "%s broke off its TLS handshake before our answer"
_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a name or address; `*` and `::` are all addresses of both families. OSError when it cannot."""
    name = "::" if host == "*" else host
    family, kind, protocol, _, address = socket.getaddrinfo(name or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if name == "::":
            # One socket for both families, whatever the system's default is.
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.setblocking(False)
        listening.bind(address)
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


@dataclass(slots=True)
class _Report:
    """The time at which a text may be logged again (in time.monotonic), and the number of lines left out until then."""

    not_before: float = 0.0
    left_out: int = 0


class Listener:
    """
    Accepts connections on one socket and hands them to `server` after the TLS handshake.

    Each handshake uses the TLS context of its moment, so that new certificates and CRLs count at once; a few threads compute them.
    `refused` counts failed handshakes by reason.
    """

    def __init__(self, server: ConnectionServer, tls: ServerTls, options: ServerOptions, supervisor: Supervisor) -> None:
        self.server = server
        self.supervisor = supervisor
        self.tls = tls
        self.options = options
        self.limits = limits = options.limits
        self.refused: Counter[str] = Counter()
        server.on_lost = self._on_connection_lost
        self.draining = False
        self._socket: socket.socket | None = None
        self._handshakes: dict[asyncio.Task[None], Handshake] = {}  # the oldest first
        self._turn = 0  # a clock that counts loop iterations and stands still while the loop is busy: our slowness is not the peers'
        self._accepted = 0  # connections; each _ACCEPTS_PER_TURN-th waits for an iteration of the loop
        self._last_success = 0  # the turn in which a handshake succeeded
        self._room_event = asyncio.Event()
        self._handshaking = asyncio.Event()
        threads = limits.handshake_threads or max(1, len(os.sched_getaffinity(0)) // 2)
        self._threads = PacedThreads(asyncio.get_running_loop(), threads, "handshake")
        self._reports: dict[str, _Report] = {}  # by text, of which there are a few

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; return the address and port, which is a free one when `port` is 0. Raise ConfigError when that cannot be done."""
        try:
            listening = await asyncio.get_running_loop().run_in_executor(None, listening_socket, host, port)
        except OSError as err:
            raise ConfigError(
                f"Could not listen on {host} port {port}: {err.strerror or err}",
                hint=self.options.listen_hint,
            ) from err
        self._socket = listening
        self.supervisor.start(ACCEPT, lambda: self._accept(listening))
        self.supervisor.start(COUNT_TURNS, self._count_turns)
        address = listening.getsockname()
        return str(address[0]), int(address[1])

    @property
    def max_open(self) -> int:
        """The most connections that descriptors and limits allow."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        # Asked each time, because an administrator can raise the limit of a running process (prlimit).
        return max(16, min(self.limits.max_connections, soft - _SPARE_DESCRIPTORS))

    @property
    def open_count(self) -> int:
        """The number of connections, those in their handshakes included."""
        return len(self.server.connections) + len(self._handshakes)

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            if self.open_count >= self.max_open:
                self._make_room()
                await self._wait_for_room(0.5)
                continue
            if len(self._handshakes) >= self.limits.max_handshakes and not self._drop_slowest_handshake():
                await self._wait_for_room(_TURN_SECONDS)  # new connections wait in the kernel's queue
                continue
            try:
                peer, address = await self._accept_next(listening)
            except OSError as err:
                if err.errno in _OUT_OF_DESCRIPTORS:
                    self._log_seldom("No descriptor is left for a new connection: %s", err.strerror)
                    self._make_room()
                elif err.errno not in (errno.ECONNABORTED, errno.EINTR, errno.EAGAIN):
                    self._log_seldom("Could not accept a connection: %s", err)
                # The error may persist; without a pause this loop would take all of the processor.
                await asyncio.sleep(0.1)
                continue
            handshake = Handshake(peer, self.limits.handshake_timeout, lambda: self._turn)
            task = self.supervisor.spawn(HANDSHAKE, self._shake_hands(handshake, str(address[0])))
            self._handshakes[task] = handshake
            self._handshaking.set()
            task.add_done_callback(self._handshake_ended)

    async def _accept_next(self, listening: socket.socket) -> tuple[socket.socket, tuple[str, int]]:
        """Return the next connection; several that wait already are taken in one iteration of the loop, which is long under load."""
        self._accepted += 1
        if self._accepted % _ACCEPTS_PER_TURN:
            try:
                return listening.accept()
            except BlockingIOError:
                pass
        return await asyncio.get_running_loop().sock_accept(listening)

    async def _count_turns(self) -> None:
        """Count turns until cancelled; without handshakes the clock stands still, so that an idle process may sleep."""
        while True:
            if not self._handshakes:
                self._handshaking.clear()
                await self._handshaking.wait()
            await asyncio.sleep(_TURN_SECONDS)
            self._turn += 1

    async def _wait_for_room(self, seconds: float) -> None:
        """Wait until a connection or handshake has ended, `seconds` at most."""
        self._room_event.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._room_event.wait(), seconds)

    def _drop_slowest_handshake(self) -> bool:
        """Cancel the oldest handshake of a silent peer or of one that takes too long; return whether there was any."""
        # Under attack nobody succeeds; in a rush of real agents somebody always does.
        patience = _HESITANT_TURNS if self._turn - self._last_success <= 1 else _SILENT_TURNS
        waiting = [(task, handshake) for task, handshake in self._handshakes.items() if handshake.turns_waited > patience]
        slowest = next((task for task, handshake in waiting if handshake.turns_waited > _SLOW_TURNS or handshake.is_silent), None)
        if slowest is None:
            return False
        del self._handshakes[slowest]
        return slowest.cancel()

    def _on_connection_lost(self) -> None:
        self._room_event.set()

    def _handshake_ended(self, task: asyncio.Task[None]) -> None:
        self._handshakes.pop(task, None)
        self._room_event.set()

    async def _shake_hands(self, handshake: Handshake, address: str) -> None:
        peer = handshake.peer
        try:
            peer.setblocking(False)
            session_for_transport.set(await handshake.perform(lambda: self.tls.context, self._threads))
            await asyncio.get_running_loop().connect_accepted_socket(
                self.server, peer, ssl=self.tls.context, ssl_shutdown_timeout=self.limits.close_timeout
            )
            self._last_success = self._turn
            return
        except asyncio.CancelledError:
            if not self.draining:
                self._report_refusal(address, GAVE_WAY)
        except ssl.SSLError as err:
            reason = getattr(err, "verify_message", "") or (err.reason or "").replace("_", " ").lower() or NOT_TLS
            if " alert " in reason:  # it is the peer that refuses
                self.refused[reason] += 1
                self._log_seldom(_PEER_GAVE_UP, address, reason, self.options.handshake_hint)
            else:
                self._report_refusal(address, reason, handshake.refused_certificate)
        except TimeoutError:
            self._report_refusal(address, TOO_SLOW)
        except OSError:
            self._report_lost_handshake(address, handshake)
        except BaseException:
            peer.close()
            raise
        peer.close()

    def _report_refusal(self, address: str, reason: str, certificate: x509.Certificate | None = None) -> None:
        self.refused[reason] += 1
        if certificate is None:
            self._log_seldom("Refused a TLS handshake of %s: %s", address, reason)
            return
        name, serial = quoted_for_log(certificates.name_of(certificate)), certificate.serial_number
        self._log_seldom("Refused a TLS handshake of %s: %s (its certificate is of %s, serial 0x%04X)", address, reason, name, serial)

    def _report_lost_handshake(self, address: str, handshake: Handshake) -> None:
        """Count and log a handshake that the peer left: an agent that does not trust us needs help, a port scan does not."""
        self.refused[LOST if handshake.has_received else ONLY_CONNECTED] += 1
        if handshake.has_answered:
            self._log_seldom(_PEER_GAVE_UP, address, LOST, self.options.handshake_hint)
        else:
            self._log_seldom(_PEER_BROKE_OFF if handshake.has_received else _ONLY_CONNECTED, address, level=logging.INFO)

    def _log_seldom(self, text: str, *arguments: object, level: int = logging.WARNING) -> None:
        """Log at most one line a second for each text, with the number of those left out."""
        now = time.monotonic()
        report = self._reports.setdefault(text, _Report())
        if now < report.not_before:
            report.left_out += 1
            return
        # One line a second for each kind: a scan must not fill the disk.
        report.not_before = now + 1.0
        if report.left_out:
            text += " (and %d like it)"
            arguments = (*arguments, report.left_out)
            report.left_out = 0
        log.log(level, text, *arguments)

    def _make_room(self) -> None:
        """
        Close the least important connection: a slow handshake, an idle stranger, an idle agent, any handshake, in this order.

        Nothing is closed while all are at work; new connections then wait.
        """
        if self._drop_slowest_handshake():
            return
        idle = [connection for connection in self.server.open_connections if not connection.busy and connection.transport is not None]
        if idle:
            # Strangers before agents, then the one that has been idle longest.
            min(idle, key=lambda connection: (bool(connection.peer and connection.peer.authenticated), connection.idle_since)).abort()
        elif self._handshakes:
            next(iter(self._handshakes)).cancel()

    async def stop(self, timeout: float | None = None) -> None:
        """Stop accepting at once; requests in flight get `timeout` seconds (default: the drain limit), then they are cut."""
        self.draining = True
        await self.supervisor.stop(ACCEPT, COUNT_TURNS)
        if self._socket is not None:
            self._socket.close()
        # Without waiting: a handshake that is being computed ends within milliseconds by itself.
        self._threads.shutdown(wait=False, cancel_futures=True)
        for task in list(self._handshakes):
            task.cancel()
        if self._handshakes:
            await asyncio.wait(list(self._handshakes))
        await self.server.drain(self.limits.drain_timeout if timeout is None else timeout)

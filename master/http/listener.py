"""The listening socket: accepts, shakes hands, keeps the number of connections in bounds, stops gracefully."""

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
from dataclasses import dataclass

from shared.errors import ConfigError
from shared.process.supervision import Supervisor
from shared.process.threads import PacedThreads

from .connection import ConnectionServer
from .handshakes import Handshake, handed_over
from .options import ServerOptions
from .tasks import ACCEPT, COUNT_TURNS, HANDSHAKE
from .tls import ServerTls

log = logging.getLogger("puppet.tls")

BACKLOG = 1024
_SPARE_DESCRIPTORS = 128  # for files, workers and the loop itself
_AT_ONCE = 8  # connections accepted in one turn of the loop
_TURN = 0.1  # seconds, at least, of one turn of the loop's clock
_SILENT_TURNS = 2  # turns after which a peer that has not begun gives way, when no handshake gets on
_HESITANT_TURNS = 10  # turns after which it does when others get on: it may be one of a herd, with a slow line
_SLOW_TURNS = 30  # turns after which a peer that has begun gives way
GAVE_WAY, TOO_SLOW = "gave way to newer connections", "handshake not finished in time"
LOST, ONLY_CONNECTED, NOT_TLS = "connection lost", "only connected", "not TLS"
USUAL_REFUSALS = ("certificate has expired", "certificate revoked", GAVE_WAY, TOO_SLOW, LOST, ONLY_CONNECTED, NOT_TLS)  # others: OpenSSL's
_GIVEN_UP = "%s gave up the TLS handshake after our answer: %s. Its own log says why%s"
_ONLY_CONNECTED = "%s connected and left without a word of TLS, as port scans and simple health checks do"
_BROKEN_OFF = "%s broke off its TLS handshake before our answer"
_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens on a name or address; `*` and `::` are all addresses of both families."""
    wanted = "::" if host == "*" else host
    family, kind, protocol, _, address = socket.getaddrinfo(wanted or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if wanted == "::":
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.setblocking(False)
        listening.bind(address)
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


@dataclass(slots=True)
class _Complaint:
    """When a text may be logged again (in time.monotonic), and how many have been left out until then."""

    not_before: float = 0.0
    left_out: int = 0


class Listener:
    """
    Serves `server` over TLS on one socket. Each handshake uses the TLS context of its moment, so that new certificates and
    CRLs count at once; a few threads compute them. `refused` counts failed handshakes by reason.
    """

    def __init__(self, server: ConnectionServer, tls: ServerTls, options: ServerOptions, supervisor: Supervisor) -> None:
        self.server = server
        self.supervisor = supervisor
        self.tls = tls
        self.options = options
        self.limits = limits = options.limits
        self.refused: Counter[str] = Counter()
        server.on_lost = self._room_made
        self.draining = False
        self._socket: socket.socket | None = None
        self._handshakes: dict[asyncio.Task[None], Handshake] = {}  # the oldest first
        self._turn = 0  # a clock that stands still while the loop is busy: our slowness is not the peers'
        self._at_once = 0  # connections accepted, of which all but every _AT_ONCE-th without a turn of the loop
        self._done_last = 0  # the turn in which a handshake ended well
        self._room = asyncio.Event()
        self._handshaking = asyncio.Event()
        threads = limits.handshake_threads or max(1, len(os.sched_getaffinity(0)) // 2)
        self._threads = PacedThreads(asyncio.get_running_loop(), threads, "handshake")
        self._complaints: dict[str, _Complaint] = {}  # by text, of which there are a few

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; gives the address and port (of interest when `port` is 0). ConfigError when that cannot be."""
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
    def most(self) -> int:
        """The number of connections that descriptors and settings allow."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return max(16, min(self.limits.max_connections, soft - _SPARE_DESCRIPTORS))

    @property
    def open(self) -> int:
        return len(self.server.connections) + len(self._handshakes)

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            if self.open >= self.most:
                self._make_room()
                await self._wait_for_room(0.5)
                continue
            if len(self._handshakes) >= self.limits.max_handshakes and not self._drop_slowest_handshake():
                await self._wait_for_room(_TURN)  # who comes waits in the kernel's queue
                continue
            try:
                peer, address = await self._next(listening)
            except OSError as err:
                if err.errno in _OUT_OF_DESCRIPTORS:
                    self._complain("No descriptor is left for a new connection: %s", err.strerror)
                    self._make_room()
                elif err.errno not in (errno.ECONNABORTED, errno.EINTR, errno.EAGAIN):
                    self._complain("Could not accept a connection: %s", err)
                await asyncio.sleep(0.1)
                continue
            handshake = Handshake(peer, self.limits.handshake_timeout, lambda: self._turn)
            task = self.supervisor.spawn(HANDSHAKE, self._shake_hands(handshake, str(address[0])))
            self._handshakes[task] = handshake
            self._handshaking.set()
            task.add_done_callback(self._handshake_ended)

    async def _next(self, listening: socket.socket) -> tuple[socket.socket, tuple[str, int]]:
        """The next that comes; those that wait already are taken several a turn, since turns are long when there is much to do."""
        self._at_once += 1
        if self._at_once % _AT_ONCE:
            try:
                return listening.accept()
            except BlockingIOError:
                pass
        return await asyncio.get_running_loop().sock_accept(listening)

    async def _count_turns(self) -> None:
        """Run until cancelled. The clock stands still without handshakes, as nobody reads it then and an idle process may sleep."""
        while True:
            if not self._handshakes:
                self._handshaking.clear()
                await self._handshaking.wait()
            await asyncio.sleep(_TURN)
            self._turn += 1

    async def _wait_for_room(self, seconds: float) -> None:
        """Until a connection or handshake has ended, `seconds` at most."""
        self._room.clear()
        try:
            await asyncio.wait_for(self._room.wait(), seconds)
        except TimeoutError:
            pass

    def _drop_slowest_handshake(self) -> bool:
        """End the oldest handshake of a silent peer, or else one that drags on; whether there was any."""
        silent = _HESITANT_TURNS if self._turn - self._done_last <= 1 else _SILENT_TURNS
        old = [(task, each) for task, each in self._handshakes.items() if each.waited > silent]
        found = next((task for task, each in old if each.waited > _SLOW_TURNS or each.silent), None)
        if found is None:
            return False
        del self._handshakes[found]
        return found.cancel()

    def _room_made(self) -> None:
        self._room.set()

    def _handshake_ended(self, task: asyncio.Task[None]) -> None:
        self._handshakes.pop(task, None)
        self._room.set()

    async def _shake_hands(self, handshake: Handshake, address: str) -> None:
        peer = handshake.peer
        try:
            peer.setblocking(False)
            handed_over.set(await handshake.done(lambda: self.tls.context, self._threads))
            await asyncio.get_running_loop().connect_accepted_socket(
                self.server, peer, ssl=self.tls.context, ssl_shutdown_timeout=self.limits.close_timeout
            )
            self._done_last = self._turn
            return
        except asyncio.CancelledError:
            if not self.draining:
                self._report_refusal(address, GAVE_WAY)
        except ssl.SSLError as err:
            reason = getattr(err, "verify_message", "") or (err.reason or "").replace("_", " ").lower() or NOT_TLS
            if " alert " in reason:  # it is the peer that refuses
                self.refused[reason] += 1
                self._complain(_GIVEN_UP, address, reason, self.options.handshake_hint)
            else:
                self._report_refusal(address, reason)
        except TimeoutError:
            self._report_refusal(address, TOO_SLOW)
        except OSError:
            self._report_lost_handshake(address, handshake)
        except BaseException:
            peer.close()
            raise
        peer.close()

    def _report_refusal(self, address: str, reason: str) -> None:
        self.refused[reason] += 1
        self._complain("Refused a TLS handshake of %s: %s", address, reason)

    def _report_lost_handshake(self, address: str, handshake: Handshake) -> None:
        """Count and report a handshake that the peer left: an agent that mistrusts us needs help, a port scan none."""
        self.refused[LOST if handshake.has_heard else ONLY_CONNECTED] += 1
        if handshake.has_answered:
            self._complain(_GIVEN_UP, address, LOST, self.options.handshake_hint)
        else:
            self._complain(_BROKEN_OFF if handshake.has_heard else _ONLY_CONNECTED, address, level=logging.INFO)

    def _complain(self, text: str, *arguments: object, level: int = logging.WARNING) -> None:
        """Log one line a second and text at most, with the number of those left out."""
        now = time.monotonic()
        complaint = self._complaints.setdefault(text, _Complaint())
        if now < complaint.not_before:
            complaint.left_out += 1
            return
        complaint.not_before = now + 1.0
        if complaint.left_out:
            text += " (and %d like it)"
            arguments = (*arguments, complaint.left_out)
            complaint.left_out = 0
        log.log(level, text, *arguments)

    def _make_room(self) -> None:
        """
        Close the connection that will be missed least: a handshake that drags on, an idle stranger, an idle agent, any handshake.

        Nothing is closed while all are at work: then who comes has to wait.
        """
        if self._drop_slowest_handshake():
            return
        idle = [each for each in self.server.all if not each.busy and each.transport is not None]
        if idle:
            min(idle, key=lambda each: (bool(each.peer and each.peer.authenticated), each.idle_since)).abort()
        elif self._handshakes:
            next(iter(self._handshakes)).cancel()

    async def stop(self, timeout: float | None = None) -> None:
        """Stop accepting at once; requests in flight get `timeout` seconds (default: the drain limit), then they are cut."""
        self.draining = True
        await self.supervisor.stop(ACCEPT, COUNT_TURNS)
        if self._socket is not None:
            self._socket.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        for task in list(self._handshakes):
            task.cancel()
        if self._handshakes:
            await asyncio.wait(list(self._handshakes))
        self.server.close_idle()
        end = time.monotonic() + (self.limits.drain_timeout if timeout is None else timeout)
        while time.monotonic() < end:
            if not self.server.working and not any(each.busy for each in self.server.all):
                break
            await asyncio.sleep(0.02)
        cut = set(self.server.working)
        if cut:
            log.warning("Cut %d requests that did not end within the drain limit", len(cut))
        for each in self.server.all:
            each.abort()
        for request in cut:
            request.cancel()
        if cut:
            await asyncio.wait(cut, timeout=1.0)
        await self.server.shutdown(1.0)

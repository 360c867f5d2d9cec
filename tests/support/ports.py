"""Ports of 127.0.0.1: for servers that have to be told theirs, and for servers that are not there."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

LOWEST = 10000
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


@contextmanager
def reserved_port() -> Iterator[int]:
    """
    Reserve a port for a server that somebody starts: nobody else who asks here, in this process or another, gets it until the end.

    It lies below those that the kernel gives to outgoing connections and to servers without a port. A Unix socket without a file stands for
    the reservation, which ends with the process at the latest.
    """
    first_ephemeral = int(EPHEMERAL.read_text().split()[0])
    ports = list(range(LOWEST, first_ephemeral))
    random.shuffle(ports)
    for port in ports:
        with ExitStack() as stack:
            reservation = stack.enter_context(socket.socket(socket.AF_UNIX))
            try:
                reservation.bind(f"\0bunraku-port-{port}")
                with socket.create_server(("127.0.0.1", port)):
                    pass
            except OSError:
                continue
            yield port
            return
    raise RuntimeError(f"all ports from {LOWEST} to {first_ephemeral} are taken")


@contextmanager
def silent_port() -> Iterator[int]:
    """Hold a port where nobody listens, and nobody can until the end: connections to it are refused."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])

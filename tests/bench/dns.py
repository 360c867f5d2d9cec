"""A name server for sites that ask the DNS while they are compiled: each name has an address that follows from it."""

from __future__ import annotations

import socket
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

_HEADER = struct.Struct(">HHHHHH")
_ANSWER = struct.Struct(">HHHIH")
_LIFE = 300  # seconds


@contextmanager
def name_server() -> Iterator[int]:
    """Answer questions on 127.0.0.1 inside the context, whose value is the port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=_serve, args=(server,), daemon=True)
        thread.start()
        port: int = server.getsockname()[1]
        try:
            yield port
        finally:
            server.sendto(b"", ("127.0.0.1", port))
            thread.join()


def _serve(server: socket.socket) -> None:
    while True:
        question, client = server.recvfrom(512)
        if not question:
            return
        server.sendto(_answer(question), client)


def _answer(question: bytes) -> bytes:
    asked = question[_HEADER.size :]
    address = struct.pack(">I", 10 << 24 | zlib.crc32(asked) & 0xFFFFFF)
    header = _HEADER.pack(_HEADER.unpack_from(question)[0], 0x8180, 1, 1, 0, 0)
    return header + asked + _ANSWER.pack(0xC00C, 1, 1, _LIFE, len(address)) + address

"""Log lines for systemd's journal, with their fields. Source: systemd.journal-fields(7), the journal's native protocol."""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

SOCKET = Path("/run/systemd/journal/socket")
MAX_FIELD = 32 * 1024  # octets; a datagram has to take all of them


class JournalHandler(logging.Handler):
    """
    Sends each record as one datagram.

    Args:
        fields: gives a record's fields by their names in the journal, MESSAGE and PRIORITY among them.
    """

    def __init__(self, ident: str, fields: Callable[[logging.LogRecord], Mapping[str, str]], path: Path = SOCKET) -> None:
        super().__init__()
        self.ident = ident
        self.fields = fields
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.settimeout(1.0)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._socket.sendto(journal_datagram({"SYSLOG_IDENTIFIER": self.ident, **self.fields(record)}), str(self.path))
        except OSError:
            self.handleError(record)

    def close(self) -> None:
        self._socket.close()
        super().close()


def journal_datagram(fields: Mapping[str, str]) -> bytes:
    """Return a datagram: `NAME=value` lines; a value of several lines has its length before it."""
    datagram = b""
    for name, value in fields.items():
        data = value.encode("utf-8", "backslashreplace")[:MAX_FIELD]
        datagram += name.encode() + (b"\n" + struct.pack("<Q", len(data)) + data if b"\n" in data else b"=" + data) + b"\n"
    return datagram

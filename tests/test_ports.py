"""Ports that tests reserve are given once, and where nobody listens nobody can."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.support import ports
from tests.support.ports import reserved_port, silent_port


def test_a_reserved_port_is_given_to_nobody_else_until_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with reserved_port() as port:
        monkeypatch.setattr(ports, "LOWEST", port)
        monkeypatch.setattr(ports, "EPHEMERAL", tmp_path / "range")
        (tmp_path / "range").write_text(f"{port + 1} 60999")
        with pytest.raises(RuntimeError, match="are taken"), reserved_port():
            pass
        with socket.create_server(("127.0.0.1", port)):
            pass
    with reserved_port() as again:
        assert again == port


def test_nobody_listens_on_a_silent_port_and_nobody_can() -> None:
    with silent_port() as port:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        with pytest.raises(OSError, match="in use"):
            socket.create_server(("127.0.0.1", port))

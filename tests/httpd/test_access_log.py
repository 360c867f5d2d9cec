"""One line a request, whatever the request."""

from __future__ import annotations

import logging

import pytest

from httpd.dispatch.access_log import format_line, log_request


def written(target: str, method: str = "GET", name: str = "web1") -> str:
    return format_line(address="10.1.2.3", name=name, method=method, target=target, status=200, size=12, seconds=0.0123)


def test_a_line_names_peer_request_and_result() -> None:
    assert written("/production/node/web1?x=secret") == '10.1.2.3 web1 "GET /production/node/web1" 200 12 0.012'
    assert written("/", name="") == '10.1.2.3 - "GET /" 200 12 0.012'


@pytest.mark.parametrize("target", ['/a" 200 0\n10.0.0.1', "/\x1b[31m", "/\udcff", "/ü€", "/\\", "/a b"])
def test_a_line_stays_one_line_of_printable_ascii(target: str) -> None:
    found = written(target)
    assert found.isascii()
    assert found.isprintable()
    assert found.count('"') == 2


def test_a_line_is_cut() -> None:
    assert len(written("/" + "x" * 10_000)) < 300


@pytest.mark.parametrize(("address", "level"), [("10.1.2.3", logging.INFO), ("", logging.DEBUG)])
def test_requests_through_a_unix_socket_are_logged_for_debugging_only(address: str, level: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    log_request(address=address, name="", method="POST", target="/pdb/cmd/v1/batch", status=200, size=2, seconds=0.1)
    assert [record.levelno for record in caplog.records] == [level]

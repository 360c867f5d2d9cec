"""Prometheus, unmodified, scrapes a store, and has its numbers right."""

from __future__ import annotations

import json
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.interop.clients import DATASET, server, store_on_port
from tests.support.ports import reserved_port

PROGRAM = "/usr/bin/prometheus"
SCRAPED = 60.0  # seconds until Prometheus has a number

pytestmark = [
    pytest.mark.works_with("The built-in store", "Prometheus 2.42"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which(PROGRAM) is None, reason="Prometheus is not installed (Debian: prometheus)"),
]

CONFIGURATION = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs: [{{job_name: store, static_configs: [{{targets: ["127.0.0.1:{port}"]}}]}}]
"""


def value(base: str, expression: str) -> float | None:
    """What Prometheus has for an expression of one series; None while it has nothing."""
    url = f"{base}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        result: list[dict[str, Any]] = json.loads(answer.read())["data"]["result"]
    assert len(result) <= 1, result
    return float(result[0]["value"][1]) if result else None


def refuse_a_command(port: int) -> None:
    """Submit a command that cannot be stored, and wait until the store has put it away."""
    query = "command=replace_facts&version=5&certname=bad.example.com&secondsToWaitForCompletion=30"
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/pdb/cmd/v1?{query}", b'{"values": 1}', headers)
    with pytest.raises(urllib.error.HTTPError, match="503"):
        urllib.request.urlopen(request, timeout=60).close()


@pytest.mark.smoke
def test_it_has_the_numbers_of_the_commands_and_requests_of_a_store(tmp_path: Path) -> None:
    with reserved_port() as web, store_on_port(tmp_path / "store") as port:
        base = f"http://127.0.0.1:{web}"
        refuse_a_command(port)
        (tmp_path / "prometheus.yml").write_text(CONFIGURATION.format(port=port))
        words = {
            "config.file": tmp_path / "prometheus.yml",
            "storage.tsdb.path": tmp_path / "data",
            "web.listen-address": f"127.0.0.1:{web}",
        }
        command = [PROGRAM, *(f"--{name}={word}" for name, word in words.items())]
        expected = {
            "puppet_store_commands_waiting": 0.0,
            'puppet_store_commands_total{result="processed"}': float(len(DATASET)),
            'puppet_store_commands_total{result="discarded"}': 1.0,
            'sum(puppet_store_request_seconds_count{endpoint=~".*cmd.*"})': len(DATASET) + 1.0,
            "up": 1.0,
        }
        with server(command, f"{base}/-/ready", tmp_path / "log.txt"):
            deadline = time.monotonic() + SCRAPED
            while (found := {expression: value(base, expression) for expression in expected}) != expected:
                assert time.monotonic() < deadline, found
                time.sleep(0.2)
            seconds = value(base, "sum(puppet_store_request_seconds_sum)")
            assert seconds is not None and seconds > 0

"""`make demo` as a newcomer without Git sees it: what it tells, and that nothing of it stays."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the demo makes its folder."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def told(temporary: Path) -> str:
    environ = {**os.environ, "TMPDIR": str(temporary), "PATH": "/nonexistent"}
    command = [sys.executable, str(ROOT / "demo" / "run.py")]
    demo = subprocess.Popen(command, env=environ, cwd=temporary, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = demo.communicate(timeout=180)
    finally:
        if demo.poll() is None:  # with all that it started
            os.killpg(demo.pid, signal.SIGKILL)
            demo.communicate()
    assert (demo.returncode, err.decode()) == (0, "")
    return out.decode()


def asked(told: str, run: str) -> list[str]:
    """What the DNS provider was asked for in the first or second run."""
    lines = iter(told.split(f"== The agent's {run} run")[1].split("\n\n")[0].splitlines())
    for line in lines:
        if "the DNS provider was asked for" in line:
            return [each.strip() for each in lines]
    raise AssertionError(f"the {run} run tells nothing of the provider")


def test_the_first_run_fetches_the_modules_extensions_and_makes_zone_and_records(told: str) -> None:
    for kind in ("facter/dns_resolvers", "puppet/functions/dns/absolute", "puppet/provider/dnszone/rest", "puppet/type/dnszone"):
        assert f"/lib/{kind}.py]/ensure: defined content" in told
    assert asked(told, "first") == [
        "GET /zones",
        "PUT /zones/example.com",
        "GET /zones/example.com/records",
        "PUT /zones/example.com/records/www.example.com/A",
        "PUT /zones/example.com/records/mail.example.com/MX",
    ]


def test_the_credentials_come_before_what_needs_them_and_their_content_is_not_shown(told: str) -> None:
    assert told.index("/machine/dns.json]/ensure") < told.index("Dnszone[example.com]/ensure: created")
    assert "secret" not in told


def test_the_second_run_reads_the_zone_and_changes_nothing(told: str) -> None:
    assert asked(told, "second") == ["GET /zones", "GET /zones/example.com/records"]
    match = re.search(r"^ +changed +(\d+) +(\d+)$", told, re.MULTILINE)
    assert match is not None
    assert int(match[1]) > 5
    assert match[2] == "0"
    assert "Error" not in told
    assert re.search(r"www\.example\.com +A +192\.0\.2\.1, 192\.0\.2\.2", told)


def test_what_it_started_has_ended(told: str, temporary: Path) -> None:
    ports = [int(match) for match in re.findall(r"127\.0\.0\.1(?::| port )(\d+)", told)]
    assert len(ports) == 2
    for port in ports:
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 5):
            pass
    assert list(temporary.iterdir()) == []


def test_what_is_missing_is_said_before_anything_else(told: str) -> None:
    assert told.startswith("Git is missing (Debian: apt install git): the preview of a change, which comes last, is left out.\n\n== ")


def test_the_headings_tell_of_the_pair(told: str) -> None:
    headings = [line for line in told.splitlines() if line.startswith("== ")]
    expected = ("master", "certificate and a catalog", "second run", "store", "two runs")
    assert len(headings) == len(expected) and all(word in heading for word, heading in zip(expected, headings, strict=True)), headings


def test_the_store_of_the_master_says_which_nodes_run_debian(told: str) -> None:
    answer = told.split("$ puppet query")[1].split("\n\n")[0]
    rows = 1 if Path("/etc/debian_version").exists() else 0
    assert answer.count("agent.example.com") == rows and f"{rows} row" in answer

"""A started master whose log nobody reads: it answers, counts what it drops, tells it, and stops in time."""

from __future__ import annotations

import fcntl
import http.client
import os
import re
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.ports import reserved_port
from tests.support.processes import MasterProcess, clean_environment
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

QUEUE = 50
REQUESTS = 300


@dataclass
class Stalled:
    """A master that logs into a small pipe, which a thread reads only while `reads` is set."""

    site: MasterProcess
    metrics_port: int
    process: subprocess.Popen[bytes]
    pipe: int
    text: bytearray = field(default_factory=bytearray)
    reads: threading.Event = field(default_factory=threading.Event)

    def read_on(self) -> None:
        while self.reads.wait(60) and (data := os.read(self.pipe, 65536)):
            self.text += data

    def until(self, pattern: str) -> re.Match[str]:
        wait_until(lambda: re.search(pattern, self.text.decode()), describe=self.text.decode)
        match = re.search(pattern, self.text.decode())
        assert match is not None
        return match

    def metric(self, name: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=30)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        match = re.search(rf'^{name}{{destination="console"}} (\d+)$', text, re.M)
        assert match is not None, text
        return int(match[1])


@pytest.fixture
def metrics_port() -> Iterator[int]:
    with reserved_port() as port:
        yield port


@pytest.fixture
def stalled(tmp_path: Path, metrics_port: int) -> Iterator[Stalled]:
    site = MasterProcess(tmp_path, {"key_type": "ec", "compile_workers": "1", "metrics_port": str(metrics_port), "log_queue": str(QUEUE)})
    site.site.mkdir(parents=True)
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    command = [sys.executable, "-I", "-m", "master", "--no-daemonize", "--verbose", "--bindaddress", "127.0.0.1", "--masterport", "0"]
    process = subprocess.Popen(
        [*command, *site.options], stdin=subprocess.DEVNULL, stdout=writing, stderr=writing, env=clean_environment(), cwd="/"
    )
    os.close(writing)
    here = Stalled(site, metrics_port, process, reading)
    here.reads.set()
    reader = threading.Thread(target=here.read_on, daemon=True)
    reader.start()
    try:
        yield here
    finally:
        process.kill()
        process.wait(30)
        here.reads.set()
        reader.join(30)
        os.close(reading)


def ask(here: Stalled, port: int, requests: int, path: str = "/status/v1/simple") -> None:
    context = ssl.create_default_context(cafile=str(here.site.ca / "ca_crt.pem"))
    connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=30)
    for _ in range(requests):
        connection.request("GET", path)
        answer = connection.getresponse()
        assert (answer.status, answer.read()) in ((200, b"running"), (503, b"starting"))  # what it says is tested elsewhere
    connection.close()


def test_R_42_a_log_that_nobody_reads_holds_up_no_request(stalled: Stalled) -> None:
    port = int(stalled.until(r"Serving Puppet on \S+ port (\d+)")[1])
    assert stalled.metric("puppet_log_lines_dropped_total") == 0
    stalled.reads.clear()  # the thread may be reading; what it reads once more does not matter
    ask(stalled, port, REQUESTS)
    dropped = stalled.metric("puppet_log_lines_dropped_total")
    assert dropped > REQUESTS / 2
    stalled.reads.set()
    told = stalled.until(r"Warning: (\d+) lines of the log are missing before this one")
    assert 0 < int(told[1]) <= dropped
    ask(stalled, port, REQUESTS)

    def is_read() -> bool:
        """Whether the log tells of a request that came after all others: then there is room for what is logged last."""
        ask(stalled, port, 1, "/status/v1/simple/server")
        return b"/status/v1/simple/server" in stalled.text

    wait_until(is_read)
    stalled.process.terminate()
    assert stalled.process.wait(60) == 0
    stalled.until("Caught SIGTERM")  # nothing that was logged last is lost


def test_R_42_a_log_that_nobody_reads_holds_up_no_stop(stalled: Stalled) -> None:
    port = int(stalled.until(r"Serving Puppet on \S+ port (\d+)")[1])
    stalled.reads.clear()
    ask(stalled, port, REQUESTS)
    stalled.process.terminate()
    assert stalled.process.wait(60) == 0
    assert not (stalled.site.root / "run" / "master.pid").exists()

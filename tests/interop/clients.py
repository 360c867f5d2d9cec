"""Programs that know PuppetDB, unmodified, in the folder that `make clients` made for them; and a store for them, without TLS."""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.gate import caches
from tests.support.ports import reserved_port
from tests.support.postgresql import PostgresqlServer, postgresql_programs
from tests.support.processes import OurAgent, clean_environment, master

CLIENTS = caches.folder("clients")
ROOT = Path(__file__).parents[2]
DATASET: list[dict[str, Any]] = json.loads((ROOT / "tests/conformance/puppetdb/dataset.json").read_text("utf-8"))
START = 60.0  # seconds until a server answers
SCRIPT = 600.0  # seconds for a script


def why_no_clients() -> str:
    """Why they cannot be started here; '' when they can be tried."""
    return "" if caches.is_made("clients") else "there are no Puppetboard and pypuppetdb here; `make clients` installs them"


CHROMIUM = "/usr/bin/chromium"
NEEDS_BROWSER = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_no_clients()), reason=why_no_clients()),
    pytest.mark.skipif(shutil.which(CHROMIUM) is None, reason="Chromium is not installed (Debian: chromium)"),
]
"""The marks of tests that look at pages with a browser."""


def python_of_clients(*argv: str) -> list[str]:
    """The words that start a Python program with these packages, which sees none of ours."""
    return [str(CLIENTS / "bin/python"), "-I", *argv]


def answers_of(script: str, questions: Any) -> Any:
    """What a script of this folder, run beside the clients, answers in JSON to questions in JSON."""
    command = python_of_clients(str(Path(__file__).with_name(script)))
    given = json.dumps(questions).encode()
    done = subprocess.run(command, input=given, capture_output=True, timeout=SCRIPT, env=clean_environment())
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")[-5000:]
    return json.loads(done.stdout)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which the files of a folder are served."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def server(command: Sequence[str], url: str, log: Path, **environment: str) -> Iterator[None]:
    """Run a server from the time when it answers at `url` with 200; it is ended whatever happens."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=clean_environment(**environment)
        )
    try:
        deadline = time.monotonic() + START
        while not is_up(url):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text("utf-8", "replace")[-5000:]
            time.sleep(0.1)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(START)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(START)


def is_up(url: str) -> bool:
    """Whether a server answers there."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return int(answer.status) == 200
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def store_on_port(folder: Path, dataset: Sequence[dict[str, Any]] = tuple(DATASET), **settings: str) -> Iterator[int]:
    """
    Run `puppet db` with what commands store, which never ends there; its port on 127.0.0.1, where it listens without TLS.

    Args:
        dataset: the commands; by default the recorded ones.
        settings: more of its settings.
    """
    options = {name: str(folder / name) for name in ("confdir", "vardir", "logdir", "rundir")}
    options |= {f"store_{name}_ttl": "50y" for name in ("node", "node_purge", "report")}
    options |= {
        "certname": "localhost",
        "user": "root",
        "store_port": "0",
        "store_socket": str(folder / "s"),
    }
    words = [f"--{name}={value}" for name, value in (options | settings).items()]
    folder.mkdir()
    with reserved_port() as port:
        command = [sys.executable, "-m", "bunraku", "db", *words, f"--store_plain_port={port}", "--no-daemonize"]
        with server(command, f"http://127.0.0.1:{port}/pdb/meta/v1/version", folder / "log.txt"):
            for case in dataset:
                submit(port, case)
            yield port


@dataclass(frozen=True)
class Credentials:
    """The files with which a client shows who it is, and by which it knows the store."""

    ca: Path
    certificate: Path
    key: Path


@dataclass(frozen=True)
class StoreAddress:
    """Where clients find a store: its port on this host; with credentials they use TLS."""

    port: int
    credentials: Credentials | None = None


@contextmanager
def store_over_tls(folder: Path) -> Iterator[StoreAddress]:
    """Run a master whose store holds the recorded data set, and listens over TLS for one certificate of the master's CA alone."""
    name = "client.example.com"
    folder.mkdir()
    (folder / "allowed").write_text(f"{name}\n")
    settings = {f"store_{ttl}_ttl": "50y" for ttl in ("node", "node_purge", "report")}
    settings |= {"store_allowlist": str(folder / "allowed"), "store_socket": str(folder / "s"), "store": "sqlite"}
    with (
        reserved_port() as port,
        reserved_port() as plain,
        master(folder / "master", autosign="true", **settings) as process,
    ):
        process.settings |= {"store_port": str(port), "store_bindaddress": "127.0.0.1", "store_plain_port": str(plain)}
        process.start()
        (folder / "client").mkdir()
        client = OurAgent(folder / "client", process.port, name, {"key_type": "rsa", "keylength": "2048"})
        assert client.puppet("ssl", "bootstrap").code == 0
        deadline = time.monotonic() + START
        while not is_up(f"http://127.0.0.1:{plain}/pdb/meta/v1/version"):
            assert time.monotonic() < deadline, process.log
            time.sleep(0.1)
        for case in DATASET:
            submit(plain, case)
        yield StoreAddress(port, Credentials(client.ssl / "certs/ca.pem", client.certificate, client.key))


@contextmanager
def store_on_postgresql(folder: Path) -> Iterator[StoreAddress]:
    """Run `puppet db` with the recorded data set in a database of PostgreSQL; the test is skipped where that is not installed."""
    programs = postgresql_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    database = PostgresqlServer(programs)
    try:
        database.run_sql("CREATE DATABASE store")
        with store_on_port(folder, store=database.address("store")) as port:
            yield StoreAddress(port)
    finally:
        database.remove()


STORES = {"tls": store_over_tls, "postgresql": store_on_postgresql}


def submit(port: int, case: dict[str, Any]) -> None:
    """Submit a command, and wait until it is stored."""
    name = case["command"].replace(" ", "_")
    parameters = {"command": name, "version": case["version"], "certname": case["certname"], "secondsToWaitForCompletion": 30}
    url = f"http://127.0.0.1:{port}/pdb/cmd/v1?{urllib.parse.urlencode(parameters)}"
    request = urllib.request.Request(url, json.dumps(case["payload"]).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()

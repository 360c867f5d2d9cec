"""HAProxy as the compose profile `masters` has it: each connection goes to the next master that answers."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.ports import reserved_port
from tests.support.processes import clean_environment, end
from tests.support.waiting import wait_until

CONFIGURATION = Path(__file__).parents[2] / "demo/containers/masters/haproxy.cfg"
PROGRAM = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/sbin:/bin")


@contextmanager
def balancer(folder: Path, *ports: int) -> Iterator[int]:
    """HAProxy in front of masters, which it calls `master1` and so on; its port. Its log is `log` in the folder."""
    if PROGRAM is None:
        pytest.skip("haproxy is not installed")
    folder.mkdir()
    with reserved_port() as port:
        head = CONFIGURATION.read_text().partition("    server master1")[0].replace("bind :8140", f"bind 127.0.0.1:{port}")
        servers = (f"    server master{number} 127.0.0.1:{own}\n" for number, own in enumerate(ports, 1))
        (folder / "haproxy.cfg").write_text(head + "".join(servers))
        with (folder / "log").open("wb") as log:
            command = [PROGRAM, "-db", "-f", str(folder / "haproxy.cfg")]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean_environment(), cwd="/")
        log_text = (folder / "log").read_text

        def listens() -> bool:
            assert process.poll() is None, log_text()
            with socket.socket() as client:
                return client.connect_ex(("127.0.0.1", port)) == 0

        try:
            wait_until(listens, describe=log_text)
            yield port
        finally:
            end(process)

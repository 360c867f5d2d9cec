"""Our agent, unmodified, against Debian's puppetserver 7.9.5, which takes minutes to start: `make interop-server`."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from shared import plainyaml
from tests.interop.stage import SITE
from tests.processes import OurAgent, clean_environment

JAR = Path("/usr/share/puppetserver/puppetserver.jar")
CONF = Path("/etc/puppet/puppetserver")
PLACES = ("conf", "code", "var", "run", "log")
ASKED = "BUNRAKU_REAL_SERVER"
START = 240.0  # seconds for puppetserver to answer

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(ASKED not in os.environ, reason=f"runs when {ASKED} is set: make interop-server"),
]


@dataclass(slots=True)
class RealServer:
    root: Path
    port: int

    @property
    def reports(self) -> Path:
        return self.root / "var" / "reports"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def configured(root: Path, port: int) -> None:
    """Debian's configuration, with everything below `root`, on one port of 127.0.0.1."""
    shutil.copytree(CONF / "conf.d", root / "conf.d")
    for name in ("conf", "var", "run", "log"):
        (root / name).mkdir()
    changes = {
        "puppetserver.conf": [(rf"server-{name}-dir:.*", f"server-{name}-dir: {root}/{name}") for name in PLACES],
        "webserver.conf": [(r"ssl-port:.*", f"ssl-port: {port}"), (r"ssl-host:.*", "ssl-host: 127.0.0.1")],
    }
    for name, edits in changes.items():
        path = root / "conf.d" / name
        text = path.read_text()
        for pattern, wanted in edits:
            text = re.sub(pattern, wanted, text)
        path.write_text(text)
    settings = {"vardir": "var", "logdir": "log", "rundir": "run", "codedir": "code", "ssldir": "ssl", "cadir": "ca"}
    lines = [f"{name} = {root}/{place}" for name, place in settings.items()]
    lines += ["certname = localhost", "dns_alt_names = localhost", "autosign = true", f"pidfile = {root}/run/server.pid"]
    (root / "conf" / "puppet.conf").write_text("[main]\n" + "\n".join(lines) + "\n")
    for name, text in SITE.items():
        path = root / "code" / "environments" / "production" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("from_ruby']", "kernel']"))


@pytest.fixture(scope="module")
def server() -> Iterator[RealServer]:
    # Not below pytest's own folder, which only root may enter: the server runs as its own user.
    root = Path(tempfile.mkdtemp(prefix="puppetserver-", dir="/var/tmp"))
    port = free_port()
    configured(root, port)
    account = pwd.getpwnam("puppet")
    for path in [root, *root.rglob("*")]:
        os.chown(path, account.pw_uid, account.pw_gid)
    command = [
        "/usr/bin/java", "-Xms512m", "-Xmx1g", "-Djruby.logger.class=com.puppetlabs.jruby_utils.jruby.Slf4jLogger", "-Dlogappender=STDOUT",
        "-Djruby.lib=/usr/share/jruby/lib", "-jar", str(JAR),
        "--config", str(root / "conf.d"), "--bootstrap-config", str(CONF / "services.d"),
    ]  # fmt: skip
    with (root / "output").open("wb") as output:
        process = subprocess.Popen(
            command, cwd="/", env=clean_environment(HOME=account.pw_dir), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            user=account.pw_uid, group=account.pw_gid, extra_groups=[], start_new_session=True,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + START
        while b"is now ready to handle requests" not in (root / "output").read_bytes():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((root / "output").read_text("utf-8", "replace")[-4000:])
            time.sleep(0.5)
        yield RealServer(root, port)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        shutil.rmtree(root)


def test_our_agents_first_run_changes_and_its_second_has_nothing_to_do(server: RealServer, tmp_path: Path) -> None:
    agent = OurAgent(tmp_path, server.port, "web1.example.com", facts={"stage_root": str(tmp_path / "stage")})
    first = agent.test()
    assert first.code == 2, first.text
    stage = tmp_path / "stage"
    assert (stage / "plain").read_text() == "plain text\n"
    assert (stage / "tree" / "deep" / "b").read_text() == "b\n"
    assert (stage / "facts").read_text() == "ruby says Linux\n"
    assert (stage / "refreshed").exists()
    second = agent.test()
    assert second.code == 0, second.text
    report = max((server.reports / "web1.example.com").iterdir())
    stored = plainyaml.loads(report.read_bytes(), aliases=True)
    assert stored["host"] == "web1.example.com" and stored["report_format"] == 12


def test_a_compile_error_of_the_server_is_shown_and_ends_the_run(server: RealServer, tmp_path: Path) -> None:
    agent = OurAgent(tmp_path, server.port, "web2.example.com")
    failed = agent.test()
    assert failed.code == 1, failed.text
    assert "Could not retrieve catalog from remote server: Error 500 on SERVER: Server Error: Evaluation Error" in failed

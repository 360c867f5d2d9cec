"""Two masters behind a proxy, in the configurations of docs/scale.md; one of them goes while agents run."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from shared.data import plainyaml
from tests.bench.fleet import facts_of, small_site
from tests.support.documentation import block
from tests.support.ports import reserved_port
from tests.support.processes import TRUST_RELOADED, MasterProcess, clean_environment, end, master
from tests.support.simulated_agents import Record, RunFailed, Server, SimulatedAgent, with_certificates
from tests.support.waiting import until, wait_until

pytestmark = [
    pytest.mark.works_with("Packages, services, containers and proxies", "nginx and HAProxy in front of two masters"),
    pytest.mark.slow,
    pytest.mark.alone,
]

AGENTS, ROUNDS, BOOTSTRAPPED = 50, 3, 5
FULL = pytest.mark.full
PROXIES = [
    ("nginx", "termination"),
    ("haproxy", "pass-through"),
    pytest.param("nginx", "pass-through", marks=FULL),
    pytest.param("haproxy", "termination", marks=FULL),
]
"""Both proxies and both kinds are in the gate, each once."""
ATTEMPTS = 10
STREAM_MODULE = Path("/usr/lib/nginx/modules/ngx_stream_module.so")
BEFORE = {
    "nginx": f"load_module {STREAM_MODULE};\nuser root;\ndaemon off;\npid FOLDER/pid;\nerror_log stderr;\nevents {{ }}\n",
    "haproxy": "global\n    maxconn 1000\ndefaults\n    timeout connect 2s\n    timeout server 10m\n    retries 3\n",
}
COMMANDS = {
    "nginx": ["nginx", "-p", "FOLDER", "-e", "stderr", "-c", "FOLDER/proxy.conf"],
    "haproxy": ["haproxy", "-db", "-f", "FOLDER/proxy.conf"],
}


def program_of(name: str) -> str:
    """The path of a proxy's program; the test is skipped where it is not installed."""
    path = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if path is None or (name == "nginx" and not STREAM_MODULE.exists()):
        pytest.skip(f"{name} (for nginx also libnginx-mod-stream) is not installed")
    return path


class Masters:
    """The CA and a master that is none; the site, reports, facts and the filebucket are common. `proxy.pem` is for a proxy."""

    def __init__(self, first: MasterProcess, second: MasterProcess) -> None:
        self.first, self.second = first, second

    def start(self) -> None:
        self.first.write(small_site())
        self.first.start()
        for name in ("master2.test", "proxy.test"):
            done = self.first.puppet("cert", "generate", name, "--dns_alt_names", "localhost")
            assert done.code == 0, done.text
        own, ssl = self.first.root / "conf" / "ssl", self.second.root / "conf" / "ssl"
        for source, place in (
            (own / "certs" / "master2.test.pem", ssl / "certs" / "master2.test.pem"),
            (own / "private_keys" / "master2.test.pem", ssl / "private_keys" / "master2.test.pem"),
            (self.first.ca / "ca_crt.pem", ssl / "certs" / "ca.pem"),
        ):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)
        self.second.settings |= {"ca_server": "localhost", "ca_port": str(self.first.port), "crl_refresh_interval": "1"}
        self.second.start()
        for each in (self.first, self.second):  # before a proxy asks: otherwise the first agents all get one master, and stay there
            wait_until_running(each.port, self.first.ca / "ca_crt.pem")


def wait_until_running(port: int, ca: Path) -> None:
    """Return when a master says that it can compile."""
    context = ssl.create_default_context(cafile=str(ca))

    def is_running() -> bool:
        connection = HTTPSConnection("localhost", port, context=context, timeout=60)
        try:
            connection.request("GET", "/status/v1/simple/server")
            return connection.getresponse().read() == b"running"
        finally:
            connection.close()

    wait_until(is_running)


@contextmanager
def masters(root: Path, configuration: str, python: Path = Path(sys.executable)) -> Iterator[Masters]:
    """`configuration`: lines for the puppet.conf of both. `python`: the program that the second one runs in."""
    first, second = root / "first", root / "second"
    common = {"key_type": "ec", "vardir": str(first / "var"), "autosign": "true"}
    shared = {"environmentpath": str(first / "conf" / "code" / "environments")}
    for folder, lines in ((first, ""), (second, "ca = false\n")):
        (folder / "conf").mkdir(parents=True)
        (folder / "conf" / "puppet.conf").write_text(f"[master]\n{lines}{configuration}")
    with (
        master(first, certname="master1.test", dns_alt_names="localhost", **common) as one,
        master(second, certname="master2.test", code_cache=str(second / "code"), **shared, **common) as two,
    ):
        two.python = str(python)
        both = Masters(one, two)
        both.start()
        yield both


def python_of_its_own(folder: Path) -> Path:
    """The program of a virtual environment with all that this one has, which can be taken away."""
    (folder / "bin").mkdir(parents=True)
    for name in ("pyvenv.cfg", "lib"):
        (folder / name).symlink_to(Path(sys.prefix) / name)
    program = folder / "bin" / "python"
    program.symlink_to(sys.executable)
    return program


@contextmanager
def proxy(program: str, kind: str, both: Masters, folder: Path, *, replacing: tuple[str, str] = ("", "")) -> Iterator[int]:
    """The example of docs/scale.md, running, with another text in place of one; its port."""
    with reserved_port() as port:
        folder.mkdir()
        ssl = both.first.root / "conf" / "ssl"
        certificate, key = ssl / "certs" / "proxy.test.pem", ssl / "private_keys" / "proxy.test.pem"
        (folder / "proxy.pem").write_text(certificate.read_text() + key.read_text())
        words = {
            "FOLDER": folder,
            "LISTEN": f"127.0.0.1:{port}",
            "MASTER1": f"127.0.0.1:{both.first.port}",
            "MASTER2": f"127.0.0.1:{both.second.port}",
            "PROXY_CERTIFICATE": certificate,
            "PROXY_KEY": key,
            "PROXY_BUNDLE": folder / "proxy.pem",
            "CA": both.first.ca / "ca_crt.pem",
            "CRL": both.first.ca / "ca_crl.pem",
        }

        def filled(text: str) -> str:
            return re.sub(r"\b(" + "|".join(words) + r")\b", lambda match: str(words[match[1]]), text)

        (folder / "proxy.conf").write_text(filled(BEFORE[program] + block("docs/scale.md", program, kind).body.replace(*replacing, 1)))
        command = [program_of(program), *map(filled, COMMANDS[program][1:])]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean_environment(), cwd="/")
        try:
            wait_for(port, process, folder / "log")
            yield port
        finally:
            end(process)


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    def listens() -> bool:
        assert process.poll() is None, log.read_text()
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    wait_until(listens, describe=log.read_text)


async def lives(agents: list[SimulatedAgent], both: Masters) -> None:
    """All agents run; the second master is stopped when a third of the runs is over, and started again after another third."""
    record, thirds = agents[0].record, [asyncio.Event(), asyncio.Event()]
    wanted = len(agents) * ROUNDS

    async def life(agent: SimulatedAgent) -> None:
        for _ in range(ROUNDS):
            await agent.run_until_done(ATTEMPTS, pause=0.2)
            for number, reached in enumerate(thirds, 1):
                if len(record.runs) >= wanted * number // 3:
                    reached.set()

    running = asyncio.gather(*(life(agent) for agent in agents))
    for reached, change in zip(thirds, (both.second.stop, both.second.start), strict=True):
        await reached.wait()
        assert not running.done()
        await asyncio.to_thread(change)
    await running


@pytest.mark.parametrize(("program", "kind"), PROXIES)
async def test_R_17_one_of_two_masters_goes_and_comes_back_and_every_run_ends_well(program: str, kind: str, tmp_path: Path) -> None:
    program_of(program)
    trusting = "allow_header_cert_info = true\nproxy_addresses = 127.0.0.1\n" if kind == "termination" else ""
    with masters(tmp_path, trusting) as both, proxy(program, kind, both, tmp_path / "proxy") as port:
        folder = tmp_path / "agents"
        folder.mkdir()
        shutil.copy(both.first.ca / "ca_crt.pem", folder / "ca.pem")
        record = Record()
        server = Server(port, ca_port=port if kind == "termination" else both.first.port, timeout=60)
        names = [f"node{number}.test" for number in range(AGENTS)]
        agents = [SimulatedAgent(name, folder, server, record, facts_of(name), sources=2) for name in names]
        await asyncio.gather(*(agent.bootstrap() for agent in agents[:BOOTSTRAPPED]))
        with_certificates(names[BOOTSTRAPPED:], folder, both.first.ca)
        async with asyncio.timeout(120):
            await lives(agents, both)
        assert len(record.runs) == AGENTS * ROUNDS
        assert record.lost(both.first.reports) == []
        for name in names:
            facts = plainyaml.loads((both.first.root / "var" / "yaml" / "facts" / f"{name}.yaml").read_bytes(), aliases=True)
            assert facts["values"]["networking"]["fqdn"] == name
        for each in (both.first, both.second):
            assert "Compiled catalog for node" in each.log
            assert "Incident" not in each.log
            assert "Traceback" not in each.log
        assert record.errors.total() <= AGENTS, record.errors  # what was under way when a master went, at most once an agent
        if kind == "termination":
            await only_the_certificate_counts(agents[0], both)


@pytest.mark.parametrize("kind", ["termination", pytest.param("pass-through", marks=FULL)])
async def test_R_43_a_master_that_runs_and_cannot_compile_gets_no_agents_until_it_can(kind: str, tmp_path: Path) -> None:
    program_of("haproxy")
    trusting = "allow_header_cert_info = true\nproxy_addresses = 127.0.0.1\n" if kind == "termination" else ""
    python = python_of_its_own(tmp_path / "python")
    with masters(tmp_path, trusting, python) as both, proxy("haproxy", kind, both, tmp_path / "proxy") as port:
        log = tmp_path / "proxy" / "log"
        folder = tmp_path / "agents"
        folder.mkdir()
        shutil.copy(both.first.ca / "ca_crt.pem", folder / "ca.pem")
        record = Record()
        server = Server(port, ca_port=port if kind == "termination" else both.first.port, timeout=60)
        names = [f"node{number}.test" for number in range(20)]
        agents, later = ([SimulatedAgent(name, folder, server, record, facts_of(name), sources=2) for name in names[i::2]] for i in (0, 1))
        with_certificates(names, folder, both.first.ca)
        python.rename(python.with_suffix(".away"))  # as an upgrade leaves it that was broken off
        os.kill(both.second.pid, signal.SIGHUP)  # which replaces the processes that compile
        await until(lambda: "No catalog can be compiled: " in both.second.log)
        await until(lambda: log.read_text().count("master2 is DOWN") > log.read_text().count("master2 is UP"))
        before = both.second.log.count("Compiled catalog for")
        await asyncio.gather(*(agent.run() for agent in agents))
        assert both.second.log.count("Compiled catalog for") == before
        assert (len(record.runs), record.errors.total()) == (len(agents), 0)
        python.with_suffix(".away").rename(python)
        await until(lambda: log.read_text().count("master2 is UP") >= log.read_text().count("master2 is DOWN"))
        for _ in range(ROUNDS):  # of other agents: those before may stay at their master
            await asyncio.gather(*(agent.run() for agent in later))
        assert both.second.log.count("Compiled catalog for") > before
        assert record.errors.total() == 0


BY_ADDRESS = {
    "nginx": ("    server MASTER1", "    hash $remote_addr consistent;\n    server MASTER1"),
    "haproxy": ("    option redispatch", "    stick-table type ip size 100k expire 10m\n    stick on src\n    option redispatch"),
}
"""What the text below the examples says of those that pass TLS through."""


@pytest.mark.parametrize(("program", "kind"), PROXIES)
async def test_the_proxy_keeps_the_runs_of_an_agent_at_one_master(program: str, kind: str, tmp_path: Path) -> None:
    program_of(program)
    trusting = "allow_header_cert_info = true\nproxy_addresses = 127.0.0.1\n" if kind == "termination" else ""
    by_address = BY_ADDRESS[program] if kind == "pass-through" else ("", "")
    with masters(tmp_path, trusting) as both, proxy(program, kind, both, tmp_path / "proxy", replacing=by_address) as port:
        folder = tmp_path / "agents"
        folder.mkdir()
        shutil.copy(both.first.ca / "ca_crt.pem", folder / "ca.pem")
        server = Server(port, ca_port=port if kind == "termination" else both.first.port, timeout=60)
        names = [f"node{number}.test" for number in range(20)]
        agents = [SimulatedAgent(name, folder, server, Record(), facts_of(name), sources=2) for name in names]
        with_certificates(names, folder, both.first.ca)
        for _ in range(ROUNDS):
            await asyncio.gather(*(agent.run() for agent in agents))
        served = [set(re.findall(r' (node\d+\.test) "', each.log)) for each in (both.first, both.second)]
        assert served[0] | served[1] == set(names)
        assert served[0] & served[1] == set()
        assert sum(map(bool, served)) == (2 if kind == "termination" else 1)  # all of them have one address


async def only_the_certificate_counts(agent: SimulatedAgent, both: Masters) -> None:
    """The proxy has not heard of the revocation and lets the agent pass; the masters verify what it passes on themselves."""
    before = both.second.log.count(TRUST_RELOADED)
    both.first.revoke(agent.certname)
    await until(lambda: both.second.log.count(TRUST_RELOADED) > before)  # it asks for the list each second
    with pytest.raises(RunFailed, match="403"):
        await agent.run()

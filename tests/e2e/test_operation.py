"""A started master as its administrator meets it: processes that fail, too much at once, HUP and TERM."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from pathlib import Path

import pytest
from cryptography import x509

from tests.support.ports import reserved_port
from tests.support.processes import MasterProcess, OurAgent, master
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

AGENT = "agent1.test"
CATALOG = f"/puppet/v3/catalog/{AGENT}?environment=production"
ENDLESS = "Integer[1, 10000000000].each |$i| { $x = $i }"
ENVIRONMENTS = "/puppet/v3/environments"
RULES = f"path ~ ^/catalog/([^/]+)$\nallow $1\n\npath {ENVIRONMENTS}\nallow nobody.test\n"
GROWING = '$x = Integer[1, 100000000].map |$i| { "a rather long text ${i} a rather long text" }'
QUIET = {"key_type": "ec", "compile_workers": "1"}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a CA that has signed the certificate of AGENT."""
    process = MasterProcess(tmp_path_factory.mktemp("ca"), dict(QUIET))
    made = process.puppet("cert", "generate", AGENT)
    assert made.code == 0, made.text
    return process.root / "conf" / "ssl"


@pytest.fixture
def site(new_site: MasterProcess, certificates: Path) -> MasterProcess:
    """A master that is not started yet, with one compiling process and a certificate of AGENT."""
    shutil.copytree(certificates, new_site.root / "conf" / "ssl")
    return new_site


@pytest.fixture
def new_site(tmp_path: Path) -> Iterator[MasterProcess]:
    """The same without any certificates."""
    with reserved_port() as port, master(tmp_path / "master", metrics_port=str(port), **QUIET) as process:
        process.root.mkdir()
        process.write({"manifests/site.pp": "notify { 'first': }"})
        yield process


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def started(site: MasterProcess, **settings: str) -> MasterProcess:
    """Start it, and see to a certificate for AGENT."""
    site.settings |= settings
    site.start()
    if not ssl_file(site, "private_keys", AGENT).exists():
        made = site.puppet("cert", "generate", AGENT)
        assert made.code == 0, made.text
    return site


def ssl_file(site: MasterProcess, folder: str, name: str) -> Path:
    return site.root / "conf" / "ssl" / folder / f"{name}.pem"


@contextmanager
def connected(site: MasterProcess) -> Iterator[HTTPSConnection]:
    """A connection of AGENT."""
    context = ssl.create_default_context(cafile=str(site.ca / "ca_crt.pem"))
    context.load_cert_chain(ssl_file(site, "certs", AGENT), ssl_file(site, "private_keys", AGENT))
    connection = HTTPSConnection("localhost", site.port, context=context, timeout=60)
    try:
        connection.connect()
        yield connection
    finally:
        connection.close()


def is_refused(site: MasterProcess) -> bool:
    """Whether the master accepts no connection any more."""
    try:
        with connected(site):
            return False
    except OSError:
        return True


class Answer:
    """What came back, as a whole."""

    def __init__(self, response: HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def notified(self) -> list[str]:
        return [each["title"] for each in json.loads(self.body)["resources"] if each["type"] == "Notify"]


def asked(connection: HTTPSConnection, path: str = CATALOG) -> Answer:
    connection.request("GET", path, headers={"Accept": "application/json"})
    return Answer(connection.getresponse())


def catalog(site: MasterProcess) -> Answer:
    """The catalog, over a connection of its own."""
    with connected(site) as connection:
        return asked(connection)


def compiling(site: MasterProcess) -> list[int]:
    """The compiling processes that are there."""
    return [int(pid) for place in Path(f"/proc/{site.pid}/task").glob("*/children") for pid in place.read_text().split()]


def is_compiling(site: MasterProcess) -> bool:
    """Whether the one compiling process has been given something to do."""
    return '\npuppet_compile_workers{state="busy"} 1\n' in metrics(site)


def paused(site: MasterProcess, threads: ThreadPoolExecutor, requests: int = 1) -> tuple[int, list[Future[Answer]]]:
    """The one compiling process, stopped while it has work, and those who wait for it."""
    assert catalog(site).status == 200
    (pid,) = compiling(site)
    os.kill(pid, signal.SIGSTOP)
    waiting = [threads.submit(catalog, site) for _ in range(requests)]
    wait_until(lambda: is_compiling(site))
    return pid, waiting


def test_R_20_a_killed_compiling_process_costs_nobody_a_catalog(site: MasterProcess, threads: ThreadPoolExecutor) -> None:
    started(site)
    pid, (waiting,) = paused(site, threads)
    os.kill(pid, signal.SIGKILL)
    assert waiting.result().notified == ["first"]
    assert compiling(site) != [pid]
    assert site.stop() == 0


def test_a_compiling_process_that_hangs_is_replaced(site: MasterProcess, threads: ThreadPoolExecutor) -> None:
    started(site, compile_timeout="5")
    pid, (waiting,) = paused(site, threads)
    assert waiting.result().status == 500
    assert b"compile_timeout" in waiting.result().body
    assert catalog(site).notified == ["first"]
    assert compiling(site) != [pid]


def test_a_compiling_process_that_outgrows_its_memory_is_replaced(site: MasterProcess) -> None:
    started(site, compile_memory="256MiB")
    assert catalog(site).status == 200
    (pid,) = compiling(site)
    site.write({"manifests/site.pp": GROWING})
    answer = catalog(site)
    assert answer.status == 500
    assert b"compile_memory" in answer.body
    site.write({"manifests/site.pp": "notify { 'well': }"})
    assert catalog(site).notified == ["well"]
    assert pid not in compiling(site)


def test_a_compiling_process_is_replaced_after_so_many_catalogs(site: MasterProcess) -> None:
    started(site, compile_jobs="2")
    pids = set()
    for _ in range(6):
        assert catalog(site).notified == ["first"]
        pids |= set(compiling(site))
    assert len(pids) >= 3


def test_beyond_the_queue_agents_are_told_when_to_come_back(site: MasterProcess, threads: ThreadPoolExecutor) -> None:
    started(site, compile_queue="2")
    pid, waiting = paused(site, threads, requests=6)
    wait_until(lambda: sum(each.done() for each in waiting) == 3)
    refused = [each.result() for each in waiting if each.done()]
    os.kill(pid, signal.SIGCONT)
    assert [each.status for each in refused] == [503] * 3
    assert all(5 <= int(each.headers["Retry-After"]) <= 60 for each in refused)
    assert sorted(each.result().status for each in waiting) == [200] * 3 + [503] * 3


def test_after_HUP_everything_is_new_and_nothing_was_cut(site: MasterProcess, threads: ThreadPoolExecutor) -> None:
    # Without HUP it would be a day before any of this is looked at.
    started(site, filetimeout="1d", environment_timeout="unlimited")
    with connected(site) as before:
        assert asked(before).notified == ["first"]
        serial = server_serial(before)
        (pid,) = compiling(site)
        site.write({"manifests/site.pp": "notify { 'second': }"})
        (site.root / "conf" / "auth.conf").write_text(RULES)
        (site.root / "conf" / "puppet.conf").write_text("[master]\nreporturl = http://elsewhere/\n")
        assert asked(before).notified == ["first"]
        assert asked(before, ENVIRONMENTS).status == 200
        os.kill(pid, signal.SIGSTOP)
        under_way = threads.submit(catalog, site)
        wait_until(lambda: is_compiling(site))
        assert site.puppet("cert", "clean", "--force", "localhost").code == 0
        assert site.puppet("cert", "generate", "localhost").code == 0

        os.kill(site.pid, signal.SIGHUP)
        wait_until(lambda: "Reloaded everything" in site.log)
        os.kill(pid, signal.SIGCONT)
        assert under_way.result().notified == ["first"]
        assert asked(before).notified == ["second"]
        assert asked(before, ENVIRONMENTS).status == 403
        assert server_serial(before) == serial
        with connected(site) as after:
            assert server_serial(after) != serial
    wait_until(lambda: pid not in compiling(site))
    site.until_logged("The setting reporturl has changed; it counts from the next start on")
    assert site.stop() == 0


def server_serial(connection: HTTPSConnection) -> int:
    """The serial of the certificate that the master showed on this connection."""
    shown = connection.sock.getpeercert(binary_form=True)
    return x509.load_der_x509_certificate(shown).serial_number


def test_what_cannot_be_read_at_HUP_stays_as_it_was(site: MasterProcess) -> None:
    started(site, filetimeout="1d")
    (site.root / "conf" / "auth.conf").write_text("this is no rule\n")
    os.kill(site.pid, signal.SIGHUP)
    wait_until(lambda: "the old content stays in force" in site.log)
    assert catalog(site).status == 200


def test_R_15_TERM_lets_a_compile_end_that_is_under_way(site: MasterProcess, threads: ThreadPoolExecutor) -> None:
    started(site)
    pid, (waiting,) = paused(site, threads)
    os.kill(site.pid, signal.SIGTERM)
    wait_until(lambda: "Caught SIGTERM" in site.log)
    wait_until(lambda: is_refused(site))
    os.kill(pid, signal.SIGCONT)
    answer = waiting.result()
    assert (answer.status, answer.headers["Connection"]) == (200, "close")
    assert site.wait() == 0


@pytest.mark.parametrize(("drain", "signals"), [("2", 1), ("1h", 2)])
def test_R_16_a_compile_that_does_not_end_does_not_hold_up_the_end(
    site: MasterProcess, threads: ThreadPoolExecutor, drain: str, signals: int
) -> None:
    site.write({"manifests/site.pp": ENDLESS})
    started(site, drain_timeout=drain, compile_timeout="1h")
    waiting = threads.submit(catalog, site)
    wait_until(lambda: compiling(site))
    (pid,) = compiling(site)
    wait_until(lambda: at_work(pid))
    for number in range(signals):
        os.kill(site.pid, signal.SIGTERM)
        wait_until(lambda number=number: site.log.count("Caught SIGTERM") == number + 1)
    assert site.wait() == 0
    assert waiting.exception() is not None
    assert not Path(f"/proc/{pid}").exists()
    started(site).kill()  # locks and the pid file are free


def at_work(pid: int) -> bool:
    """Whether a process has computed for longer than its start takes."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK") > 0.5


def test_systemd_hears_of_start_reload_and_stop_and_that_the_master_lives(site: MasterProcess, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        site.environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"}

        def heard(word: str) -> str:
            return next(text for _ in range(100) if word in (text := manager.recv(4096).decode()))

        site.start()
        assert f"STATUS=Serving Puppet on 127.0.0.1 port {site.port}" in heard("READY=1")
        assert heard("WATCHDOG=1") and heard("WATCHDOG=1")
        os.kill(site.pid, signal.SIGHUP)
        assert "MONOTONIC_USEC=" in heard("RELOADING=1")
        assert heard("READY=1")
        os.kill(site.pid, signal.SIGTERM)
        assert heard("STOPPING=1")
        assert site.wait() == 0


def test_metrics_tell_what_a_collector_wants_to_know(site: MasterProcess, threads: ThreadPoolExecutor) -> None:
    started(site)
    pid, (waiting,) = paused(site, threads)
    os.kill(pid, signal.SIGKILL)
    assert waiting.result().status == 200
    with connected(site) as connection:
        assert asked(connection, "/puppet/v3/catalog/somebody.else?environment=production").status == 403
    wait_until(lambda: "\npuppet_connections 0\n" in metrics(site))
    text = metrics(site)
    for line in (
        'puppet_requests_total{indirection="catalog",method="GET",status="200"} 2',
        'puppet_requests_total{indirection="catalog",method="GET",status="403"} 1',
        'puppet_request_seconds_count{indirection="catalog",method="GET"} 3',
        'puppet_compile_seconds_count{outcome="done"} 2',
        "puppet_compiles_waiting 0",
        'puppet_compile_workers{state="idle"} 1',
        'puppet_compile_workers_replaced_total{reason="died"} 1',
        'puppet_ca_actions_total{action="sign",result="done"} 1',
    ):
        assert f"\n{line}\n" in text, text
    assert re.search(r"^puppet_loop_lag_seconds_count [1-9]", text, re.M)
    assert re.search(r"^puppet_tasks [1-9]", text, re.M)


def metrics(site: MasterProcess) -> str:
    connection = HTTPConnection("127.0.0.1", int(site.settings["metrics_port"]), timeout=60)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def test_what_the_ca_did_and_whom_the_master_refused_is_in_the_audit_log(new_site: MasterProcess) -> None:
    access = new_site.root / "log" / "access.json"
    started(new_site, accesslog=str(access))
    with connected(new_site) as connection:
        assert asked(connection).status == 200
        assert asked(connection, "/puppet-ca/v1/certificate_statuses/all").status == 403
    assert new_site.puppet("cert", "revoke", AGENT).code == 0
    entries = [json.loads(line) for line in (new_site.root / "log" / "audit.json").read_text().splitlines()]
    assert [(each["action"], each["name"]) for each in entries] == [
        ("create-ca", "Puppet CA: localhost"),
        ("sign", "localhost"),
        ("generate", AGENT),
        ("request", AGENT),
        ("revoke", AGENT),
    ]
    _, own, made, refused, revoked = entries
    assert len(own["fingerprint"]) == 95
    assert made["by"].endswith(" at the command line")
    assert (refused["result"], refused["from"], refused["status"]) == ("refused", "127.0.0.1", 403)
    assert (refused["method"], refused["path"]) == ("GET", "/puppet-ca/v1/certificate_statuses/all")
    assert (revoked["serials"], revoked["fingerprint"]) == ([made["serial"]], made["fingerprint"])
    lines = [json.loads(line) for line in access.read_text().splitlines()]
    assert [(each["certname"], each["path"].split("/")[1], each["status"]) for each in lines] == [
        (AGENT, "puppet", 200),
        (AGENT, "puppet-ca", 403),
    ]
    assert lines[1]["request"] == refused["request"] != lines[0]["request"]
    assert '"GET /puppet' not in new_site.log


def test_certificates_that_end_are_renewed_by_agents_and_warned_of_by_the_master(new_site: MasterProcess, tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    started(new_site, autosign="true", ca_ttl="6d", auto_renewal_cert_ttl="5d")
    agent = OurAgent(tmp_path / "agent", new_site.port, "agent2.test", {"scheme": "b"})
    assert agent.test().code == 2
    first = x509.load_pem_x509_certificate(agent.certificate.read_bytes())
    again = agent.test()  # six days are less than the thirty before the end
    assert again.code == 2 and "Renewed the certificate of agent2.test" in again.text
    renewed = x509.load_pem_x509_certificate(agent.certificate.read_bytes())
    assert renewed.public_key() == first.public_key()
    assert renewed.serial_number != first.serial_number
    assert [(c.not_valid_after_utc - c.not_valid_before_utc).days for c in (first, renewed)] == [6, 6]  # a day is before now
    entries = [json.loads(line) for line in (new_site.root / "log" / "audit.json").read_text().splitlines()]
    assert [entry["serial"] for entry in entries if (entry["action"], entry["name"]) == ("renew", "agent2.test")] == [renewed.serial_number]
    assert "Downloaded certificate 'agent2.test' with fingerprint (SHA256)" in agent.puppet("ssl", "renew_cert")
    assert x509.load_pem_x509_certificate(agent.certificate.read_bytes()).serial_number > renewed.serial_number
    new_site.until_logged("The CA's certificate 'Puppet CA: localhost' expires on ")
    new_site.stop()
    started(new_site)
    wait_until(lambda: 'puppet_agent_certificates_ending{days="7"} 2' in metrics(new_site))
    assert 'puppet_certificate_end_seconds{kind="master",name="localhost"} ' in metrics(new_site)
    new_site.until_logged("Certificates of agents expire within 7 days: agent1.test, agent2.test. ")  # the numbers are there before

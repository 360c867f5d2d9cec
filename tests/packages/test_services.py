"""
The services of the Debian package, in a Debian that has booted with a systemd of its own (see tests/conformance/booted.py).

The package is built by the lock from the wheels of the containers' base, so that nobody is asked for them: `make compose-base`,
`make image` and `make test-packages` have made what this needs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo.compose import BASE
from tests.conformance import booted
from tests.conformance.booted import Booted
from tests.conformance.test_sandbox import IMAGE as APPLY_IMAGE
from tests.packages.test_clean_system import IMAGE, PROJECT

WAIT = 60.0  # seconds for what systemd is about to do
WATCHDOG = 15  # seconds without a word of the master until systemd ends it
MASTER = "puppet-master.service"
PYTHON = "/usr/lib/bunraku/bin/python3"


def reason() -> str:
    if why := booted.why_not():
        return why
    if not IMAGE.exists():
        return "there is no plain Debian here; `make package-image` makes it"
    if not (BASE / "base.tar").exists():
        return "there is no base with the locked wheels here; `make compose-base` makes it"
    if shutil.which("dpkg-deb") is None:
        return "dpkg-deb is missing"
    return "" if sys.version_info[:2] == (3, 11) else "the package is built for bookworm's Python 3.11, by an interpreter of that version"


pytestmark = [
    pytest.mark.works_with("Packages, services, containers and proxies", "systemd's units"),
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.skipif(bool(reason()), reason=reason()),
]

CONFIG = """
[main]
server = puppet
[master]
certname = puppet
autosign = true
[agent]
certname = node1
"""
SITE = """
node default {
  file { '/srv/applied': content => "${trusted['certname']}\\n" }
  file { '/srv/beside': ensure => directory }
}
"""
# A compile that takes some seconds and shows when it has begun.
SLOW = SITE + "$x = generate('/bin/sh', '-c', 'touch /var/lib/puppet/begun; sleep 4; echo slow')\n"

# Asks over one connection, before and after a reload. The address of our end tells whether it is the same one.
ONE_CONNECTION = """
import http.client, ssl, subprocess
trust = ssl.create_default_context(cafile="/etc/puppet/ssl/certs/ca.pem")
asking = http.client.HTTPSConnection("puppet", 8140, context=trust, timeout=30)
ends = set()
for turn in range(2):
    asking.request("GET", "/status/v1/simple/status-service")
    answer = asking.getresponse()
    print(answer.status, answer.read().decode())
    ends.add(asking.sock.getsockname())
    if turn == 0:
        subprocess.run(["systemctl", "reload", "puppet-master"], check=True)
print(len(ends), "connection")
"""


def made(*argv: object, environ: Mapping[str, str]) -> str:
    done = subprocess.run([str(word) for word in argv], env=environ, cwd=PROJECT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def deb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deb")
    made("tar", "-C", folder, "-xf", BASE / "base.tar", "./opt/wheels", environ=os.environ)
    offline = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder / "opt/wheels")}
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    made(*pip, "--no-deps", "--wheel-dir", folder, PROJECT, environ=offline)
    (wheel,) = folder.glob("bunraku-*.whl")
    said = made("sh", PROJECT / "packaging/deb/build.sh", wheel, folder, sys.executable, environ=offline)
    return Path(said.splitlines()[-1])


@pytest.fixture(scope="module")
def machine(deb: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Booted]:
    """A machine with the package, and a site; its master does not run yet."""
    layer = tmp_path_factory.mktemp("layer")
    shutil.copytree(APPLY_IMAGE / "srv/more/systemd", layer / "srv/more/systemd")
    shutil.copy(deb, layer / "srv/bunraku.deb")
    with ExitStack() as ending:
        try:
            machine = ending.enter_context(Booted(layer, IMAGE))
        except RuntimeError as err:
            pytest.skip(str(err))
        machine.shell("echo 127.0.0.1 localhost puppet node1 > /etc/hosts; dpkg --install /srv/bunraku.deb")
        machine.path("/etc/puppet/puppet.conf").write_text(CONFIG)
        machine.path("/etc/puppet/code/environments/production/manifests/site.pp").write_text(SITE)
        yield machine


@pytest.fixture
def master(machine: Booted) -> Iterator[Booted]:
    """The machine with its master at work as the package has it; what a test put beside its unit is gone afterwards."""
    machine.shell("systemctl reset-failed; systemctl start puppet-master")
    yield machine
    machine.shell("rm -rf /etc/systemd/system/puppet-*.d; systemctl daemon-reload")


def shown(machine: Booted, unit: str, *names: str) -> dict[str, str]:
    """What systemd says of a unit."""
    lines = machine.shell(f"systemctl show {unit} --property={','.join(names)}").splitlines()
    return dict(line.split("=", 1) for line in lines)


def until(machine: Booted, unit: str, **wanted: str) -> None:
    """Until systemd says these things of a unit."""
    deadline = time.monotonic() + WAIT
    while (said := shown(machine, unit, *wanted)) != wanted:
        assert time.monotonic() < deadline, (said, machine.run("journalctl", "--no-pager", "-n", "30").stdout)
        time.sleep(0.1)


def journal(machine: Booted, unit: str) -> list[dict[str, Any]]:
    """What the journal has of a unit, by fields, the oldest first."""
    machine.shell("journalctl --sync")
    return [json.loads(line) for line in machine.shell(f"journalctl --unit={unit} --output=json --no-pager --quiet").splitlines()]


def messages(machine: Booted, unit: str = MASTER) -> list[str]:
    return [str(entry["MESSAGE"]) for entry in journal(machine, unit)]


def drop_in(machine: Booted, unit: str, text: str) -> None:
    folder = machine.path(f"/etc/systemd/system/{unit}.d")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "test.conf").write_text(text)
    machine.shell("systemctl daemon-reload")


def changed(machine: Booted) -> int:
    """How many resources the last run changed."""
    summary = yaml.safe_load(machine.path("/var/lib/puppet/public/last_run_summary.yaml").read_text())
    return int(summary["resources"]["changed"])


def test_the_services_are_there_and_none_is_enabled(machine: Booted) -> None:
    listed = dict(line.split()[:2] for line in machine.shell("systemctl list-unit-files 'puppet-*' --no-legend").splitlines())
    assert listed == {
        MASTER: "disabled",
        "puppet-db.service": "disabled",
        "puppet-agent.service": "disabled",
        "puppet-agent-run.service": "static",
        "puppet-agent-run.timer": "disabled",
    }


def test_the_master_is_active_once_it_listens_and_has_no_rights(master: Booted) -> None:
    said = shown(master, MASTER, "ActiveState", "MainPID", "StatusText", "WatchdogUSec", "NotifyAccess", "Type")
    pid = said.pop("MainPID")
    assert said == {
        "ActiveState": "active",
        "StatusText": "Serving Puppet on 0.0.0.0 port 8140 as puppet",
        "WatchdogUSec": "1min",
        "NotifyAccess": "main",
        "Type": "notify",
    }
    master.shell(f"{PYTHON} -Ic \"import socket; socket.create_connection(('puppet', 8140), 5)\"")
    uid = master.shell("id -u puppet").strip()
    workers = master.shell(f"cat /proc/{pid}/task/{pid}/children").split()
    assert workers
    for each in (pid, *workers):
        status = dict(re.findall(r"^(\w+):\s*(.*)$", master.shell(f"cat /proc/{each}/status"), re.MULTILINE))
        assert status["Uid"].split() == [uid] * 4
        assert {int(status[name], 16) for name in status if name.startswith("Cap")} == {0}
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_the_master_can_write_into_its_own_folders_only(master: Booted) -> None:
    pid = shown(master, MASTER, "MainPID")["MainPID"]
    own = ["/etc/puppet/ssl", "/run/puppet", "/var/lib/puppet", "/var/log/puppet"]
    tried = "for each in / /etc /etc/puppet /srv /usr /var /var/lib /var/log /run /home /dev " + " ".join(own)
    tried += "; do if touch $each/tried 2>/dev/null; then rm $each/tried; echo $each; fi; done"
    for becoming, more in (
        ("--reuid=puppet --regid=puppet --clear-groups", []),
        ("--reuid=root", ["/run"]),  # what the files alone forbid: they are the master's, but these are root's rights
    ):
        seen = master.shell(f"nsenter --target {pid} --mount -- setpriv {becoming} sh -c '{tried}'").split()
        assert sorted(seen) == sorted([*own, *more])


def test_runs_by_the_service_and_then_by_the_timer(master: Booted) -> None:
    master.shell("rm -rf /srv/applied /srv/beside")
    master.shell("systemctl start puppet-agent-run.service")
    assert changed(master) == 2
    assert master.path("/srv/applied").read_text() == "node1\n"
    master.shell("systemctl start puppet-agent-run.service")
    assert changed(master) == 0
    master.shell("rm /srv/applied")
    # What would be in minutes is now; each run is followed by the next.
    soon = "[Timer]\nOnBootSec=\nOnUnitInactiveSec=\nOnActiveSec=1\nOnUnitInactiveSec=1\nRandomizedDelaySec=0\nAccuracySec=100ms\n"
    drop_in(master, "puppet-agent-run.timer", soon)
    runs = len([line for line in messages(master, "puppet-agent-run.service") if line.startswith("Applied catalog")])
    master.shell("systemctl start puppet-agent-run.timer")
    deadline = time.monotonic() + WAIT
    while (now := [line for line in messages(master, "puppet-agent-run.service") if line.startswith("Applied catalog")])[runs + 1 :] == []:
        assert time.monotonic() < deadline, now
        time.sleep(0.2)
    master.shell("systemctl stop puppet-agent-run.timer")
    until(master, "puppet-agent-run.service", ActiveState="inactive", Result="success")
    assert master.path("/srv/applied").read_text() == "node1\n"
    assert changed(master) == 0


def test_the_timer_as_it_is_has_a_next_run(master: Booted) -> None:
    master.shell("systemctl start puppet-agent-run.timer")
    try:
        (line,) = master.shell("systemctl list-timers puppet-agent-run.timer --no-legend").splitlines()
        assert line.split()[-1] == "puppet-agent-run.service"
        until(master, "puppet-agent-run.timer", ActiveState="active")
    finally:
        master.shell("systemctl stop puppet-agent-run.timer; systemctl stop puppet-agent-run.service")


def test_the_agent_as_a_daemon_runs_starts_anew_and_stops(master: Booted) -> None:
    master.shell("rm -rf /srv/applied; systemctl start puppet-agent.service")
    pid = shown(master, "puppet-agent.service", "MainPID")["MainPID"]
    for _ in range(2):
        deadline = time.monotonic() + WAIT
        while not master.path("/srv/applied").exists():
            assert time.monotonic() < deadline, messages(master, "puppet-agent.service")
            time.sleep(0.1)
        master.shell("rm /srv/applied; systemctl reload puppet-agent.service")
    until(master, "puppet-agent.service", ActiveState="active", MainPID=pid, NRestarts="0")
    master.shell("systemctl stop puppet-agent.service")
    until(master, "puppet-agent.service", ActiveState="inactive", Result="success", ExecMainStatus="0")


def test_a_reload_keeps_connections_and_process_and_is_in_the_journal(master: Booted) -> None:
    before = shown(master, MASTER, "MainPID", "NRestarts")
    said = master.run(PYTHON, "-Ic", ONE_CONNECTION)
    assert said.stdout.splitlines() == ["200 running", "200 running", "1 connection"]
    until(master, MASTER, ActiveState="active", SubState="running", **before)
    lines = messages(master)
    caught = next(number for number, line in enumerate(lines) if line.startswith("Caught HUP"))
    assert "Reloaded everything" in lines[caught:]


def test_the_journal_has_fields(master: Booted) -> None:
    master.shell("systemctl start puppet-agent-run.service")
    entry = next(each for each in reversed(journal(master, MASTER)) if str(each["MESSAGE"]).startswith("Compiled catalog for node1"))
    fields = {name: entry.get(name) for name in ("SYSLOG_IDENTIFIER", "PRIORITY", "LOGGER", "PUPPET_SOURCE", "_SYSTEMD_UNIT")}
    assert fields == {
        "SYSLOG_IDENTIFIER": "puppet-master",
        "PRIORITY": "5",
        "LOGGER": "puppet.compiler",
        "PUPPET_SOURCE": "Puppet",
        "_SYSTEMD_UNIT": MASTER,
    }
    same = master.shell(f"journalctl --output=cat --no-pager PUPPET_REQUEST={entry['PUPPET_REQUEST']}").splitlines()
    assert entry["MESSAGE"] in same
    assert {each["SYSLOG_IDENTIFIER"] for each in journal(master, "puppet-agent-run.service")} == {"puppet-agent"}


def test_a_master_that_was_killed_is_started_again(master: Booted) -> None:
    pid = shown(master, MASTER, "MainPID")["MainPID"]
    restarts = int(shown(master, MASTER, "NRestarts")["NRestarts"])
    master.shell("systemctl kill --signal=KILL puppet-master")
    until(master, MASTER, ActiveState="active", SubState="running", NRestarts=str(restarts + 1))
    assert shown(master, MASTER, "MainPID")["MainPID"] != pid
    master.shell("systemctl start puppet-agent-run.service")


def notified(machine: Booted) -> float:
    """When the master last told systemd's watchdog that it lives, in seconds of the machine's clock."""
    return int(shown(machine, MASTER, "WatchdogTimestampMonotonic")["WatchdogTimestampMonotonic"]) / 1e6


def test_a_master_that_stands_still_is_found_by_the_watchdog(master: Booted) -> None:
    said = "ExecStopPost=/bin/sh -c 'echo $$SERVICE_RESULT > /run/puppet/result'\n"
    drop_in(master, MASTER, f"[Service]\nWatchdogSec={WATCHDOG}\nTimeoutAbortSec=1\n{said}")
    master.shell("systemctl restart puppet-master")
    pid = shown(master, MASTER, "MainPID")["MainPID"]
    first, deadline = notified(master), time.monotonic() + WAIT
    while notified(master) - first <= WATCHDOG:
        assert time.monotonic() < deadline, messages(master)
        time.sleep(0.2)
    assert shown(master, MASTER, "MainPID", "NRestarts") == {"MainPID": pid, "NRestarts": "0"}
    master.shell(f"kill -STOP {pid}")
    until(master, MASTER, ActiveState="active", SubState="running", NRestarts="1")
    assert master.path("/run/puppet/result").read_text() == "watchdog\n"


def test_a_stop_gives_what_is_under_way_its_time_and_ends_with_0(master: Booted) -> None:
    site = master.path("/etc/puppet/code/environments/production/manifests/site.pp")
    site.write_text(SLOW)
    try:
        master.shell("systemctl enable --quiet puppet-master")  # systemd forgets how a unit ended that nothing names
        master.shell("rm -f /var/lib/puppet/begun; systemctl reload puppet-master; systemctl start --no-block puppet-agent-run.service")
        deadline = time.monotonic() + WAIT
        while not master.path("/var/lib/puppet/begun").exists():
            assert time.monotonic() < deadline, messages(master)
            time.sleep(0.05)
        master.shell("systemctl stop puppet-master")
    finally:
        site.write_text(SITE)
    until(master, MASTER, ActiveState="inactive", Result="success", ExecMainCode="1", ExecMainStatus="0")
    lines = messages(master)
    stopping = max(number for number, line in enumerate(lines) if line == "Caught SIGTERM; stopping")
    assert any(line.startswith("Compiled catalog for node1") for line in lines[stopping:])
    until(master, "puppet-agent-run.service", SubState="dead")  # it has its catalog, and could not send its report
    assert not [line for line in lines if "Traceback" in line]


def test_the_package_goes_while_its_master_runs(master: Booted) -> None:
    master.shell("dpkg --purge bunraku")
    assert master.run("systemctl", "is-active", MASTER).stdout != "active\n"
    assert "puppet" not in master.shell("cat /proc/[0-9]*/comm")
    assert not master.path("/usr/lib/bunraku").exists()

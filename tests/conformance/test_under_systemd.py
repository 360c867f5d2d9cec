"""
Services of a real systemd: what a run makes of units, by systemd's own word and beside what Debian's puppet does on the same machine.

`make image` builds the image and lays systemd's packages into it; see `booted.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance.booted import CHECKOUT, Booted, remove, why_not
from tests.conformance.test_sandbox import IMAGE, QUOTED
from tests.support.smoke import with_smoke

pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.skipif(bool(why_not()), reason=why_not())]

# Each case begins with these units, stopped and disabled, as they stand here.
UNITS = {
    "web.service": "[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=multi-user.target\n",
    "broken.service": "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo it cannot be; exit 3'\n[Install]\nWantedBy=multi-user.target\n",
    "fixed.service": "[Service]\nExecStart=/bin/sleep 1000\n",
    "each@.service": "[Service]\nExecStart=/bin/sleep 100%i\n[Install]\nWantedBy=multi-user.target\nDefaultInstance=9\n",
    "often.timer": "[Timer]\nOnBootSec=1h\nUnit=fixed.service\n[Install]\nWantedBy=timers.target\n",
    "main.service": "[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=multi-user.target\nAlias=other.service\n",
}
SHOWN = ("ActiveState", "UnitFileState", "LoadState", "NeedDaemonReload")
FRESH = """
systemctl stop web broken fixed 'each@*' often.timer main nothing 2>/dev/null || true
systemctl unmask --quiet web.service fixed.service each@7.service often.timer main.service nothing.service 2>/dev/null || true
systemctl disable --quiet web broken each@.service each@7 each@9 often.timer main 2>/dev/null || true
systemctl reset-failed
rm -rf /srv/was /etc/systemd/system/web.service; mkdir -p /srv/was
"""


@dataclass(frozen=True)
class Case:
    """
    `before`: a shell script; `manifest` is applied twice; `codes`: how the two runs end; `shown`: what systemd says then of
    the unit (see SHOWN); `answer`: what the command `ask` prints.
    """

    unit: str
    manifest: str
    shown: str
    before: str = ""
    codes: tuple[int, int] = (2, 0)
    ask: str = "true"
    answer: str = ""


CHANGED = "sed 's/1000/2000/' /lib/systemd/system/web.service > /srv/was/new"
NEW_FILE = "file { '/lib/systemd/system/web.service': source => '/srv/was/new' }"
CASES = {
    "running and enabled": Case("web", "service { 'web': ensure => running, enable => true }", "active enabled loaded no"),
    "running, and enabling left alone": Case("web", "service { 'web': ensure => running }", "active disabled loaded no"),
    "stopped and disabled": Case(
        "web", "service { 'web': ensure => stopped, enable => false }", "inactive disabled loaded no", "systemctl enable --now --quiet web"
    ),
    "stopped but enabled": Case("web", "service { 'web': ensure => stopped, enable => true }", "inactive enabled loaded no"),
    "named with its suffix": Case("web", "service { 'web.service': ensure => running, enable => true }", "active enabled loaded no"),
    "masked while it runs": Case(
        "web", "service { 'web': ensure => stopped, enable => mask }", "inactive masked masked no", "systemctl start web"
    ),
    "masked, and running left alone": Case("web", "service { 'web': enable => mask }", "inactive masked masked no"),
    "masked where a file of its own is in the way": Case(
        "web",
        "service { 'web': enable => mask }",
        "inactive disabled loaded no",
        "cp /lib/systemd/system/web.service /etc/systemd/system/; systemctl daemon-reload",
        codes=(4, 4),
    ),
    "masked before it exists": Case("nothing", "service { 'nothing': enable => mask }", "inactive masked masked no"),
    "unmasked to be enabled": Case("web", "service { 'web': enable => true }", "inactive enabled loaded no", "systemctl mask --quiet web"),
    "unmasked to run": Case("web", "service { 'web': ensure => running }", "active disabled loaded no", "systemctl mask --quiet web"),
    "masked counts as disabled": Case(
        "web", "service { 'web': enable => false }", "inactive masked masked no", "systemctl mask --quiet web", (0, 0)
    ),
    "a static unit cannot be enabled": Case("fixed", "service { 'fixed': ensure => running, enable => true }", "active static loaded no"),
    "a static unit cannot be disabled": Case("fixed", "service { 'fixed': enable => false }", "inactive static loaded no", codes=(0, 0)),
    "an instance of a template": Case("each@7", "service { 'each@7': ensure => running, enable => true }", "active enabled loaded no"),
    "a template, which is indirect": Case(
        "each@9", "service { 'each@': enable => true }", "inactive enabled loaded no", "systemctl enable --quiet each@9", (0, 0)
    ),
    "a timer": Case("often.timer", "service { 'often.timer': ensure => running, enable => true }", "active enabled loaded no"),
    "by an alias": Case("main", "service { 'other': ensure => running }", "active enabled loaded no", "systemctl enable --quiet main"),
    "a unit that does not start": Case("broken", "service { 'broken': ensure => running }", "failed disabled loaded no", codes=(4, 4)),
    "a unit that is not there": Case("nothing", "service { 'nothing': ensure => running }", "inactive  not-found no", codes=(4, 4)),
    "a unit that is not there, stopped": Case(
        "nothing", "service { 'nothing': ensure => stopped, enable => false }", "inactive  not-found no", codes=(0, 0)
    ),
    "refreshed while it runs": Case(
        "web",
        "exec { '/bin/touch /srv/was/here': creates => '/srv/was/here', notify => Service['web'] } service { 'web': ensure => running }",
        "active disabled loaded no",
        "systemctl start web; systemctl show --property=MainPID web > /srv/was/id",
        ask="systemctl show --property=MainPID web | cmp -s - /srv/was/id || echo another process",
        answer="another process\n",
    ),
    "refreshed while it is stopped": Case(
        "web",
        "exec { '/bin/touch /srv/was/here': creates => '/srv/was/here', notify => Service['web'] } service { 'web': ensure => stopped }",
        "inactive disabled loaded no",
    ),
    "a changed unit file and a restart": Case(
        "web",
        NEW_FILE + " ~> service { 'web': ensure => running }",
        "active disabled loaded no",
        f"systemctl start web; {CHANGED}",
        ask="tr '\\0' ' ' < /proc/$(systemctl show --property=MainPID --value web)/cmdline",
        answer="/bin/sleep 2000 ",
    ),
    "a changed unit file and a first start": Case(
        "web",
        NEW_FILE + " -> service { 'web': ensure => running }",
        "active disabled loaded no",
        f"systemctl cat web > /dev/null; systemctl show web > /dev/null; {CHANGED}",
        ask="tr '\\0' ' ' < /proc/$(systemctl show --property=MainPID --value web)/cmdline",
        answer="/bin/sleep 2000 ",
    ),
    "restarted by a command of its own": Case(
        "web",
        "exec { '/bin/touch /srv/was/here': creates => '/srv/was/here', notify => Service['web'] }"
        " service { 'web': ensure => running, restart => '/bin/touch /srv/was/restarted' }",
        "active disabled loaded no",
        "systemctl start web",
        ask="ls /srv/was",
        answer="here\nrestarted\n",
    ),
}
# What need not be the same: how long it took, facts of a network that is not there, the journal's lines, why a command failed.
NOISE = re.compile(
    r"^(Notice: (Compiled|Applied) catalog .*|Warning: Could not retrieve either serverip .*|[A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d .*)\n",
    re.MULTILINE,
)
WHY = re.compile(r"(Could not (?:mask|unmask|enable|disable) \S+: ).*")


def outcome(machine: Booted, puppet: Any, case: Case, *, runs: int = 1) -> dict[str, Any]:
    """So many runs from a fresh start: how they ended, what the first said, and what systemd says after the last."""
    machine.shell(FRESH)
    for name, text in UNITS.items():
        machine.path(f"/lib/systemd/system/{name}").write_text(text)
    machine.path("/srv/site.pp").write_text(case.manifest)
    machine.shell(f"systemctl daemon-reload; {case.before}")
    words = ("apply", "--detailed-exitcodes", "--color=false", "--confdir=/srv/conf", "--vardir=/srv/var", "/srv/site.pp")
    done = [puppet(*words) for _ in range(runs)]
    print(*(run.stdout for run in done), sep="\n")  # for whoever reads a failure
    said = [WHY.sub(r"\1", QUOTED.sub(r"\1", line)) for line in NOISE.sub("", done[0].stdout).splitlines()]
    shown = dict(line.split("=", 1) for line in machine.shell(f"systemctl show --property={','.join(SHOWN)} {case.unit}").splitlines())
    return {
        "codes": tuple(run.returncode for run in done),
        "said": said,
        "shown": " ".join(shown.get(each, "") for each in SHOWN),
        "answer": machine.run("sh", "-c", case.ask).stdout,
    }


@pytest.mark.parametrize("name", with_smoke(CASES, "running and enabled", "masked while it runs"))
def test_a_unit_is_brought_into_its_state_as_the_real_puppet_does_it(name: str, machine: Booted) -> None:
    case = CASES[name]
    ours = outcome(machine, machine.ours, case, runs=2)
    assert (ours["codes"], ours["shown"], ours["answer"]) == (case.codes, case.shown, case.answer), ours["said"]
    assert ours | {"codes": case.codes[:1]} == outcome(machine, machine.real, case)


def listed(done: Any) -> Mapping[str, Any]:
    assert done.returncode == 0, done.stdout
    found: Mapping[str, Any] = yaml.safe_load(done.stdout)["service"]
    return found


def test_all_services_are_listed_as_the_real_puppet_and_systemd_list_them(machine: Booted) -> None:
    machine.shell(FRESH + "systemctl daemon-reload; systemctl enable --now --quiet web; systemctl mask --quiet main")
    words = ("resource", "service", "--to_yaml")
    ours = listed(machine.ours(*words))
    assert ours == listed(machine.real(*words))
    states = dict(line.split()[:2] for line in machine.shell("systemctl list-unit-files --type service --no-legend").splitlines())
    enabled = [name for name, state in states.items() if state == "enabled"]
    assert "web.service" in enabled
    assert {ours[name]["enable"] for name in enabled} == {"true"}
    active = {
        line.split()[0] for line in machine.shell("systemctl list-units --type service --state active --plain --no-legend").splitlines()
    }
    assert {name for name in states if ours.get(name, {}).get("ensure") == "running"} == active & set(ours)


@pytest.mark.parametrize("name", ["web", "web.service", "fixed", "often.timer", "each@7", "main", "nothing"])
def test_one_service_is_read_as_the_real_puppet_reads_it(name: str, machine: Booted) -> None:
    machine.shell(FRESH + "systemctl daemon-reload; systemctl enable --now --quiet web often.timer; systemctl mask --quiet main")
    ours, real = (listed(puppet("resource", "service", name, "--to_yaml")) for puppet in (machine.ours, machine.real))
    assert ours == real


@pytest.mark.usefixtures("machine")
def test_a_machine_leaves_no_process_no_folder_and_no_control_group() -> None:
    with Booted(IMAGE) as booted:
        ids = booted.processes()
        place = booted.place
        assert len(ids) > 2
        assert Path(f"/proc/{ids[0]}").exists()
    assert not [each for each in ids if Path(f"/proc/{each}").exists()]
    assert not place.exists()
    assert place.name not in groups()


@pytest.mark.usefixtures("machine")
def test_a_machine_ends_with_the_process_that_made_it() -> None:
    script = "import sys; from pathlib import Path; from tests.conformance.booted import Booted\n"
    script += "with Booted(Path(sys.argv[1])) as booted: print(booted.place, *booted.processes(), flush=True); sys.stdin.read()"
    words = [sys.executable, "-c", script, str(IMAGE)]
    maker = subprocess.Popen(words, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    assert maker.stdout is not None
    place, *ids = maker.stdout.readline().split()
    maker.kill()
    maker.communicate()
    for _ in range(100):
        left = [each for each in ids if Path(f"/proc/{each}").exists()]
        if not left:
            break
        time.sleep(0.1)
    remove(Path(place))
    assert ids
    assert not left


def groups() -> list[str]:
    """The names of this machine's control groups, as far as they are mounted."""
    mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if line.split()[2] == "cgroup2"]
    return [each.name for folder in mounted for each in Path(folder).iterdir()]

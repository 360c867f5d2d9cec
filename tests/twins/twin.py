"""One of the twins: a booted Debian to which a use is applied, and what is compared of it afterwards."""

from __future__ import annotations

import base64
import json
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from shared.data import plainyaml
from shared.models.report import Report
from tests.conformance import booted
from tests.conformance.booted import Booted
from tests.conformance.sandbox import CHECKOUT, OURS
from tests.conformance.test_apply import COUNTS, FLAGS, FRAME, OWN, TOLD
from tests.conformance.test_sandbox import IMAGE
from tests.gate import caches
from tests.twins.use import Use

LAYER = caches.folder("twins-image")
RUN_SECONDS = 900.0  # the most that one run of a use may take: a server is installed and started in it
OWN_FOLDER = "/srv/twins"
REPORT = f"{OWN_FOLDER}/report.yaml"
PROGRAMS = {"theirs": ("puppet",), "ours": (sys.executable, "-m", "bunraku.puppet")}
WORDS = (
    *("apply", "--modulepath=/usr/share/puppet/modules", "--detailed-exitcodes", "--color=false", f"--lastrunreport={REPORT}"),
    f"{OWN_FOLDER}/use.pp",
)
_RUBY = "/usr/lib/ruby/vendor_ruby"
THEIR_PROGRAMS = f"/usr/bin/puppet /usr/bin/facter {_RUBY}/facter* {_RUBY}/hiera* {_RUBY}/puppet*"  # ours has Ruby alone, none of these
HOSTS = "127.0.0.1 localhost\n127.0.1.1 node1.example.com node1\n"
# What a run says of the time of day, of its own duration and of processes is another in each run.
VARYING = (
    (re.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?( ?(UTC|Z|[+-]\d\d:?\d\d))?"), "<time>"),
    (re.compile(r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d (UTC )?\d{4}"), "<time>"),
    (re.compile(r"(?<=\w)\d{8}-\d+-[a-z0-9]{4,8}(?=\.lock\b|\W|$)"), "<temp>"),
    (re.compile(r"\b\d+\.\d+ ?(s|seconds)\b"), "<seconds>"),
)
# The options of a package manager and what it prints need not be the same; what the journal of a service says has times and processes.
QUOTED = re.compile(r"(Execution of '/usr/bin/apt-get -q -y|journalctl log for \S+:).*", re.DOTALL)
SOURCE_LINE = re.compile(r"\n\n +.*\n +\^+")  # Ruby 3.1 adds the line to messages of its own errors; with ours they are without
DIGEST_AS_BINARY = base64.b64encode(b"{sha25").decode()  # how a digest begins as the reference writes some that are no Unicode for it


def why_not() -> str:
    """Return why no twins can be made here; '' when it can be tried."""
    if why := booted.why_not():
        return why
    return "" if (LAYER / "srv/twins/repo/Packages").exists() else "there is nothing here that twins boot from; `make twins-image` makes it"


def scrub(value: Any) -> Any:
    """Return a value of a report without what is another in each run."""
    if isinstance(value, str):
        if value.startswith(DIGEST_AS_BINARY):
            value = base64.b64decode(value).decode()
        for pattern, word in (*VARYING, (SOURCE_LINE, ""), (QUOTED, r"\1")):
            value = pattern.sub(word, value)
    return value


@contextmanager
def twin(use: Use, who: str) -> Iterator[Booted]:
    """A booted twin on which everything is as it has to be before the first run of a use."""
    with Booted(LAYER, IMAGE) as machine:
        machine.path("/etc/hosts").write_text(HOSTS)
        machine.path("/etc/hostname").write_text("node1\n")
        machine.shell("hostname node1")
        machine.path(f"{OWN_FOLDER}/use.pp").write_text(use.manifest)
        shutil.copy(Path(__file__).parent / "look.py", machine.path(f"{OWN_FOLDER}/look.py"))
        if use.before:
            machine.shell(use.before)
        if who == "ours":
            machine.shell(f"rm -r {THEIR_PROGRAMS}")
        machine.path(f"{OWN_FOLDER}/stamp").touch()
        yield machine


def answer(use: Use, who: str) -> dict[str, Any]:
    """Boot a twin, apply the use to it twice and return all that is compared: the runs, files, packages, units and answers."""
    with twin(use, who) as machine:
        runs = [applied(machine, PROGRAMS[who])]
        if use.between:
            machine.shell(use.between)
        runs.append(applied(machine, PROGRAMS[who]))
        return {"runs": runs} | state(machine) | {"asked": {line: scrub(machine.run("sh", "-c", line).stdout) for line in use.ask}}


def applied(machine: Booted, program: tuple[str, ...]) -> dict[str, Any]:
    """Apply the use once and return what the report says of it, or what was printed when there is none."""
    report = machine.path(REPORT)
    report.unlink(missing_ok=True)
    done = machine.run(*program, *WORDS, env=OURS if program != PROGRAMS["theirs"] else None, seconds=RUN_SECONDS)
    if not report.exists():
        return {"exit": done.returncode, "printed": done.stdout}
    return {"exit": done.returncode} | told(Report.from_data(plainyaml.loads(report.read_bytes()))) | {"printed": done.stdout}


def told(report: Report) -> dict[str, Any]:
    """Return what is compared of a report."""
    resources: dict[str, Any] = {}
    for ref, status in report.resource_statuses.items():
        entry: dict[str, Any] = {flag: True for flag in FLAGS if getattr(status, flag)}
        events = [{name: scrub(getattr(event, name)) for name in TOLD} for event in status.events]
        if events:
            entry["events"] = events
        if not OWN.fullmatch(ref):
            resources[scrub(ref)] = entry
    counts = {name: report.metrics["resources"].number(name) for name in COUNTS} if "resources" in report.metrics else {}
    lines = list(report.logs)
    compiled = [number for number, line in enumerate(lines) if line.message.startswith("Compiled catalog for ")]
    lines = lines[compiled[0] + 1 :] if compiled else lines  # the reference's report begins after the catalog
    logs = [[line.level, scrub(line.source), scrub(line.message)] for line in lines if not FRAME.match(line.message)]
    counted = {name: number for name, number in counts.items() if number and name != "skipped"}
    return {"status": report.status, "counts": counted, "resources": resources, "logs": logs}


def state(machine: Booted) -> dict[str, Any]:
    """Return what the runs have left: changed files, packages with their states, unit files, and services as they run."""
    files = machine.run(
        "/usr/bin/python3", f"{OWN_FOLDER}/look.py", f"{OWN_FOLDER}/stamp", str(CHECKOUT), str(Path(sys.prefix)), str(Path(sys.base_prefix))
    )
    units = machine.shell("systemctl list-unit-files --no-legend --no-pager --plain | awk '{print $1, $2}'").splitlines()
    services = "systemctl list-units --all --type=service,socket,timer --no-legend --no-pager --plain | awk '{print $1, $3, $4}'"
    return {
        "files": {path: _without_times(entry) for path, entry in json.loads(files.stdout).items()},
        "packages": machine.shell("dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n'").splitlines(),
        "units": units,
        "services": machine.shell(services).splitlines(),
    }


def _without_times(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a file's entry by which a file with another time in its text is the same."""
    text = scrub(entry.get("text", ""))
    return entry if text == entry.get("text", "") else entry | {"text": text, "sha256": sha256(text.encode()).hexdigest()}

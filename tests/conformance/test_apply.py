"""
The recorded cases of `puppet apply`: a starting state and a manifest, then report, logs and state afterwards.

What is compared: exit code, status, counts, each resource's flags and events, the logs in order, and the state. The cases
and their format are in `apply/`; DEVIATIONS names those where we knowingly answer otherwise.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import subprocess
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from grp import getgrgid
from hashlib import sha256
from pathlib import Path
from pwd import getpwuid
from typing import Any

import pytest
import yaml

from agent.providers import ProviderRun, builtin_providers
from agent.providers.file.context import FileContext
from agent.servers.dipper import bucket_factory
from agent.servers.sources import LocalSources
from agent.state.runlog import RunLog
from agent.state.statefiles import StateFile
from agent.transaction.context import ApplyContext
from agent.transaction.run import apply_catalog
from agent.transaction.summary import ReportHeader, report_of
from environments.directories import Environment
from environments.directory_environment import DirectoryEnvironment
from environments.files.code_files import DiskFiles
from language.codegen.codecache import CodeCache
from language.evaluation.compile import compile_catalog
from language.evaluation.runtime import NAMES
from language.host import NodeInput
from language.loading.builtins import all_functions
from language.loading.loader import Loader
from language.log import LogEntry
from shared.errors import PuppetError
from shared.models.catalog import Catalog
from shared.models.report import Report
from shared.ral import Platform, Providers
from shared.ral.catalog import resources_of
from shared.types import KNOWN, builtin_types
from shared.types.filebucket import Filebucket
from shared.types.schedule import default_schedules
from tests.support.needs import needs_root

pytestmark = pytest.mark.works_with("Commands and answers of Puppet 7.23", "runs with recorded logs and reports")

FOLDER = Path(__file__).parent / "apply"
FLAGS = ("changed", "out_of_sync", "failed", "failed_to_restart", "skipped", "restarted", "corrective_change")
COUNTS = ("changed", "failed", "failed_to_restart", "out_of_sync", "restarted", "scheduled", "skipped")
TOLD = ("name", "property", "previous_value", "desired_value", "status", "message")
OWN = re.compile(r"(Schedule\[(puppet|hourly|daily|weekly|monthly|never)\]|Filebucket\[puppet\])")
FRAME = re.compile(r"(Applying configuration version |Creating state file |Applied catalog in )")
FACTS = {"os": {"name": "Debian", "family": "Debian"}, "kernel": "Linux", "hostname": "node1", "fqdn": "node1.example.com"}
SMALL = 4096  # bytes of a file whose content is compared as text
DEVIATIONS = {line.split(":", 1)[0]: line for line in (FOLDER / "deviations.txt").read_text().splitlines() if line and line[0] != "#"}

Compile = Callable[[str, Path, RunLog], Catalog]


def cases() -> list[Any]:
    found = []
    for path in sorted(FOLDER.glob("*.yaml")):
        expected = json.loads((FOLDER / f"{path.stem}.expected.json").read_text())
        found += [
            pytest.param(case, expected[case["id"]], id=f"{path.stem}:{case['id']}")
            for case in yaml.load(path.read_text(), yaml.CSafeLoader)
            if not case.get("sandbox")
        ]
    return found


@dataclass
class Scratch:
    """The folders of one case."""

    base: Path
    outputs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("root", "conf", "var"):
            (self.base / name).mkdir()
        self.base.chmod(0o755)

    @property
    def root(self) -> Path:
        return self.base / "root"

    def shell(self, script: str) -> str:
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root", "TZ": "UTC"}
        done = subprocess.run(
            ["/bin/sh", "-ec", script.replace("@ROOT@", str(self.root))],
            cwd=self.root,
            env=environment,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.decode(errors="replace")

    def scrub(self, text: Any) -> Any:
        if not isinstance(text, str):
            return text
        for path, name in (
            (f"{self.base}/site.pp", "<manifest>"),
            (str(self.root), "<root>"),
            (f"{self.base}/conf", "<conf>"),
            (f"{self.base}/var", "<var>"),
        ):
            text = text.replace(path, name)
        text = re.sub(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?( ?(UTC|Z|[+-]\d\d:?\d\d))?", "<time>", text)
        return re.sub(r"(?<=\w)\d{8}-\d+-[a-z0-9]{4,8}(?=\.lock\b|\W|$)", "<temp>", text)

    def inspect(self, path: str) -> dict[str, Any]:
        full = Path(path) if path.startswith("/") else self.root / path
        try:
            info = full.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return {"type": "absent"}
        found = {"type": "other", "mode": f"{stat.S_IMODE(info.st_mode):04o}", "owner": owner(info.st_uid), "group": group(info.st_gid)}
        if stat.S_ISLNK(info.st_mode):
            return {"type": "link", "target": self.scrub(str(full.readlink()))}
        if stat.S_ISDIR(info.st_mode):
            return found | {"type": "directory", "entries": sorted(each.name for each in full.iterdir())}
        if stat.S_ISFIFO(info.st_mode):
            return found | {"type": "fifo"}
        data = full.read_bytes()
        found |= {"type": "file", "size": len(data)}
        try:
            if len(data) > SMALL:
                return found | {"sha256": sha256(data).hexdigest()}
            text = data.decode()
        except UnicodeDecodeError:
            return found | {"sha256": sha256(data).hexdigest()}
        if self.scrub(text) != text:
            del found["size"]
        return found | {"content": self.scrub(text)}


def owner(uid: int) -> str:
    try:
        return getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def group(gid: int) -> str:
    try:
        return getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def told(report: Report, scratch: Scratch) -> dict[str, Any]:
    """What is compared of a report."""
    counts = {name: report.metrics["resources"].number(name) for name in COUNTS}
    resources: dict[str, Any] = {}
    for ref, status in report.resource_statuses.items():
        entry: dict[str, Any] = {flag: True for flag in FLAGS if getattr(status, flag) and flag != "restarted"}
        happened = []
        for event in status.events:
            data = {name: scratch.scrub(getattr(event, name)) for name in TOLD}
            data |= {flag: True for flag in ("audited", "corrective_change", "redacted") if getattr(event, flag)}
            data["historical_value"] = scratch.scrub(event.historical_value)
            happened.append({key: value for key, value in data.items() if value is not None})
        if happened:
            entry["events"] = happened
        if not OWN.fullmatch(ref):
            resources[scratch.scrub(ref)] = entry
        elif entry == {"skipped": True}:
            counts["skipped"] -= 1
        elif entry:
            resources[ref] = entry
    events = {name: number for name, _, number in report.metrics["events"].values if number}
    return {
        "status": report.status,
        "noop_pending": report.noop_pending,
        "counts": {name: number for name, number in counts.items() if number},
        "events": events,
        "resources": resources,
    }


class ModuleSources(LocalSources):
    """Files of modules, which `apply` takes from the disk."""

    def __init__(self, modules: Path) -> None:
        self.modules = modules

    def local(self, source: str) -> str:
        found = re.fullmatch(r"puppet:///modules/([^/]+)/(.*)", source)
        return f"file:{self.modules}/{found[1]}/files/{found[2]}" if found else source

    async def metadata(self, source: str, wanted: Any) -> Any:
        return await super().metadata(self.local(source), wanted)

    async def search(self, source: str, wanted: Any) -> Any:
        return await super().search(self.local(source), wanted)

    async def content(self, source: str, metadata: Any) -> AsyncIterator[bytes]:
        async for chunk in super().content(self.local(source), metadata):
            yield chunk


async def applied(case: dict[str, Any], manifest: str, scratch: Scratch, compile_: Compile) -> dict[str, Any]:
    """One run, as the oracle records it."""
    arguments = [str(each).replace("@ROOT@", str(scratch.root)) for each in case.get("args", [])]
    noop = bool(case.get("noop")) or "--noop" in arguments
    option = {name: arguments[at + 1] for at, name in enumerate(arguments[:-1]) if name in ("--tags", "--skip_tags")}
    log = RunLog(level="info")
    try:
        catalog = compile_(manifest, scratch.base, log)
        bucket = Filebucket("puppet", {"path": str(scratch.base / "var/clientbucket")})
        resources = resources_of(catalog, builtin_types(), known=frozenset(KNOWN), defaults=[*default_schedules(), bucket], resolve=resolve)
    except PuppetError as err:
        log.err(str(err))
        return {"exit": 1, "logs": logs_of(log, scratch)}
    started = datetime.now(UTC)
    say = log.log
    dippers = bucket_factory(scratch.base / "var/clientbucket", report=lambda level, message: say(level, message))
    files = FileContext(ModuleSources(scratch.root / "modules"), dippers, log, show_diff=True)
    context = ApplyContext(
        log=log,
        providers=Providers(builtin_providers(ProviderRun(log, lambda: files)), Platform(features=frozenset({"posix", "root"}))),
        state=StateFile(scratch.base / "var/state.yaml"),
        noop=noop,
        tags=tuple(filter(None, option.get("--tags", "").split(","))),
        skip_tags=tuple(filter(None, option.get("--skip_tags", "").split(","))),
        ignore_schedules="--ignoreschedules" in arguments,
    )
    done = await apply_catalog(resources, context)
    run = ReportHeader("node1.example.com", started, "production", "7.23.0", noop=noop)
    report = report_of(run, log, done)
    code = 1 if done.error else report.exit_bits
    return {"exit": code} | told(report, scratch) | {"logs": logs_of(log, scratch)}


def resolve(deferred: Any) -> Any:
    """The few functions that the cases defer."""
    arguments = deferred.arguments
    if deferred.name == "sprintf":
        return arguments[0] % tuple(arguments[1:])
    if deferred.name == "upcase":
        return arguments[0].upper()
    if deferred.name == "inline_epp":
        return "2"
    raise PuppetError(f"Unknown function '{deferred.name}'")


def logs_of(log: RunLog, scratch: Scratch) -> list[list[str]]:
    return [[line.level, scratch.scrub(line.source), scratch.scrub(line.message)] for line in log.lines if not FRAME.match(line.message)]


QUOTED = re.compile(r"(No such file or directory|Is a directory|Not a directory|Permission denied|File exists) [-@].*", re.DOTALL)

COMPILING = re.compile(r" \(file: [^()]*, line: \d+, column: \d+\)( on node \S+)?$")


def without_hints(run: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """A run without what we say beyond the reference's messages: what to try, on lines of its own below an error."""
    if any(level == "err" and "\n" in message for level, _, message in wanted.get("logs", ())):
        return run
    logs = [[level, source, message.partition("\n")[0] if level == "err" else message] for level, source, message in run["logs"]]
    return run | {"logs": logs}


REASON = re.compile("(?:Could not evaluate|Failed to apply catalog): ")


def as_refusal(run: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """
    A run as the reference answers it when one resource of the catalog cannot be made: it then applies nothing and reports nothing.

    Ours fails this resource with the same reason, or refuses the catalog with it.
    """
    if wanted["exit"] != 1 or "resources" in wanted:
        return run
    reasons = [REASON.split(message)[-1] for level, _, message in run["logs"] if level == "err" and REASON.search(message)]
    return {"exit": 1, "logs": [["err", "Puppet", reasons[0]]]} if any(reasons) else run


def comparable(run: dict[str, Any]) -> dict[str, Any]:
    """A run without what need not be the same: what a diff says before its first `@@`, what follows a quoted exception of Ruby's."""

    def text(message: str) -> str:
        if "\n@@ " in message:
            return message[message.index("\n@@ ") :]
        if message.startswith("\nBinary files "):
            return "\nBinary files differ"
        message = COMPILING.sub("", message)
        return QUOTED.sub(r"\1", message)

    kept = dict(run)
    kept["logs"] = [[level, source, text(message)] for level, source, message in run["logs"]]
    for entry in kept.get("resources", {}).values():
        entry.pop("restarted", None)
        for event in entry.get("events", ()):
            event["message"] = text(event["message"])
    return kept


async def record(case: dict[str, Any], scratch: Scratch, compile_: Compile) -> dict[str, Any]:
    """All runs of a case, and the state afterwards."""
    if case.get("setup"):
        await asyncio.to_thread(scratch.shell, case["setup"])
    manifests = case.get("manifests") or [case["manifest"]] * case.get("runs", 1)
    runs = []
    for number, manifest in enumerate(manifests):
        if number and case.get("between"):
            await asyncio.to_thread(scratch.shell, case["between"])
        runs.append(await applied(case, manifest.replace("@ROOT@", str(scratch.root)), scratch, compile_))
    answer: dict[str, Any] = {"runs": [comparable(run) for run in runs]}
    if case.get("inspect"):
        answer["state"] = {path: scratch.inspect(path) for path in case["inspect"]}
    return answer


class Compiler:
    """Compiles a case's manifest from the disk, as `apply` does."""

    def __init__(self) -> None:
        self.cache = CodeCache()
        self.functions = all_functions()

    def __call__(self, manifest: str, base: Path, log: RunLog) -> Catalog:
        (base / "site.pp").write_text(manifest)
        settings = {"strict": "warning", "strict_variables": True, "storeconfigs": False, "environment": "production"}
        world = DirectoryEnvironment(
            Environment("production", str(base), (str(base / "root/modules"),), str(base / "site.pp")), DiskFiles(), settings=settings
        )
        node = NodeInput("node1.example.com", facts=FACTS, parameters=FACTS | {"clientcert": "node1.example.com"})

        def say(entry: LogEntry) -> None:
            log.log(entry.level, entry.text)

        loader = Loader(
            world,
            NAMES,
            self.cache,
            log=lambda level, finding: say(LogEntry(level, finding.message, finding.where)),
            builtins=self.functions,
        )
        return Catalog.from_data(compile_catalog(world, loader, node, version=1, log=say))


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return Compiler()


@pytest.mark.slow
@needs_root
@pytest.mark.parametrize(("case", "wanted"), cases())
async def test_apply_answers_as_recorded(
    case: dict[str, Any], wanted: dict[str, Any], compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    tmp_path.chmod(0o755)
    old = os.umask(0o022)
    try:
        got = await record(case, Scratch(tmp_path), compiler)
    finally:
        os.umask(old)
    expected: dict[str, Any] = {"runs": [comparable(run) for run in wanted["runs"]]}
    got["runs"] = [comparable(as_refusal(without_hints(run, other), other)) for run, other in zip(got["runs"], wanted["runs"], strict=True)]
    if "state" in wanted:
        expected["state"] = wanted["state"]
    if case["id"] in DEVIATIONS:
        assert got != expected, f"{case['id']} is answered as recorded now: take it out of deviations.txt"
    else:
        assert got == expected

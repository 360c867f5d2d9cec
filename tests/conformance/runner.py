"""
Holds the compiler against recorded answers of the reference implementation.

    python -m tests.conformance CASES.yaml …     NAME: passed/total, and the ids that differ
    python -m tests.conformance --diff CASES.yaml
"""

from __future__ import annotations

import json
import re
import subprocess
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from environments.directories import EnvironmentSettings, read_environment
from environments.directory_environment import DirectoryEnvironment, EnvironmentServices
from environments.ruby import RubyProgram, RubySettings, find_ruby
from language.codegen.codecache import CodeCache
from language.evaluation.compile import compile_catalog
from language.evaluation.runtime import NAMES
from language.host import NodeInput
from language.loading.builtins import all_functions
from language.loading.loader import Loader
from language.log import LogEntry
from shared.errors import PuppetError
from tests.support.memory_files import MemoryFiles

FACTS: dict[str, Any] = {
    "os": {
        "name": "Debian",
        "family": "Debian",
        "architecture": "amd64",
        "release": {"full": "12.5", "major": "12", "minor": "5"},
        "distro": {"codename": "bookworm", "id": "Debian"},
    },
    "networking": {"hostname": "node1", "domain": "example.com", "fqdn": "node1.example.com", "ip": "192.0.2.10"},
    "kernel": "Linux",
    "osfamily": "Debian",
    "operatingsystem": "Debian",
    "hostname": "node1",
    "fqdn": "node1.example.com",
    "domain": "example.com",
    "processors": {"count": 2},
    "memory": {"system": {"total_bytes": 4_294_967_296}},
    "is_virtual": True,
}
ROOT = "/<env>"
RUBY = RubyProgram(RubySettings(find_ruby("auto"))) if find_ruby("auto") else None
LEVELS = ("debug", "info", "notice", "warning", "err", "alert", "emerg", "crit")


def words_of_ruby_3() -> bool:
    """Whether there is a Ruby that words its errors, and shows hashes, as it did before 3.4."""
    if RUBY is None:
        return False
    asked = [RUBY.settings.program, "-e", "exit RUBY_VERSION.to_f < 3.4"]
    return subprocess.run(asked, check=False, timeout=60).returncode == 0


@dataclass
class Answer:
    """What a compilation gave, in the shape of the recordings."""

    data: dict[str, Any] = field(default_factory=dict)
    crash: str = ""


def answer(case: Mapping[str, Any], cache: CodeCache | None = None, ruby: RubyProgram | None = RUBY) -> Answer:
    """Compile one case in memory; `ruby` is None for a master that has no Ruby."""
    files = {f"{ROOT}/manifests/site.pp": case.get("manifest") or ""}
    files |= {f"{ROOT}/{path}": text for path, text in (case.get("files") or {}).items()}
    settings: dict[str, Any] = {
        "strict": "warning",
        "strict_variables": True,
        "storeconfigs": False,
        "environment": "production",
        "server": "puppet",
        "manifest": f"{ROOT}/manifests",
        "modulepath": f"{ROOT}/modules",
        "config_version": "",
        "environment_timeout": 0,
        "disable_per_environment_manifest": False,
        "certname": "oracle",
    }
    for name, value in (case.get("settings") or {}).items():
        settings[name] = value.replace("<env>", ROOT) if isinstance(value, str) else value
    memory = MemoryFiles(files)
    environment = read_environment("production", ROOT, memory, EnvironmentSettings(("/environments",)))
    world = DirectoryEnvironment(environment, memory, settings=settings, services=EnvironmentServices(ruby=ruby))
    name = case.get("node") or "node1.example.com"
    facts = {**FACTS, **(case.get("facts") or {})}
    classes = case.get("classes") or {}
    host, _, domain = name.partition(".")
    node = NodeInput(
        name,
        facts=facts,
        parameters={
            **facts,
            **(case.get("parameters") or {}),
            "serverversion": "7.23.0",
            "servername": "puppet",
            "serverip": "127.0.0.1",
            "clientcert": name,
        },
        classes=classes if isinstance(classes, dict) else dict.fromkeys(classes),
        trusted={
            "authenticated": "remote",
            "certname": name,
            "extensions": case.get("extensions") or {},
            "hostname": host,
            "domain": domain or None,
            "external": {},
        },
        server_facts={"serverversion": "7.23.0", "servername": "puppet", "serverip": "127.0.0.1", "environment": "production"},
    )
    logs: list[list[str]] = [
        [
            "warning",
            f"The node parameter '{key}' for node '{name}' was already set to '{value}'. It could not be set to '{facts[key]}'",
        ]
        for key, value in (case.get("parameters") or {}).items()
        if key in facts
    ]
    least = LEVELS.index(str(settings.get("log_level", "notice")))

    def log(entry: LogEntry) -> None:
        if LEVELS.index(entry.level) >= least:
            logs.append([entry.level, entry.text])

    loader = Loader(
        world,
        NAMES,
        cache or CodeCache(),
        log=lambda level, finding: log(LogEntry(level, finding.message, finding.where)),
        builtins=all_functions(),
    )
    result = Answer()
    try:
        catalog = compile_catalog(world, loader, node, version=1, log=log, rich=settings.get("rich_data") not in (False, "false"))
        for resource in catalog["resources"]:
            resource.pop("kind", None)
            resource["tags"] = sorted(resource["tags"])
        result.data = {
            "resources": catalog["resources"],
            "edges": [[edge["source"], edge["target"]] for edge in catalog["edges"]],
            "classes": catalog["classes"],
        }
    except PuppetError as error:
        result.data = {"error": str(error)}
    except Exception as error:
        result.data = {"error": f"CRASH {type(error).__name__}: {error}"}
        result.crash = traceback.format_exc()
    result.data["logs"] = logs
    result.data = json.loads(json.dumps(result.data, ensure_ascii=False).replace(ROOT, "<env>"))
    return result


_SUFFIX = re.compile(r" (\((?:file|line): [^()]*\)) on node \S+\Z")


def differs(case: Mapping[str, Any], wanted: Mapping[str, Any], got: Mapping[str, Any]) -> str:
    """Why an answer is not the recorded one; '' when it is."""
    if "error" in wanted:
        if "error" not in got:
            return f"no error; wanted {wanted['error']!r}"
        if case.get("compare") == "error-location":
            one, two = _SUFFIX.search(wanted["error"]), _SUFFIX.search(got["error"])
            if (one and one[1]) == (two and two[1]) and not got["error"].startswith("CRASH"):
                return ""
        if got["error"] != wanted["error"]:
            return f"\n  wanted {wanted['error']!r}\n  got    {got['error']!r}"
        return ""
    if "error" in got:
        return f"error: {got['error']}"
    for key in ("classes", "edges"):
        if wanted[key] != got[key]:
            return f"{key}\n  wanted {wanted[key]}\n  got    {got[key]}"
    named, found = [f"{r['type']}[{r['title']}]" for r in wanted["resources"]], [f"{r['type']}[{r['title']}]" for r in got["resources"]]
    if named != found:
        return f"resources\n  wanted {named}\n  got    {found}"
    for left, right in zip(wanted["resources"], got["resources"], strict=True):
        for key in sorted({*left, *right}):
            if json.dumps(left.get(key)) != json.dumps(right.get(key)):
                return f"{left['type']}[{left['title']}] {key}\n  wanted {left.get(key)!r}\n  got    {right.get(key)!r}"
    if [list(each) for each in wanted["logs"]] != got["logs"]:
        return f"logs\n  wanted {wanted['logs']}\n  got    {got['logs']}"
    return ""


def deviations() -> dict[str, str]:
    """Why a case (`FILE:ID`) is knowingly answered otherwise."""
    listed = yaml.load((Path(__file__).parent / "deviations.yaml").read_text(), yaml.CSafeLoader)
    return {f"{file}:{name}": reason for file, reasons in listed.items() for name, reason in reasons.items()}


def recorded(path: Path) -> dict[str, Any]:
    """Return the recorded answers to a file's cases, by id."""
    answers = path.with_suffix(".expected.json")
    found: dict[str, Any] = json.loads(answers.read_text()) if answers.exists() else {}
    return found


def run(path: Path) -> tuple[int, int, dict[str, str], float]:
    """Passed, total, what differs by id, and seconds."""
    cases = yaml.load(path.read_text(), yaml.CSafeLoader)
    expected = recorded(path)
    failed: dict[str, str] = {}
    start = time.perf_counter()
    for case in cases:
        known = expected.get(case["id"])
        why = differs(case, known, answer(case).data) if known is not None else "no answer is recorded"
        if why:
            failed[case["id"]] = why
    return len(cases) - len(failed), len(cases), failed, time.perf_counter() - start

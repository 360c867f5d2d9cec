"""
The recorded cases once more, through `puppet apply` itself: options, settings, wiring, report and log files are the command's own.

`test_apply` holds the transaction against them; what fails only here is wrong in the command.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bunraku.commands.apply import main
from shared.data import plainyaml
from shared.models.report import Report
from tests.conformance import test_apply as recorded
from tests.support.fakes import logging_kept
from tests.support.needs import needs_root

IN_GATE = 11  # the gate tries each eleventh case; a fault of the wiring shows in them, and the full run has all
FRAMES = ("Compiled catalog for ", "Using environment ")


@pytest.fixture
def clean_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Logging, umask and time zone as in a process of its own."""
    monkeypatch.setenv("TZ", "UTC")
    mask = os.umask(0o022)
    with logging_kept():
        yield
    os.umask(mask)


def applied(case: dict[str, Any], manifest: str, scratch: recorded.Scratch) -> dict[str, Any]:
    """One run of the command."""
    base, log, report = scratch.base, scratch.base / "log.jsonl", scratch.base / "var/state/last_run_report.yaml"
    (base / "site.pp").write_text(manifest)
    log.unlink(missing_ok=True)
    report.unlink(missing_ok=True)
    arguments = ["--noop"] if case.get("noop") else []
    arguments += [str(each).replace("@ROOT@", str(scratch.root)) for each in case.get("args", [])]
    where = [f"--confdir={base}/conf", f"--vardir={base}/var", f"--modulepath={scratch.root}/modules", "--certname=node1.example.com"]
    how = ["--strict_variables", "--detailed-exitcodes", "--show_diff", "--verbose", f"--logdest={log}"]
    found: dict[str, Any] = {"exit": main([*where, *how, *arguments, f"{base}/site.pp"])}
    if report.exists():
        found |= recorded.told(Report.from_data(plainyaml.loads(report.read_bytes())), scratch)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    shown = [each for each in lines if not recorded.FRAME.match(each["message"]) and not each["message"].startswith(FRAMES)]
    return found | {"logs": [[each["level"], scratch.scrub(each["source"]), scratch.scrub(each["message"])] for each in shown]}


def cases() -> list[Any]:
    """The recorded cases, most of which are marked `full`."""
    return [
        pytest.param(*case.values, id=case.id, marks=[pytest.mark.full] if number % IN_GATE else [])
        for number, case in enumerate(recorded.cases())
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("clean_process")
@needs_root
@pytest.mark.parametrize(("case", "wanted"), cases())
def test_the_command_answers_as_recorded(
    case: dict[str, Any], wanted: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if case["id"] in recorded.DEVIATIONS:
        pytest.skip("deviations.txt says that this case is answered otherwise")

    async def facts(*_: object) -> dict[str, Any]:
        await asyncio.sleep(0)
        return dict(recorded.FACTS)

    monkeypatch.setattr("bunraku.catalogs.compilation.gather", facts)
    scratch = recorded.Scratch(tmp_path)
    monkeypatch.chdir(scratch.root)
    if case.get("setup"):
        scratch.shell(case["setup"])
    runs = []
    for number, manifest in enumerate(case.get("manifests") or [case["manifest"]] * case.get("runs", 1)):
        if number and case.get("between"):
            scratch.shell(case["between"])
        other = wanted["runs"][number]
        run = applied(case, manifest.replace("@ROOT@", str(scratch.root)), scratch)
        runs.append(recorded.comparable(recorded.as_refusal(recorded.without_hints(run, other), other)))
    assert runs == [recorded.comparable({key: value for key, value in run.items() if key != "output"}) for run in wanted["runs"]]
    if "state" in wanted:
        assert {path: scratch.inspect(path) for path in case["inspect"]} == wanted["state"]

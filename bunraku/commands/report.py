"""List the last runs of all nodes; send a stored report. Source: command line reference 1.2."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from master.reports.stored import LatestReport, latest_reports
from shared.data import plainjson, plainyaml
from shared.data.durations import duration
from shared.data.plainjson import dumps_pretty
from shared.errors import BadData, ConfigError, PuppetError
from shared.indirector import Request
from shared.models.facts import FACTS
from shared.models.report import REPORT, Report
from shared.process import log as logs
from shared.process.cli import flag, maybe_text
from shared.process.command import CommandSpec
from shared.process.log import escape_controls
from shared.settings import AgentSettings, MasterSettings, load

from ..faces import INDIRECTION_ACTIONS, IndirectionOptions
from ..peer import open_wiring

MAX_REPORT = 64 * 2**20  # bytes
_FACT_FILES = {"yaml": "*.yaml", "json": "*.json"}


@dataclass(frozen=True, slots=True)
class ReportOptions(IndirectionOptions):
    """The command line of `puppet report`."""

    failed: bool = flag("list: only nodes whose last run failed")
    silent_for: str | None = maybe_text("TIME", "list: only nodes without a report for so long: 90m, 2h, 3d; with --failed both kinds")


@CommandSpec(
    "report",
    ReportOptions,
    actions={
        "list": "print each node's last run: its status, how long ago the master got the report, and the environment; `none` for a node "
        "that has sent facts and no report",
        "submit [FILE]": "send the report of the last run, or the one in FILE (YAML or JSON), to the master, as an agent does after a run",
        "find NODE": "print a node's report",
        **INDIRECTION_ACTIONS,
    },
    notes="""list needs a master whose setting reports has `store`. submit is for runs that could not send their report, and for 'puppet
    catalog apply', which sends none.

    Exit codes: 0; 1 when the reports cannot be read, there is no such report, or the master refused it.""",
).main
def main(options: ReportOptions, flags: dict[str, Any]) -> int:
    if options.action == "list":
        return print_last_runs(options, load(MasterSettings, section="master", flags=flags), datetime.now(UTC))
    if options.action != "submit":
        from ..modulefaces.builtin import run_action

        return run_action(options, flags, "list", "submit")
    settings = load(AgentSettings, section="agent", flags=flags)
    logs.set_up(level=logs.level_of(settings), colour=settings.color)
    report = read(Path(options.exactly(1)[0]) if options.names else settings.lastrunreport)
    asyncio.run(submit(report, settings))
    logging.getLogger("puppet.report").log(logs.NOTICE, "Uploaded report for %s", report.name)
    return 0


def print_last_runs(options: ReportOptions, settings: MasterSettings, now: datetime) -> int:
    """
    Print the last runs that the options ask for, the oldest report first; return the exit code.

    Raises:
        ConfigError: a duration is invalid. PuppetError: the reports cannot be read.
    """
    options.exactly(0)
    try:
        silent_for = None if options.silent_for is None else duration(options.silent_for)
    except ValueError as err:
        raise ConfigError(f"Could not set --silent-for: {err}") from err
    try:
        runs = [run for run in stored_runs(settings) if is_asked_for(run, options, silent_for, now)]
    except OSError as err:
        hint = "Run it on the master, as root (sudo) or as the account that the master runs as."
        raise PuppetError(f"Could not read the reports in {settings.reportdir}: {err.strerror}", hint=hint) from err
    runs.sort(key=lambda run: (run.received or datetime.min.replace(tzinfo=UTC), run.node))
    if options.as_json:
        sys.stdout.buffer.write(dumps_pretty([as_data(run, now) for run in runs]))
    else:
        sys.stdout.write("".join(lines_of(runs, now)))
    if settings.state == "files" and not settings.reportdir.is_dir():
        stored = "store" in settings.reports
        hint = "No agent has sent one yet, or this is not the master." if stored else "The setting reports does not have store."
        print(f"Warning: There is no folder of reports {settings.reportdir}. {hint}", file=sys.stderr)
    return 0


def stored_runs(settings: MasterSettings) -> Iterator[LatestReport]:
    """Yield the last run of each node, from where the report processor `store` has its reports. Blocks; OSError, StateAway."""
    if settings.state == "files":
        return latest_reports(settings.reportdir, nodes_with_facts(settings))
    from master.bindings import facts_factories, facts_place, report_factories  # all of the master, which files do not need
    from master.termini.facts import StoredFacts

    from .node import choice_of

    registry = choice_of(settings)
    facts = registry.terminus(FACTS, facts_factories(settings), facts_place(settings))
    reports: Any = registry.terminus(REPORT, report_factories(settings), "processor")
    store: Any = getattr(reports, "processors", {}).get("store")
    return iter(()) if store is None else store.latest(facts.files.keys() if isinstance(facts, StoredFacts) else ())


def nodes_with_facts(settings: MasterSettings) -> Iterator[str]:
    """
    Yield the names of the nodes whose facts the master has stored in files; none if another terminus stores them. Blocks; raises OSError.
    """
    kind = settings.facts_terminus or "yaml"
    if kind in _FACT_FILES:
        folder = (settings.yamldir if kind == "yaml" else settings.server_datadir) / "facts"
        for path in folder.glob(_FACT_FILES[kind]):
            yield path.stem


def is_asked_for(run: LatestReport, options: ReportOptions, silent_for: int | None, now: datetime) -> bool:
    """Return whether the options of a call ask for a node; without options they ask for all."""
    if not options.failed and silent_for is None:
        return True
    return (options.failed and run.status == "failed") or (silent_for is not None and run.is_silent(now, silent_for))


def lines_of(runs: Sequence[LatestReport], now: datetime) -> Iterator[str]:
    """Yield one line per node: status, name, time of the report, environment, and special circumstances of the run."""
    width = max((len(run.node) for run in runs), default=0)
    for run in runs:
        when = "never" if run.received is None else f"{run.received:%Y-%m-%d %H:%M} UTC ({age(now, run.received)} ago)"
        special = [word for word, holds in (("noop", run.noop), ("cached catalog", run.cached_catalog)) if holds]
        parts = (
            escape_controls(run.status)[:10].ljust(10),
            run.node.ljust(width),
            when.ljust(36),
            escape_controls(run.environment),
            ", ".join(special),
        )
        yield " ".join(parts).rstrip() + "\n"


def age(now: datetime, then: datetime) -> str:
    """Return how long ago something was, in the largest unit that fits."""
    minutes = max(0, int((now - then).total_seconds() // 60))
    for size, unit in ((1440, "days"), (60, "hours")):
        if minutes >= 2 * size:
            return f"{minutes // size} {unit}"
    return "1 minute" if minutes == 1 else f"{minutes} minutes"


def as_data(run: LatestReport, now: datetime) -> dict[str, Any]:
    """Return a node's last run as plain data."""
    seconds = None if run.received is None else int((now - run.received).total_seconds())
    return {
        "node": run.node,
        "status": run.status,
        "received": None if run.received is None else run.received.isoformat(),
        "seconds_ago": seconds,
        "environment": run.environment or None,
        "puppet_version": run.puppet_version or None,
        "noop": run.noop,
        "corrective_change": run.corrective_change,
        "cached_catalog": run.cached_catalog,
        "file": run.file or None,
    }


def read(path: Path) -> Report:
    """
    Return the report in a file.

    Raises:
        PuppetError: it cannot be read. BadData: it holds no report.
    """
    try:
        if path.stat().st_size > MAX_REPORT:
            raise BadData(f"Could not read the report {path}: it is larger than {MAX_REPORT} bytes")
        data = path.read_bytes()
    except OSError as err:
        hint = "A run stores its own at the path of the setting lastrunreport."
        raise PuppetError(f"Could not read the report {path}: {err.strerror}", hint=hint) from err
    try:
        return Report.from_data(plainjson.loads(data) if data.lstrip().startswith(b"{") else plainyaml.loads(data))
    except BadData as err:
        raise BadData(f"Could not read the report {path}: {err.message}", hint=err.hint) from err


async def submit(report: Report, settings: AgentSettings) -> None:
    """PuppetError: the master did not take it."""
    async with open_wiring(settings, "report") as wiring:
        environment = report.environment or wiring.environment
        try:
            async with asyncio.timeout(settings.report_timeout):
                await wiring.indirector["report"].save(Request(report.name, environment, body=report, ignore_cache_save=True))
        except TimeoutError as err:
            raise PuppetError(f"Could not send report: the master did not take it within {settings.report_timeout} seconds") from err
        except PuppetError as err:
            raise PuppetError(f"Could not send report: {err}", hint=err.hint) from err

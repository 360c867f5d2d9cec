"""Run agents now, and show how their runs end."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from shared.data.durations import duration
from shared.data.plainjson import dumps_pretty
from shared.errors import BadData, ConfigError, PeerAnswered, PuppetError
from shared.names import valid_certname
from shared.orders import valid_tags
from shared.process.cli import CommandOptions, flag, maybe_text, text
from shared.process.command import CommandSpec
from shared.process.log import escape_controls
from shared.settings import AgentSettings, load

from ..console import log_line
from ..peer import answered_lines
from ..progress import ProgressLine
from ..rollouts.text import duration_text

TARGET: Final = "/puppet/v1/runs"
DIFFERENT, FAILED = 2, 4
_RED, _YELLOW, _PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[0m"
_COLORS: Final = {"failed": _RED, "no report": _RED, "changed": _YELLOW, "would change": _YELLOW}
_STATES: Final = {"pending": "would change", "ended": "no report", "timeout": "no report", "absent": "not ordered"}
"""The words for states of the master that are not shown as they are."""


@dataclass(frozen=True, slots=True)
class OrderOptions(CommandOptions):
    """The command line of `puppet run` without settings."""

    query: str | None = maybe_text("PQL", "the nodes that a query to the store or PuppetDB returns: 'nodes[certname] { … }'")
    all: bool = flag("all nodes that the master knows")
    concurrency: str = text("NUMBER", "runs that take place at the same time; 20 by default", default="20")
    timeout: str = text("TIME", "how long each run may take; 10m by default", default="10m")
    follow: bool = flag("wait for the reports of agents that do not wait for orders, too")
    log: bool = flag("print what the runs log, while they last; of a single node always")
    json: bool = flag("print JSON, at the end")

    def question(self, flags: Mapping[str, Any], interval: float) -> dict[str, Any]:
        """Return the request that the command line stands for; raise ConfigError, BadName."""
        if sum((bool(self.arguments), self.query is not None, self.all)) != 1:
            raise ConfigError("Say which nodes", hint=self.flag_hint or "Give their certnames, or one of --query PQL and --all.")
        if not self.concurrency.isdecimal() or not 1 <= int(self.concurrency) <= 1000:
            raise ConfigError(f"--concurrency is a number from 1 to 1000, not '{self.concurrency}'")
        try:
            timeout = duration(self.timeout)
            tags = valid_tags([word for word in str(flags.get("tags", "")).split(",") if word])
        except (ValueError, BadData) as err:
            raise ConfigError(str(err)) from err
        question: dict[str, Any] = {
            "nodes": list(dict.fromkeys(map(valid_certname, self.arguments))),
            "query": self.query,
            "all": self.all,
            "noop": str(flags.get("noop", "")).lower() == "true",
            "tags": list(tags),
            "environment": str(flags.get("environment", "")),
            "concurrency": int(self.concurrency),
            "timeout": timeout,
            "follow": interval + timeout if self.follow else 0,
            "log": (self.log or len(self.arguments) == 1) and not self.json,
        }
        return {name: value for name, value in question.items() if value not in (None, [], "", False)}


@CommandSpec(
    "run",
    OrderOptions,
    (AgentSettings,),
    usage=[
        "NODE... | --query PQL | --all [--noop] [--tags A,B] [--environment NAME]",
        "... [--concurrency NUMBER] [--timeout TIME] [--follow] [--log | --json] [--server HOST]",
    ],
    text="""Has agents run at once that run as daemons and wait for that (run_on_demand), and prints a line for each node. It asks the
    master with this host's certificate: by default the master's own and those with the extension pp_cli_auth may order runs, others by
    a rule for /puppet/v1/runs in auth.conf. Ctrl-C stops what has not begun.""",
    setting_docs={
        "--noop": "only report the changes that would be made",
        "--tags A,B": "only resources with one of these tags",
        "--environment NAME": "the environment of these runs, in place of the agents' own",
        "--server HOST": "the master; --masterport PORT as well",
    },
    notes="""Agents that do not wait (Puppet's own, those that cron starts) are named and come by themselves; --follow waits for their
    reports.

    Exit codes: 0 nothing changed; 2 changes; 4 failures, or nodes of which no run ended; 6 both; 1 when nothing could be ordered.""",
    is_face=False,
).main
def main(options: OrderOptions, flags: dict[str, Any]) -> int:
    settings = load(AgentSettings, section="agent", flags=flags)
    interval = float(settings.runinterval) or 1800.0
    question = options.question(flags, interval)
    # The answer comes slowly, and lasts as long as the runs.
    settings = settings.model_copy(update={"http_least_rate": 0, "http_body_timeout": 0})
    results = RunResults(interval, is_followed=options.follow, is_quiet=options.json)
    try:
        asyncio.run(results.take(settings, question))
    except KeyboardInterrupt:
        running = len(results.running)
        hint = "Runs that have begun go on; their reports reach the master."
        raise PuppetError(f"Interrupted: {running} under way, {results.remaining - running} not ordered", hint=hint) from None
    finally:
        if results.order:
            results.finish()
    return results.code


@dataclass
class RunResults:
    """
    The results of runs as they come in, printed one line a node.

    Attributes:
        interval: Seconds between two runs of an agent by itself.
        nodes: What is known about each node last, as the master sent it (docs/run.md).
    """

    interval: float
    is_followed: bool = False
    is_quiet: bool = False
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    order: str = ""
    total: int = 0

    @property
    def running(self) -> list[str]:
        return [node for node, event in self.nodes.items() if event["state"] == "started"]

    @property
    def remaining(self) -> int:
        """The number of nodes of which nothing has ended."""
        return self.total - sum(self._is_over(event) for event in self.nodes.values())

    @property
    def code(self) -> int:
        """The exit code."""
        changed = any(event.get("changed") for event in self.nodes.values())
        bad = any(event["state"] not in ("changed", "unchanged", "pending") for event in self.nodes.values())
        return (DIFFERENT if changed else 0) + (FAILED if bad else 0)

    async def take(self, settings: AgentSettings, question: Mapping[str, Any]) -> None:
        """Order the runs, and print what happens until all have ended; raise PuppetError."""
        is_done = False
        with ProgressLine() as line:
            try:
                async with aclosing(answered_lines(settings, TARGET, question, "runs")) as lines:
                    async for event in lines:
                        is_done = is_done or "done" in event
                        self._take(event, line)
            except PeerAnswered as err:
                if err.code != 404:
                    raise
                hint = "Puppet's own servers do not, nor does a master of an older release."
                raise PeerAnswered("The master takes no orders to run", code=404, hint=hint) from err
        if not is_done:
            raise BadData("The master's answer ends before all runs have ended")

    def _take(self, event: Mapping[str, Any], line: ProgressLine) -> None:
        match event:
            case {"id": str(number), "nodes": int(total)}:
                self.order, self.total = number, total
            case {"node": str(node), "lines": list(lines)}:
                line.clear()
                self._print_log(node, lines)
            case {"node": str(node), "state": str()}:
                self.nodes[node] = dict(event)
                if event["state"] != "started" and not self.is_quiet:
                    line.clear()
                    print(self._line_of(node), flush=True)
        if line.stream.isatty():
            line.show(f"{self.total - self.remaining} of {self.total} nodes, {len(self.running)} running")

    def _print_log(self, node: str, lines: Sequence[Any]) -> None:
        """Print lines of a run's log behind the node's name."""
        for level, source, message in lines:
            if level != "debug":
                print(escape_controls(f"{node}  {log_line(str(level), message, source)}"), flush=True)

    def finish(self) -> None:
        """Print what comes last: the failures, completely, and the numbers of nodes; with --json everything."""
        if self.is_quiet:
            sys.stdout.buffer.write(dumps_pretty({"order": self.order, "nodes": self.nodes}))
            return
        for node, event in sorted(self.nodes.items()):
            if event["state"] == "failed":
                print(f"\n{self._line_of(node)}")
                for text in event["errors"]:
                    print("\n".join(f"  {escape_controls(part)}" for part in text.splitlines()))
        counts = Counter(_state(event) for event in self.nodes.values())
        numbers = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
        print(f"\n{self.total} {'node' if self.total == 1 else 'nodes'}{': ' if numbers else ''}{numbers}")

    def _is_over(self, event: Mapping[str, Any]) -> bool:
        return event["state"] not in (("started", "absent") if self.is_followed else ("started",))

    def _line_of(self, node: str) -> str:
        event = self.nodes[node]
        state = _state(event)
        width = max(20, *map(len, self.nodes))
        shown = f"{_COLORS[state]}{state:<12}{_PLAIN}" if state in _COLORS and sys.stdout.isatty() else f"{state:<12}"
        return f"{node:<{width}}  {shown}  {', '.join(self._details(event))}".rstrip()

    def _details(self, event: Mapping[str, Any]) -> Iterator[str]:
        match event["state"]:
            case "absent":
                yield f"it comes by itself within {duration_text(self.interval)}"
            case "timeout":
                yield "it did not report in time"
            case "ended":
                yield "its run has ended without a report: disabled, another run under way, or no certificate; see its log"
            case state:
                with suppress(KeyError, TypeError):
                    numbers = event["resources"]
                    count = {"failed": numbers["failed"], "changed": numbers["changed"], "pending": numbers["out_of_sync"]}.get(state)
                    of = f"{count} of " if count else ""
                    yield f"{of}{numbers['total']} {'resource' if numbers['total'] == 1 else 'resources'}"
                    yield duration_text(event["seconds"])


def _state(event: Mapping[str, Any]) -> str:
    """Return the word for a node's state."""
    state = str(event["state"])
    return _STATES.get(state, state)

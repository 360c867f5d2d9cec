"""Deploy in waves, watched, and stop by itself."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from master.rollouts.actions import ACTIONS, MAX_REASON, command_rollout, program_folder, require_program
from master.rollouts.machine import ABORTED, COMPLETED, ROLLED_BACK, STOPPED
from master.rollouts.status import status_of
from master.rollouts.storage import RolloutFiles, RolloutStorage
from shared.data.durations import duration
from shared.data.plainjson import dumps_pretty
from shared.errors import ConfigError, NotFound, PuppetError
from shared.process.cli import flag, text
from shared.process.command import CommandSpec
from shared.process.service import account_of
from shared.settings import AgentSettings, MasterSettings, load
from shared.settings.master import settings_beside_master
from shared.state.masters import SharedState

from ..faces import JsonFaceOptions
from ..rollouts.text import headline, next_text, status_lines

if TYPE_CHECKING:
    from ..rollouts.start import RolloutWishes

BAD: Final = 4
_PERIOD: Final = 1.0  # seconds between two looks of `watch`


@dataclass(frozen=True, slots=True)
class RolloutOptions(JsonFaceOptions):
    """The command line of `puppet rollout`."""

    ref: str = text("REF", "start: a branch, tag or commit; without it the branch with the environment's name")
    repo: str = text("ADDRESS", "start: the control repository, in place of the setting deploy_repository")
    waves: str = text("WAVES", "start: shares of the nodes and queries, separated by semicolons; '1%; 10%; 50%; 100%' by default")
    wait: str = text("TIME", "start: how long each wave lasts at least; 30m by default")
    max_failed: str = text("NUMBER", "start: how many nodes may be bad, or a percentage of those with the new version; 0 by default")
    noop_first: bool = flag("start: let each wave simulate the change first")
    run_now: bool = flag("start: have nodes that wait for orders run as soon as their wave opens (see puppet run)")
    on_failure: str = text("ACTION", "start: stop (the default; nodes keep the new version) or rollback (they get the old one back)")
    check: str = text("PROGRAM", "start: a program that agrees to the end of each wave by exit code 0; it reads the status as JSON")
    notify: str = text("PROGRAM", "start: a program that is told of a stop or an end; it reads the status as JSON")
    interval: str = text("TIME", "start: the time between two runs of an agent; by default runinterval of this host")
    checks: bool = flag("start: do not check that manifests, templates and data parse", default=True, negatable=True)
    html: str = text("FILE", "status ENVIRONMENT: write a page as well; it needs no network")
    reason: str = text("TEXT", "pause, abort: why, for others who look at the status")

    @property
    def environment(self) -> str:
        """The one argument of an action; ConfigError."""
        return self.exactly(1)[0]

    def wishes(self) -> RolloutWishes:
        """Return the options of a rollout that the command line names; ConfigError."""
        from ..rollouts.start import RolloutWishes

        values = {"waves": self.waves, "wait": self.wait, "max_failed": self.max_failed, "on_failure": self.on_failure}
        given: dict[str, Any] = {name: value for name, value in values.items() if value}
        given |= {name: True for name in ("noop_first", "run_now") if getattr(self, name)}
        return RolloutWishes.of(given, "puppet rollout")


@CommandSpec(
    "rollout",
    RolloutOptions,
    (MasterSettings,),
    usage=[
        "start ENVIRONMENT [--ref REF] [--waves WAVES] [--wait TIME] [--max-failed NUMBER|PERCENT%] …",
        "status [ENVIRONMENT] [--html FILE] [--json]",
        "watch ENVIRONMENT",
        "pause|resume|abort ENVIRONMENT [--reason TEXT]",
        "list [--json]",
    ],
    actions={
        "start ENVIRONMENT": "store the commit, preview it, and give it to the nodes wave by wave",
        "status [ENVIRONMENT]": "show the waves, the failures, and what happens next",
        "watch ENVIRONMENT": "show the status until the rollout has ended or stopped",
        "pause ENVIRONMENT": "open no further wave",
        "resume ENVIRONMENT": "go on after a pause or a stop; nodes that are bad now no longer count",
        "abort ENVIRONMENT": "give all nodes the version before",
        "list": "print all rollouts, one per line",
    },
    text="""Deploys a commit of the control repository as puppet deploy does, but gives it to the nodes in waves. The master watches their
    reports, and stops by itself when nodes fail, no longer report, have catalogs that do not compile, or change more than the preview
    said.""",
    notes="""Waves, wait, max_failed, noop_first, on_failure and run_now may also be in a file rollout.yaml of the control repository;
    options win.
    A wave is a share of all nodes up to this wave, or the nodes of a query: --waves "canary: nodes[certname] { certname ~ '^test' }; 10%;
    100%".

    Exit codes: 0 all is well; 4 the rollout has stopped, was rolled back or aborted, or did not begin because catalogs do not compile;
    1 for errors.""",
).main
def main(options: RolloutOptions, flags: dict[str, Any]) -> int:
    actions: dict[str, Callable[[RolloutCommandLine], int]] = {
        "start": RolloutCommandLine.start,
        "status": RolloutCommandLine.status,
        "watch": RolloutCommandLine.watch,
        "list": RolloutCommandLine.status,
        **dict.fromkeys(ACTIONS, RolloutCommandLine.act),
    }
    run = options.choose(actions)
    return run(RolloutCommandLine(options, flags, settings_beside_master(flags)))


@contextmanager
def open_rollouts(settings: MasterSettings) -> Iterator[RolloutStorage]:
    """Open the rollouts of a master, or of all that share its state; raise PuppetError."""
    state = SharedState.at(settings.state, keep_alive=False)
    if state is None:
        yield RolloutFiles(settings.environmentpath)
        return
    from master.rollouts.rows import RolloutRows

    if account_of(settings) is not None:  # a database may not know root
        from master.process import take_service_account

        try:
            take_service_account(settings)
        except OSError as err:
            raise PuppetError(f"The command could not change to the account {settings.user}: {err}") from err
    yield RolloutRows(state.database, settings.certname)


@dataclass(frozen=True, slots=True)
class RolloutCommandLine:
    """One call of `puppet rollout`."""

    options: RolloutOptions
    flags: Mapping[str, Any]
    settings: MasterSettings

    # --- actions

    def start(self) -> int:
        # The preview and the deployment are large.
        from master.deploy.deployment import ChecksFailed, DeploymentOptions

        from ..previews.text import text_lines
        from ..rollouts.start import CatalogsFailed, RolloutStart
        from .deploy import become_deployer, bring_modules, open_deployments, print_findings
        from .report import stored_runs

        options, environment = self.options, self.options.environment
        wishes = options.wishes()
        for program in filter(None, (options.check, options.notify)):
            require_program(program, program_folder(self.settings))
        own_settings = load(AgentSettings, section="agent", flags=self.flags)  # before another account has other folders by default
        say: Callable[[str], None] = (lambda text: None) if options.as_json else (lambda text: print(f"Notice: {text}", flush=True))
        wanted = DeploymentOptions(options.repo, options.ref, options.checks)
        try:
            with open_deployments(self.settings, lambda root: bring_modules(root, own_settings), say) as deployments:
                become_deployer(deployments, [environment])
                start = RolloutStart(self.settings, deployments, self._preview, stored_runs, self._interval(own_settings))
                rollout = start.start(environment, wanted, wishes, options.check, options.notify)
        except ChecksFailed as err:
            print_findings(err.findings)
            raise
        except CatalogsFailed as err:
            for line in () if options.as_json else text_lines({**err.preview, "changes": []}, colored=sys.stderr.isatty()):
                print(line, file=sys.stderr)
            print(f"Error: {err}\n{err.hint}", file=sys.stderr)
            return BAD
        except OSError as err:
            raise PuppetError(f"The rollout of {environment} did not begin: {err}") from err
        return self._print(status_of(rollout), status_lines)

    def status(self) -> int:
        options, names = self.options, self.options.names
        is_list = options.action == "list"
        if len(names) > (not is_list):
            raise ConfigError(f"puppet rollout {options.action} takes fewer environments", hint=options.flag_hint or "See --help.")
        if options.html and not names:
            raise ConfigError("--html shows the rollout of one environment", hint="Name it: puppet rollout status ENVIRONMENT --html FILE.")
        with open_rollouts(self.settings) as storage:
            statuses = [self._status(name, storage) for name in names or storage.environments()]
        if options.html:
            from ..rollouts.page import render_status
            from .preview import write_html

            write_html(Path(options.html), render_status(statuses[0]))
        if options.as_json:
            sys.stdout.buffer.write(dumps_pretty(statuses[0] if names else statuses))
        elif not statuses:
            print("There are no rollouts")
        elif is_list:
            print("\n".join(map(headline, statuses)))
        else:
            print("\n\n".join("\n".join(status_lines(status, colored=sys.stdout.isatty())) for status in statuses))
        return 0 if is_list else max(map(_code, statuses), default=0)

    def act(self) -> int:
        options = self.options
        if len(options.reason) > MAX_REASON:
            raise ConfigError(f"--reason has at most {MAX_REASON} characters")
        try:
            with open_rollouts(self.settings) as storage:
                rollout = command_rollout(storage, options.environment, options.action, options.reason)
        except OSError as err:
            raise PuppetError(f"The rollout of {options.environment} cannot be changed: {err}") from err
        return self._print(status_of(rollout), lambda status: [headline(status)])

    def watch(self) -> int:
        with open_rollouts(self.settings) as storage:
            return self._watch(storage)

    def _watch(self, storage: RolloutStorage) -> int:
        drawn = 0
        seen: list[dict[str, str]] = []
        while True:
            status = self._status(self.options.environment, storage)
            if sys.stdout.isatty():
                drawn = redraw(status, drawn)
            else:
                for entry in (each for each in status["log"] if each not in seen):
                    print(f"{entry['time']} {entry['text']}", flush=True)
                seen = status["log"]
            if status["status"] in (COMPLETED, ROLLED_BACK, ABORTED, STOPPED):
                break
            time.sleep(_PERIOD)
        if not sys.stdout.isatty():
            print("\n".join(status_lines(status)))
        return _code(status)

    # --- parts

    def _status(self, environment: str, storage: RolloutStorage) -> dict[str, Any]:
        stored = storage.load(environment)
        if stored is None:
            raise NotFound(f"There is no rollout of {environment}", hint=f"Start one: puppet rollout start {environment} --ref REF.")
        return status_of(stored.rollout)

    def _print(self, status: dict[str, Any], lines: Callable[[Mapping[str, Any]], Iterable[str]]) -> int:
        if self.options.as_json:
            sys.stdout.buffer.write(dumps_pretty(status))
        else:
            print("\n".join(lines(status)))
        return 0

    def _preview(self, environments: Any, sides: Any) -> dict[str, Any]:
        from .preview import PreviewCommand, PreviewOptions

        result: dict[str, Any] = asyncio.run(PreviewCommand(PreviewOptions(all=True), self.settings, "").result(environments, sides)).data()
        return result

    def _interval(self, own_settings: AgentSettings) -> float:
        if not self.options.interval:
            return float(own_settings.runinterval) or 1800.0
        try:
            return float(duration(self.options.interval))
        except ValueError as err:
            raise ConfigError(f"--interval: {err}") from err


def _code(status: Mapping[str, Any]) -> int:
    return BAD if status["status"] in (STOPPED, ROLLED_BACK, ABORTED) else 0


def redraw(status: Mapping[str, Any], drawn: int) -> int:
    """Show a status in place of the one before, which had so many lines; return its own number of lines."""
    columns, rows = shutil.get_terminal_size()
    lines = list(status_lines(status, colored=True, width=columns - 1))
    if len(lines) >= rows:  # a list that scrolls cannot be redrawn
        lines = [*lines[: rows - 2], f"… {next_text(status)}"[: columns - 1]]
    up = f"\x1b[{drawn}A" if drawn else ""
    body = "".join(f"\r\x1b[K{line}\n" for line in lines)
    sys.stdout.write(f"{up}{body}\x1b[J")
    sys.stdout.flush()
    return len(lines)

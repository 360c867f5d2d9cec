"""The start of a rollout: the version is stored, its preview made, and its waves' nodes are found; only then is it there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from environments.directories import Environments
from environments.settings import environment_settings
from environments.versions import versions_folder
from master.deploy.deployment import DeploymentOptions, DeploymentResult, Deployments
from master.preview.nodes import certnames_matching
from master.preview.pool import Sides
from master.preview.result import PreviewSide
from master.puppetdb.client import PuppetDbClient, rows_in_pql
from master.puppetdb.configured import puppetdb_client
from master.reports.stored import LatestReport
from master.rollouts.machine import BadNodesLimit, Rollout, RolloutPlan, begin
from master.rollouts.prediction import change_text, prediction_of
from master.rollouts.waves import DEFAULT_WAVES, Wave, parse_waves, waves_of
from shared.data.durations import duration
from shared.data.plainyaml import loads
from shared.errors import BadData, ConfigError, Conflict, PuppetError
from shared.filesystem.files import read_regular
from shared.settings import MasterSettings

FILE: Final = "rollout.yaml"
_MAX_FILE: Final = 64 * 1024
_MEMBERS: Final = ("waves", "wait", "max_failed", "noop_first", "on_failure", "run_now")
_ON_FAILURE: Final = ("stop", "rollback")
_LAST_RUNS: Final = "the nodes' last runs"


@dataclass(frozen=True, slots=True)
class RolloutWishes:
    """The options of a rollout, of a command line or a rollout.yaml; None is what they do not say."""

    waves: tuple[Wave, ...] | None = None
    wait: float | None = None
    max_failed: BadNodesLimit | None = None
    noop_first: bool | None = None
    rolls_back: bool | None = None
    run_now: bool | None = None

    @classmethod
    def of(cls, data: Mapping[str, Any], place: str) -> RolloutWishes:
        """Return the options in plain data; raise ConfigError, which names the place."""
        try:
            if unknown := set(data) - set(_MEMBERS):
                raise BadData(f"There is no '{min(map(str, unknown))}'", hint=f"There are {', '.join(_MEMBERS)}.")
            noop, failure, waves, run_now = (data.get(name) for name in ("noop_first", "on_failure", "waves", "run_now"))
            if failure not in (None, *_ON_FAILURE) or not isinstance(noop, bool | None) or not isinstance(run_now, bool | None):
                raise BadData("on_failure is stop or rollback, noop_first and run_now are true or false")
            return cls(
                None if waves is None else parse_waves(waves) if isinstance(waves, str) else waves_of(waves),
                None if data.get("wait") is None else float(duration(data["wait"])),
                None if data.get("max_failed") is None else _limit(str(data["max_failed"])),
                noop,
                None if failure is None else failure == "rollback",
                run_now,
            )
        except (BadData, ValueError) as err:
            raise ConfigError(f"{place}: {err}", hint=getattr(err, "hint", "")) from err


def _limit(text: str) -> BadNodesLimit:
    number, percent = text.removesuffix("%"), text.endswith("%")
    if not number.isdecimal() or len(number) > 9 or (percent and int(number) > 100):
        raise BadData(f"'{text[:40]}' is neither a number of nodes nor a percentage")
    return BadNodesLimit(percent=float(number)) if percent else BadNodesLimit(int(number))


def wishes_in(version: Path) -> RolloutWishes:
    """Return the options in the rollout.yaml of a version; none when it has no such file. Raises ConfigError. Blocks."""
    try:
        data = loads(read_regular(version / FILE, _MAX_FILE))
    except FileNotFoundError:
        return RolloutWishes()
    except (OSError, BadData) as err:
        raise ConfigError(f"{FILE} of the control repository: {err}") from err
    if not isinstance(data, dict):
        raise ConfigError(f"{FILE} of the control repository is not a map", hint=f"It has {', '.join(_MEMBERS)}.")
    return RolloutWishes.of(data, f"{FILE} of the control repository")


StoredRuns = Callable[[MasterSettings], Iterable[LatestReport]]


class CatalogsFailed(PuppetError):
    """Catalogs do not compile with the new version: the rollout did not begin."""

    def __init__(self, environment: str, preview: Mapping[str, Any]) -> None:
        nodes = {node for error in preview["errors"] if error["state"] == "new" for node in error["nodes"]}
        number = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
        super().__init__(
            f"The rollout of {environment} did not begin: the catalogs of {number} no longer compile",
            hint="No node got the new version.",
        )
        self.preview = preview


@dataclass(frozen=True, slots=True)
class RolloutStart:
    """
    Starts rollouts on a master's host.

    Args:
        make_preview: Returns the result of a preview of all nodes (docs/preview.md), and blocks; it is told the sides.
        stored_runs: Returns the last run of each node of which the master stores reports.
        interval: Seconds between two runs of an agent.
    """

    settings: MasterSettings
    deployments: Deployments
    make_preview: Callable[[Environments, Sides], dict[str, Any]]
    stored_runs: StoredRuns
    interval: float

    def start(self, environment: str, options: DeploymentOptions, wishes: RolloutWishes, check: str, notify: str) -> Rollout:
        """
        Start a rollout. Blocks.

        Raises:
            CatalogsFailed: The preview has new errors.
            Conflict: Another rollout is under way, or there is nothing to roll out.
            PuppetError: The version cannot be stored, or a query for nodes failed.
        """
        result = self.deployments.prepare(environment, options)
        folder = versions_folder(self.deployments.archive(environment).root)
        wishes = _merged(wishes, wishes_in(folder / result.version))
        preview = self._preview(environment, result, folder)
        plan = RolloutPlan(
            environment,
            str(result.before),
            result.version,
            wishes.waves or parse_waves(DEFAULT_WAVES),
            ref=str(result.ref),
            wait=1800.0 if wishes.wait is None else wishes.wait,
            interval=self.interval,
            max_failed=wishes.max_failed or BadNodesLimit(),
            noop_first=bool(wishes.noop_first),
            rolls_back=bool(wishes.rolls_back),
            check=check,
            notify=notify,
            run_now=bool(wishes.run_now),
        )
        nodes = sorted(preview["nodes"])
        deployments, storage, archive = self.deployments, self.deployments.rollouts, self.deployments.archive(environment)
        known = asyncio.run(self._known(plan, nodes))
        with archive.locked(deployments.patience()):
            # The preview took a while, in which somebody may have deployed, or started another one.
            deployments.check_rollout(environment)
            if deployments.current(archive) != result.before:
                raise Conflict(f"{environment} was deployed in between", hint="Start the rollout again.")
            last = storage.load(environment)
            deployments.admit(archive, result.version)
            storage.save_prediction(environment, prediction_of(result.version, preview))
            rollout = begin(known.plan, nodes, storage.now(), failing=known.failing, silent=known.silent, habits=known.habits)
            return storage.save(rollout, last.revision if last is not None else 0).rollout

    def _preview(self, environment: str, result: DeploymentResult, folder: Path) -> dict[str, Any]:
        sides = Sides(
            environment,
            PreviewSide(environment, str(folder / str(result.before))),
            PreviewSide(str(result.ref), str(folder / result.version), revision=result.commit),
        )
        self.deployments.say("Previewing the change")
        preview = self.make_preview(Environments(environment_settings(self.settings)), sides)
        if any(error["state"] == "new" for error in preview["errors"]):
            raise CatalogsFailed(environment, preview)
        return preview

    async def _known(self, plan: RolloutPlan, nodes: Sequence[str]) -> _LastRuns:
        """Return the plan with the nodes of its queries, and what is known about the nodes' last runs."""
        client = await asyncio.to_thread(puppetdb_client, self.settings)
        try:
            found = [frozenset(await certnames_matching(client, wave.query)) if wave.query else frozenset() for wave in plan.waves]
            plan = replace(plan, waves=tuple(replace(wave, members=members) for wave, members in zip(plan.waves, found, strict=True)))
            runs = await last_runs(client, self.settings, nodes, self.stored_runs)
            habits = await last_changes(client) if has_store(self.settings) else {}
        finally:
            await client.close()
        now = datetime.now(UTC)
        silent = [node for node, (_, at) in runs.items() if at is None or (now - at).total_seconds() > 2 * self.interval]
        failing = [node for node, (status, _) in runs.items() if status == "failed"]
        return _LastRuns(plan, failing, silent, habits)


@dataclass(frozen=True, slots=True)
class _LastRuns:
    """A plan, and what is known about its nodes' last runs: see `begin`."""

    plan: RolloutPlan
    failing: Sequence[str]
    silent: Sequence[str]
    habits: Mapping[str, Sequence[str]]


def has_store(settings: MasterSettings) -> bool:
    """Return whether a store or a PuppetDB has the reports."""
    return settings.storeconfigs or "puppetdb" in settings.reports


async def last_runs(
    client: PuppetDbClient, settings: MasterSettings, nodes: Sequence[str], stored_runs: StoredRuns
) -> dict[str, tuple[str, datetime | None]]:
    """Return, by node, the status of its last run and when it reported; nothing about nodes where no reports are stored."""
    if has_store(settings):
        rows = await rows_in_pql(client, "nodes[certname, latest_report_status, report_timestamp] { }", _LAST_RUNS)
        runs = {row["certname"]: (row["latest_report_status"] or "", _time(row["report_timestamp"])) for row in rows}
        return {node: runs.get(node, ("", None)) for node in nodes}
    if "store" not in settings.reports:
        return {}
    reports = await asyncio.to_thread(lambda: list(stored_runs(settings)))
    known = {report.node: (report.status, report.received) for report in reports}
    return {node: known.get(node, ("none", None)) for node in nodes}


async def last_changes(client: PuppetDbClient) -> dict[str, list[str]]:
    """Return the changes of each node's last run: what it changes at every run is not the new version's."""
    changes: dict[str, list[str]] = {}
    query = (
        "events[certname, resource_type, resource_title, property] "
        "{ latest_report? = true and status = 'success' and corrective_change = false }"
    )
    for row in await rows_in_pql(client, query, _LAST_RUNS):
        text = change_text(f"{row['resource_type']}[{row['resource_title']}]", row["property"])
        changes.setdefault(row["certname"], []).append(text)
    return changes


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _merged(first: RolloutWishes, second: RolloutWishes) -> RolloutWishes:
    """Return the options of the first, and those of the second that it lacks."""
    names = RolloutWishes.__dataclass_fields__
    return RolloutWishes(**{name: getattr(second if getattr(first, name) is None else first, name) for name in names})

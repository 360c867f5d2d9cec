"""
The rollouts of a running master: it gives each run its version, watches catalogs and reports, and acts when a state asks for it.

The stored state decides. What is observed goes into it before a report is answered, and a wave is open only once that is stored.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from environments.runs import VersionForRun
from environments.versions import find_version
from httpd.metrics import Samples
from shared.data import plainjson
from shared.errors import CompileError, PuppetError
from shared.models.report import Report
from shared.orders import RunOrder
from shared.process.log import NOTICE
from shared.process.supervision import wait_for_event
from shared.programs import run_output

from ..observability.metrics import Metrics
from ..orders.waiting import WaitingAgents
from ..pools.compiled_catalog import CompiledCatalog
from ..pools.jobs import CompileJob
from .actions import require_program
from .machine import (
    NODE_STATES,
    PROGRESSING,
    RUNNING,
    STOPPED,
    WAITING,
    Announced,
    CatalogSent,
    CheckAnswered,
    LinkSwitched,
    Rollout,
    RolloutEvent,
    RunReported,
    StoredRollout,
    advance,
    due,
)
from .prediction import Prediction, run_reported
from .status import status_of
from .storage import RolloutStorage, update_rollout

log = logging.getLogger("puppet.rollout")

HEARTBEAT: Final = 30.0
"""Seconds after which a state is stored although nothing happened, so that a restart loses no more of its time."""
RETRY: Final = 60.0  # seconds until a link that could not be switched is tried again
STORE_TIMEOUT: Final = 10.0
MAX_EVENTS: Final = 50_000
RUNS_AT_ONCE: Final = 20  # that a rollout has ordered
ORDERED: Final = 600.0  # seconds for which an order that shows no result counts as a run
MAX_OUTPUT: Final = 64 * 1024

Switch = Callable[[str, str], Awaitable[None]]
"""Switches an environment to a stored version; raises PuppetError."""


CompileCatalog = Callable[[CompileJob], Coroutine[Any, Any, CompiledCatalog]]
"""Returns the catalog of a job; raises CompileError, Unavailable."""


@dataclass(eq=False, repr=False)
class RolloutWatch:
    """
    Watches the rollouts of a master.

    Args:
        root_of: Returns the folder of an environment; NotFound.
        current: The version of a run where there is no rollout.
        version_of_run: Returns the version of a client's run under way in an environment, '' when it has none. Blocks, briefly. Left out:
            that of the last catalog from this master.
        programs: The folder which the site's programs have to be in, see `program_folder`; they may take `timeout` seconds.
        period: Seconds between two looks at the stored states during a rollout, and `idle` when none is known to be under way; a run that
            finds one ends the wait. `gathering` are those in which observations are stored together.
        agents: Those that wait for orders to run at this master. `clock` returns monotonic seconds.
    """

    storage: RolloutStorage
    root_of: Callable[[str], str]
    current: VersionForRun
    switch: Switch
    version_of_run: Callable[[str, str], str] | None = None
    programs: Path | None = None
    timeout: float = 60.0
    period: float = 1.0
    idle: float = 10.0
    gathering: float = 0.2
    agents: WaitingAgents | None = None
    clock: Callable[[], float] = time.monotonic
    _ordered: dict[tuple[str, int, str], float] = field(default_factory=dict, init=False)  # when, by environment, step and node
    _active: dict[str, Rollout] = field(default_factory=dict, init=False)
    _predictions: dict[str, tuple[float, Prediction | None]] = field(default_factory=dict, init=False)
    _events: dict[str, list[RolloutEvent]] = field(default_factory=dict, init=False)
    _saving: list[asyncio.Future[None]] = field(default_factory=list, init=False)
    _sent: dict[tuple[str, str], str] = field(default_factory=dict, init=False)  # versions of catalogs, for reports that name none
    _woken: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _acting: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, init=False)
    _tried: dict[str, float] = field(default_factory=dict, init=False)
    _problems: dict[str, str] = field(default_factory=dict, init=False)

    # --- what runs get

    def version_for(self, client: str, environment: str) -> str:
        """Return the version (its folder) of a client's new run. Blocks, briefly."""
        rollout = self._rollout(environment)
        if rollout is None or not client:
            return self.current(client, environment)
        if environment not in self._active and self._loop is not None:
            self._loop.call_soon_threadsafe(self._woken.set)
        version = rollout.plan.after if rollout.has_new_version(client) else rollout.plan.before
        return find_version(self.root_of(environment), version) or self.current(client, environment)

    def _latest(self, environment: str) -> StoredRollout | None:
        """Return the latest rollout of an environment; None, logged, when it cannot be read. Blocks, briefly."""
        try:
            return self.storage.load(environment)
        except PuppetError as err:
            log.error("Runs in %s get its current version: %s", environment, err)
            return None

    def _rollout(self, environment: str) -> Rollout | None:
        """Return the rollout of an environment that is under way. Blocks, briefly."""
        stored = self._latest(environment)
        return stored.rollout if stored is not None and stored.rollout.is_active else None

    async def catalog(self, job: CompileJob, make: CompileCatalog) -> CompiledCatalog:
        """
        Return a catalog and note how that went; one of a wave that only simulates is made so. Raises what `make` raises.

        PuppetError is raised when it cannot be read whether the node should simulate.
        """
        version = Path(job.pin).name
        stored = await asyncio.to_thread(self._deciding, job.environment, version) if job.pin else None
        if stored is None or version not in (stored.rollout.plan.before, stored.rollout.plan.after):
            return await make(job)
        try:
            catalog = await make(job)
        except CompileError as err:
            self._note(job.environment, RunReported(job.certname, version, failed=True, compiled=False, message=err.message))
            raise
        if stored.rollout.is_active:
            self._active.setdefault(job.environment, stored.rollout)  # for the report, which may come before the next look
            self._sent[job.environment, job.certname] = version
            self._note(job.environment, CatalogSent(job.certname, version))
        is_noop = version == stored.rollout.plan.after and await asyncio.to_thread(self._is_noop, job, version)
        return await asyncio.to_thread(simulating, catalog) if is_noop else catalog

    def _deciding(self, environment: str, version: str) -> StoredRollout | None:
        """
        Return the rollout that a run with this version may belong to, without a look at what is stored if it cannot. Blocks, briefly.

        PuppetError is raised when the version is not the current one, and what is stored cannot be read.
        """
        if version not in ("", Path(self.current("", environment)).name):
            return self.storage.load(environment)
        return self._latest(environment) if environment in self._active else None

    def _is_noop(self, job: CompileJob, version: str) -> bool:
        """Return whether a node only simulates the new version, also when the rollout has just ended without success. Blocks, briefly."""
        stored = self.storage.load(job.environment)
        if stored is None or not stored.rollout.is_noop(job.certname):
            return False
        return stored.rollout.is_active or Path(self.current(job.certname, job.environment)).name != version

    # --- what is observed

    async def reported(self, report: Report) -> None:
        """Take a report into the state of its environment's rollout; return when it is stored, or cannot be, which is logged."""
        environment, version = report.environment or "", report.code_id or ""
        if not version and environment in self._active:  # agents of 3.x name none
            version = await asyncio.to_thread(self._version_of_run, report.host, environment)
        try:
            stored = await asyncio.to_thread(self._deciding, environment, version) if environment else None
        except PuppetError as err:
            log.error("The report of %s is not counted: %s", report.host, err)
            return
        if stored is None or not stored.rollout.is_active:
            return
        rollout = stored.rollout
        try:
            prediction = await asyncio.to_thread(self._prediction, rollout)
        except PuppetError as err:
            log.error("The changes of %s are not compared with the preview: %s", report.host, err)
            prediction = None
        event = await asyncio.to_thread(run_reported, report, version, prediction)
        await self._store(environment, event)

    def _version_of_run(self, client: str, environment: str) -> str:
        """Return the version of the run that a report without one is of; '' when it is not known. Blocks, briefly."""
        if self.version_of_run is None:
            return self._sent.get((environment, client), "")
        try:
            return self.version_of_run(client, environment)
        except PuppetError as err:
            log.error("The report of %s is not counted: %s", client, err)
            return ""

    async def _store(self, environment: str, event: RolloutEvent) -> None:
        """Note an event and return when it is stored, or when that takes too long, which is logged."""
        saved = asyncio.get_running_loop().create_future()
        self._saving.append(saved)
        self._note(environment, event)
        try:
            async with asyncio.timeout(STORE_TIMEOUT):
                await saved
        except TimeoutError:
            log.warning("The state of the rollout of %s was not stored within %g seconds", environment, STORE_TIMEOUT)

    def _note(self, environment: str, event: RolloutEvent) -> None:
        events = self._events.setdefault(environment, [])
        if len(events) >= MAX_EVENTS:
            log.error("The rollout of %s cannot be stored, and no longer takes up what it observes", environment)
            return
        events.append(event)
        self._woken.set()

    def _prediction(self, rollout: Rollout) -> Prediction | None:
        """Return the prediction of a rollout, read once. Blocks."""
        environment, began = rollout.plan.environment, rollout.began
        known = self._predictions.get(environment)
        if known is None or known[0] != began:
            data = self.storage.load_prediction(rollout)
            known = self._predictions[environment] = began, None if data is None else Prediction.of(data)
        return known[1]

    # --- the state

    async def keep_watch(self) -> None:
        """Watch, forever."""
        self._loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep_states())
            group.create_task(self._keep_acting())

    async def hear(self) -> None:
        """Have the stored states looked at now, because they have changed."""
        self._woken.set()

    async def _keep_states(self) -> None:
        while True:
            await self.look()
            if await wait_for_event(self._woken, self.period if self._active or self._events else self.idle):
                await asyncio.sleep(self.gathering)
            self._woken.clear()

    async def look(self) -> None:
        """Bring the states of all rollouts up to date, and store them."""
        saving, self._saving = self._saving, []
        try:
            for environment in await asyncio.to_thread(self.storage.environments):
                events = self._events.pop(environment, [])
                try:
                    await self._look_at(environment, events)
                    self._problems.pop(environment, None)
                except (PuppetError, OSError) as err:
                    self._note_problem(environment, f"The rollout of {environment} could not be stored: {err}")
                    self._events[environment] = [*events, *self._events.get(environment, [])][:MAX_EVENTS]
            self._problems.pop("", None)
        except (PuppetError, OSError) as err:
            self._note_problem("", f"The rollouts could not be read: {err}")
        finally:
            for future in saving:
                if not future.done():
                    future.set_result(None)

    def _note_problem(self, environment: str, problem: str) -> None:
        if self._problems.get(environment) != problem:  # not each second
            log.error("%s", problem)
        self._problems[environment] = problem

    async def _look_at(self, environment: str, events: Sequence[RolloutEvent]) -> None:
        before, rollout = await asyncio.to_thread(self._advance, environment, events)
        if before is not None and rollout is not None:
            for _, text in (entry for entry in rollout.log if entry not in before.log):
                log.log(NOTICE, "Rollout of %s to %s: %s", environment, rollout.plan.ref or rollout.plan.after, text)
        if rollout is not None and rollout.is_active:
            self._active[environment] = rollout
            if rollout.plan.run_now and rollout.status == PROGRESSING and self.agents is not None:
                self._order(rollout, self.agents)
        elif self._active.pop(environment, None) is not None:
            self._sent = {key: version for key, version in self._sent.items() if key[0] != environment}
            self._ordered = {key: at for key, at in self._ordered.items() if key[0] != environment}
        if rollout is not None and due(rollout):
            self._acting.set()

    def _advance(self, environment: str, events: Sequence[RolloutEvent]) -> tuple[Rollout, Rollout] | tuple[None, None]:
        """Return the state before and after events; it is stored when something but the time has changed. Blocks; PuppetError, OSError."""

        def change(before: Rollout, now: float) -> Rollout:
            if not before.is_active and not any(isinstance(event, Announced) for event in events):
                return before
            rollout = advance(before, events, now)
            is_same = replace(rollout, at=before.at, elapsed=before.elapsed) == before
            return before if is_same and abs(rollout.at - before.at) < HEARTBEAT else rollout

        return update_rollout(self.storage, environment, change)

    def _order(self, rollout: Rollout, agents: WaitingAgents) -> None:
        """Have nodes of the open waves run that wait for an order: each once a step, and so many at the same time."""
        environment, now = rollout.plan.environment, self.clock()
        pending = {name for name, node in rollout.open_nodes() if node.status in (WAITING, RUNNING)}
        room = RUNS_AT_ONCE - sum(
            name in pending and step == rollout.step and now - at < ORDERED
            for (place, step, name), at in self._ordered.items()
            if place == environment
        )
        for name in agents.nodes:
            key = environment, rollout.step, name
            if room > 0 and name in pending and key not in self._ordered and agents.send(name, RunOrder(str(uuid.uuid4())), ORDERED):
                log.info("Ordered %s to run, because its wave is open", name)
                self._ordered[key] = now
                room -= 1

    # --- what is done outside

    async def _keep_acting(self) -> None:
        while True:
            await self._acting.wait()
            self._acting.clear()
            with suppress(PuppetError):  # what cannot be read is logged where it is looked at
                for environment in await asyncio.to_thread(self.storage.environments):
                    await self._act_alone(environment)

    async def _act_alone(self, environment: str) -> None:
        """Do what is due, unless another master does it."""
        with suppress(PuppetError):
            if await self._is_due(environment) and await asyncio.to_thread(self.storage.claim, environment):
                try:
                    # As it is now: another master may just have done it.
                    stored = await asyncio.to_thread(self.storage.load, environment)
                    if stored is not None:
                        await self._act(stored.rollout)
                finally:
                    await asyncio.to_thread(self.storage.release, environment)

    async def _is_due(self, environment: str) -> bool:
        stored = await asyncio.to_thread(self.storage.load, environment)
        return stored is not None and bool(due(stored.rollout))

    async def _act(self, rollout: Rollout) -> None:
        """Do what a state asks for; each is done again when this process ends before its event is stored."""
        plan, wanted = rollout.plan, due(rollout)
        if wanted.check:
            await self._store(plan.environment, await self._asked(rollout))
        if wanted.switch and time.monotonic() - self._tried.get(plan.environment, -RETRY) >= RETRY:
            self._tried[plan.environment] = time.monotonic()
            try:
                await self.switch(plan.environment, plan.after)
            except PuppetError as err:
                log.error("The rollout of %s has reached all waves, but its link could not be switched: %s", plan.environment, err)
                await self._store(plan.environment, LinkSwitched(str(err)))
            else:
                await self._store(plan.environment, LinkSwitched())
        if wanted.announce:
            await self._announce(rollout)
            await self._store(plan.environment, Announced(rollout.status))

    async def _asked(self, rollout: Rollout) -> CheckAnswered:
        """Return the answer of the site's program, which gets the status and agrees by ending with 0."""
        try:
            code, output, text = await self._run(rollout.plan.check, rollout, "check the rollout")
        except PuppetError as err:
            return CheckAnswered(rollout.step, passed=False, text=str(err))
        words = (text or output.decode("utf-8", "replace")).strip()[:500]
        return CheckAnswered(rollout.step, passed=code == 0, text=words or f"{rollout.plan.check} ended with {code}")

    async def _announce(self, rollout: Rollout) -> None:
        level = logging.ERROR if rollout.bad else NOTICE
        reason = f": {rollout.reason}" if rollout.reason else ""
        log.log(level, "The rollout of %s is %s%s", rollout.plan.environment, rollout.status, reason)
        if not rollout.plan.notify:
            return
        try:
            code, _, text = await self._run(rollout.plan.notify, rollout, "tell of the rollout")
            if code != 0:
                log.error("%s ended with %s: %s", rollout.plan.notify, code, text)
        except PuppetError as err:
            log.error("%s", err)

    async def _run(self, program: str, rollout: Rollout, what: str) -> tuple[int, bytes, str]:
        if self.programs is not None:
            await asyncio.to_thread(require_program, program, self.programs)
        body = await asyncio.to_thread(lambda: plainjson.dumps(status_of(rollout)))
        environ = {"PATH": os.defpath, "LANG": "C.UTF-8"}
        return await run_output([program], timeout=self.timeout, most=MAX_OUTPUT, environ=environ, what=what, stdin=body)

    # --- numbers

    def describe(self, metrics: Metrics) -> None:
        """Describe the nodes of rollouts under way by state."""

        def nodes() -> Samples:
            counts = {name: Counter(node.status for node in rollout.nodes.values()) for name, rollout in self._active.items()}
            return [((environment, state), counted[state]) for environment, counted in counts.items() for state in NODE_STATES]

        def stopped() -> Samples:
            return [((environment,), int(rollout.status == STOPPED)) for environment, rollout in self._active.items()]

        metrics.read("puppet_rollout_nodes", "gauge", "Nodes of a rollout under way, by state.", nodes, "environment", "state")
        metrics.read("puppet_rollout_stopped", "gauge", "1: a rollout has stopped and waits for an administrator.", stopped, "environment")


@dataclass(frozen=True, slots=True)
class WatchedCompiler:
    """A compiler whose catalogs the rollouts see."""

    rollouts: RolloutWatch
    compile: CompileCatalog

    async def __call__(self, job: CompileJob) -> CompiledCatalog:
        return await self.rollouts.catalog(job, self.compile)


def simulating(catalog: CompiledCatalog) -> CompiledCatalog:
    """Return a catalog all of whose resources are in noop mode. Blocks: it is parsed."""
    data = plainjson.loads_trusted(catalog.body)
    for resource in data["resources"]:
        if resource["type"] not in ("Class", "Stage"):
            resource["parameters"] = {**resource.get("parameters", {}), "noop": True}
    return CompiledCatalog.of(plainjson.dumps(data), catalog.stored, catalog.code_id)

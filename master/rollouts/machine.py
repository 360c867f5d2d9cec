"""
The state of a rollout and how it changes: pure, with the time as an argument.

`advance` takes a state and events to the next state. What has to be done outside follows from a state alone (`due`), so that whoever
restarts with a stored state continues where it was.

    progressing ─ limit passed, check failed ─▶ stopped ─ resume ─▶ progressing
         │  ▲                            └────▶ rolled-back
       pause resume                             (any of these) ─ abort ─▶ aborted
         ▼  │
       paused                progressing ─ last wave done ─▶ completing ─ link switched ─▶ completed
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from .waves import Wave, wave_of

PROGRESSING, PAUSED, STOPPED, COMPLETING = "progressing", "paused", "stopped", "completing"
COMPLETED, ROLLED_BACK, ABORTED = "completed", "rolled-back", "aborted"
ACTIVE: Final = frozenset({PROGRESSING, PAUSED, STOPPED, COMPLETING})

WAITING, RUNNING, GOOD, CHANGED, FAILED, SILENT, UNFORESEEN = NODE_STATES = (
    "waiting", "running", "good", "changed", "failed", "silent", "unforeseen",
)  # fmt: skip
BAD: Final = frozenset({FAILED, SILENT, UNFORESEEN})
MAX_GAP: Final = 120.0
"""Seconds: more between two looks do not count, because nobody watched, or somebody changed the clock."""
MAX_PROBLEMS: Final = 5
MAX_NODES: Final = 200_000
_LOG: Final = 50


@dataclass(frozen=True, slots=True)
class BadNodesLimit:
    """The most nodes that may be bad: a number, or a percentage of the nodes that have the new version."""

    number: int = 0
    percent: float | None = None

    def of(self, nodes: int) -> int:
        return self.number if self.percent is None else int(nodes * self.percent / 100)

    def __str__(self) -> str:
        return str(self.number) if self.percent is None else f"{self.percent:g}%"


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """One step: a wave of this number gets the new version, in noop mode or for real."""

    wave: int
    noop: bool = False


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """
    What does not change during a rollout.

    Attributes:
        before, after: The versions' names.
        wait: Seconds that each wave lasts at least.
        interval: Seconds between two runs of an agent; a node is silent after twice as many.
        check, notify: Programs of the site's; '' for none.
        run_now: Whether nodes that wait for orders run as soon as their wave opens.
    """

    environment: str
    before: str
    after: str
    waves: tuple[Wave, ...]
    ref: str = ""
    wait: float = 1800.0
    interval: float = 1800.0
    max_failed: BadNodesLimit = BadNodesLimit()
    noop_first: bool = False
    rolls_back: bool = False
    check: str = ""
    notify: str = ""
    run_now: bool = False

    @property
    def steps(self) -> tuple[RolloutStep, ...]:
        return tuple(
            RolloutStep(wave, noop) for wave in range(len(self.waves)) for noop in ((True, False) if self.noop_first else (False,))
        )


@dataclass(frozen=True, slots=True)
class RolloutNode:
    """
    A node in a rollout.

    Attributes:
        since: When it was last heard of, or its wave began, in seconds of the rollout.
        failing: Whether its last run with the version before failed.
        accepted: Whether it is bad, and does not count: an administrator resumed after that, or it was silent from the start.
        problems: The errors, or the changes that were not foreseen.
        habits: Changes of its last run with the version before, which are not the new version's.
        touched: Whether it got the new version, and not only to simulate it.
    """

    wave: int
    status: str = WAITING
    since: float = 0.0
    failing: bool = False
    accepted: bool = False
    problems: tuple[str, ...] = ()
    habits: tuple[str, ...] = ()
    touched: bool = False


@dataclass(frozen=True, slots=True)
class Rollout:
    """
    The state of a rollout.

    Attributes:
        step: The number of the open step.
        began, at: When it began and when it was last looked at, in seconds since the epoch.
        elapsed: Seconds for which it was watched; `opened` is when the step began, on that clock.
        checked: Whether the site's program agrees to the end of this step.
        announced: The last status that people were told.
        log: What happened, the latest last, with seconds since the epoch.
    """

    plan: RolloutPlan
    nodes: Mapping[str, RolloutNode]
    began: float
    at: float
    status: str = PROGRESSING
    reason: str = ""
    step: int = 0
    elapsed: float = 0.0
    opened: float = 0.0
    checked: bool = False
    announced: str = ""
    log: tuple[tuple[float, str], ...] = ()

    @property
    def is_active(self) -> bool:
        return self.status in ACTIVE

    @property
    def current(self) -> RolloutStep:
        return self.plan.steps[self.step]

    @property
    def step_name(self) -> str:
        return self.plan.waves[self.current.wave].name + (" (noop)" if self.current.noop else "")

    def wave_of(self, certname: str) -> int:
        """Return the number of a node's wave."""
        node = self.nodes.get(certname)
        return node.wave if node is not None else wave_of(self.plan.waves, certname)

    def is_open(self, certname: str) -> bool:
        """Return whether the wave of a node is open."""
        return self.is_active and self.wave_of(certname) <= self.current.wave

    def has_new_version(self, certname: str) -> bool:
        """Return whether a node's next run gets the new version: if its wave is open, and after a stop if it got it already."""
        if self.status == STOPPED:
            return certname in self.nodes and self.nodes[certname].touched
        return self.is_open(certname)

    def is_noop(self, certname: str) -> bool:
        """Return whether a node only simulates the new version."""
        return self.current.noop and self.wave_of(certname) == self.current.wave

    def open_nodes(self) -> Iterator[tuple[str, RolloutNode]]:
        """Yield the nodes of the waves that have the new version."""
        last = self.current.wave
        return ((name, node) for name, node in self.nodes.items() if node.wave <= last)

    @property
    def bad(self) -> int:
        """The number of nodes that count against the limit."""
        return sum(node.status in BAD and not node.accepted for _, node in self.open_nodes())

    @property
    def pending(self) -> int:
        """The number of nodes that the step still waits for."""
        return sum(node.status in (WAITING, RUNNING) for _, node in self.open_nodes())

    @property
    def is_empty(self) -> bool:
        """Whether the open wave has no node."""
        return all(node.wave != self.current.wave for node in self.nodes.values())

    @property
    def remaining(self) -> float:
        """The seconds that the step lasts at least."""
        return 0.0 if self.is_empty else max(0.0, self.opened + self.plan.wait - self.elapsed)


@dataclass(frozen=True, slots=True)
class CatalogSent:
    """A node got its catalog, of this version."""

    node: str
    version: str


@dataclass(frozen=True, slots=True)
class RunReported:
    """
    A run's report, or its end because its catalog did not compile.

    Attributes:
        compiled: Whether there was a catalog.
        noop: Whether it only simulated because its catalog says so.
        changes: Its changes, corrective ones left out; unforeseen: those of them that the prediction does not name.
    """

    node: str
    version: str
    failed: bool = False
    compiled: bool = True
    changed: bool = False
    noop: bool = False
    message: str = ""
    changes: tuple[str, ...] = ()
    unforeseen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckAnswered:
    """The site's program was asked at the end of a step."""

    step: int
    passed: bool
    text: str = ""


@dataclass(frozen=True, slots=True)
class RolloutCommand:
    """An administrator's `pause`, `resume` or `abort`; a pause or an abort may have a reason."""

    action: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LinkSwitched:
    """The environment's link was switched to the new version; with an error it was not."""

    error: str = ""


@dataclass(frozen=True, slots=True)
class Announced:
    """People were told a status."""

    status: str


RolloutEvent = CatalogSent | RunReported | CheckAnswered | RolloutCommand | LinkSwitched | Announced


@dataclass(frozen=True, slots=True)
class Due:
    """What has to be done outside: ask the site's program, switch the link, tell people."""

    check: bool = False
    switch: bool = False
    announce: bool = False

    def __bool__(self) -> bool:
        return self.check or self.switch or self.announce


def begin(
    plan: RolloutPlan,
    nodes: Iterable[str],
    now: float,
    *,
    failing: Iterable[str] = (),
    silent: Iterable[str] = (),
    habits: Mapping[str, Sequence[str]] | None = None,
) -> Rollout:
    """
    Return a rollout that begins: its first wave is open.

    Args:
        failing: Nodes whose last run failed. silent: nodes that had stopped to report before.
        habits: By node the changes of its last run.
    """
    failed, absent = frozenset(failing), frozenset(silent)
    states = {
        name: RolloutNode(
            wave_of(plan.waves, name),
            SILENT if name in absent else WAITING,
            failing=name in failed,
            accepted=name in absent,
            habits=tuple((habits or {}).get(name, ())),
        )
        for name in sorted(nodes)
    }
    rollout = Rollout(plan, states, began=now, at=now)
    return _settled(_noted(rollout, f"wave {rollout.step_name} opened"))


def advance(rollout: Rollout, events: Iterable[RolloutEvent], now: float) -> Rollout:
    """Return the state after events at a time in seconds since the epoch."""
    passed = min(max(now - rollout.at, 0.0), MAX_GAP)
    rollout = replace(rollout, at=now, elapsed=rollout.elapsed + passed, nodes=dict(rollout.nodes))
    for event in events:
        rollout = _RULES[type(event)](rollout, event)
    if not rollout.is_active or rollout.status == COMPLETING:
        return rollout
    return _settled(_without_silent(rollout))


def due(rollout: Rollout) -> Due:
    """Return what has to be done outside in this state."""
    tells = rollout.status in (STOPPED, ROLLED_BACK, ABORTED, COMPLETED) and rollout.announced != rollout.status
    asks = rollout.status == PROGRESSING and bool(rollout.plan.check) and not rollout.checked and _is_over(rollout)
    return Due(check=asks, switch=rollout.status == COMPLETING, announce=tells)


def _is_over(rollout: Rollout) -> bool:
    return rollout.pending == 0 and rollout.remaining == 0


def _settled(rollout: Rollout) -> Rollout:
    """Return the state after the limit was looked at, and the steps that are over were left."""
    allowed = rollout.plan.max_failed.of(sum(1 for _ in rollout.open_nodes()))
    if rollout.status in (PROGRESSING, PAUSED) and (bad := rollout.bad) > allowed:
        return _stopped(rollout, f"{bad} bad {'node' if bad == 1 else 'nodes'}, {rollout.plan.max_failed} allowed")
    while rollout.status == PROGRESSING and _is_over(rollout):
        if rollout.plan.check and not rollout.checked and not rollout.is_empty:
            return rollout
        if rollout.step + 1 == len(rollout.plan.steps):
            return _noted(replace(rollout, status=COMPLETING), "all waves are done")
        rollout = _opened(rollout)
    return rollout


def _opened(rollout: Rollout) -> Rollout:
    """Return the state in which the next step is open."""
    rollout = replace(rollout, step=rollout.step + 1, opened=rollout.elapsed, checked=False)
    wave = rollout.current.wave
    opened = {
        name: replace(node, status=WAITING, since=rollout.elapsed, problems=())
        for name, node in rollout.nodes.items()
        if node.wave == wave and not node.accepted
    }
    return _noted(replace(rollout, nodes={**rollout.nodes, **opened}), f"wave {rollout.step_name} opened")


def _stopped(rollout: Rollout, reason: str) -> Rollout:
    status = ROLLED_BACK if rollout.plan.rolls_back else STOPPED
    return _noted(replace(rollout, status=status, reason=f"{reason} (wave {rollout.step_name})"), f"{status}: {reason}")


def _noted(rollout: Rollout, text: str) -> Rollout:
    return replace(rollout, log=(*rollout.log, (rollout.at, text))[-_LOG:])


def _without_silent(rollout: Rollout) -> Rollout:
    """Return the state in which open nodes that have not been heard of for too long are silent."""
    latest = rollout.elapsed - 2 * rollout.plan.interval
    silent = {
        name: replace(node, status=SILENT, problems=("no report",))
        for name, node in rollout.open_nodes()
        if node.since < latest and node.status not in BAD
    }
    return replace(rollout, nodes={**rollout.nodes, **silent}) if silent else rollout


def _with(rollout: Rollout, name: str, node: RolloutNode) -> Rollout:
    nodes = rollout.nodes
    if name in nodes or len(nodes) < MAX_NODES:
        assert isinstance(nodes, dict)  # the copy that `advance` made
        nodes[name] = node
    return rollout


def _node(rollout: Rollout, name: str) -> RolloutNode:
    return rollout.nodes.get(name) or RolloutNode(rollout.wave_of(name), since=rollout.elapsed)


def _is_watched(rollout: Rollout, event: CatalogSent | RunReported) -> bool:
    """Return whether an event is of the new version, at a node of an open wave."""
    return event.version == rollout.plan.after and rollout.is_open(event.node)


def _catalog_sent(rollout: Rollout, event: CatalogSent) -> Rollout:
    if not _is_watched(rollout, event):
        return rollout
    node = _node(rollout, event.node)
    status = RUNNING if node.status in (WAITING, SILENT) else node.status
    accepted, touched = node.accepted and status != RUNNING, node.touched or not rollout.is_noop(event.node)
    return _with(rollout, event.node, replace(node, status=status, since=rollout.elapsed, accepted=accepted, touched=touched))


def _run_reported(rollout: Rollout, event: RunReported) -> Rollout:
    if not rollout.is_active:
        return rollout
    node = _node(rollout, event.node)
    if not _is_watched(rollout, event):
        if event.version == rollout.plan.before and node.status in (WAITING, SILENT) and not rollout.is_open(event.node):
            # A node that was silent from the start has come back: its wave waits for it.
            node = replace(node, status=WAITING, accepted=False, failing=event.failed, habits=event.changes)
            return _with(rollout, event.node, node)
        return rollout
    if event.noop and not rollout.is_noop(event.node):
        return rollout  # its run began before the wave was opened for real
    was_accepted = node.accepted and node.status != SILENT
    unforeseen = tuple(change for change in event.unforeseen if change not in node.habits)
    problems: tuple[str, ...] = ()
    if event.failed:
        status, problems = FAILED, (event.message or "the run failed",)
    elif unforeseen:
        status, problems = UNFORESEEN, unforeseen[:MAX_PROBLEMS]
    elif node.status == UNFORESEEN:
        status, problems = UNFORESEEN, node.problems
    else:
        # Later runs find nothing left to change: the node stays changed.
        status = CHANGED if event.changed or node.status in (CHANGED, FAILED) else GOOD
    accepted = status in BAD and (was_accepted or (status == FAILED and node.failing))
    touched = node.touched or (event.compiled and not rollout.is_noop(event.node))
    node = replace(node, status=status, since=rollout.elapsed, accepted=accepted, problems=problems, touched=touched)
    return _with(rollout, event.node, node)


def _check_answered(rollout: Rollout, event: CheckAnswered) -> Rollout:
    if rollout.status != PROGRESSING or event.step != rollout.step:
        return rollout
    return replace(rollout, checked=True) if event.passed else _stopped(rollout, f"the check failed: {event.text}")


def _commanded(rollout: Rollout, event: RolloutCommand) -> Rollout:
    """Return the state after a command; one that the state does not allow changes nothing (see `allowed_commands`)."""
    if event.action not in allowed_commands(rollout):
        return rollout
    if event.action == "abort":
        return _noted(replace(rollout, status=ABORTED, reason=event.reason), "aborted")
    if event.action == "pause":
        return _noted(replace(rollout, status=PAUSED, reason=event.reason), "paused")
    accepted = {name: replace(node, accepted=node.accepted or node.status in BAD) for name, node in rollout.open_nodes()}
    # A check that failed is asked again.
    rollout = replace(rollout, status=PROGRESSING, reason="", announced="", checked=False, nodes={**rollout.nodes, **accepted})
    return _noted(rollout, "resumed")


def allowed_commands(rollout: Rollout) -> tuple[str, ...]:
    """Return the commands that a rollout takes in its state."""
    return {
        PROGRESSING: ("pause", "abort"),
        PAUSED: ("resume", "abort"),
        STOPPED: ("resume", "abort"),
        COMPLETING: ("abort",),
    }.get(rollout.status, ())


def _link_switched(rollout: Rollout, event: LinkSwitched) -> Rollout:
    if rollout.status != COMPLETING:
        return rollout
    if event.error:
        return replace(rollout, reason=event.error)
    return _noted(replace(rollout, status=COMPLETED, reason=""), "completed")


def _announced(rollout: Rollout, event: Announced) -> Rollout:
    return replace(rollout, announced=event.status)


_RULES: Final[Mapping[type, Callable[..., Rollout]]] = {
    CatalogSent: _catalog_sent,
    RunReported: _run_reported,
    CheckAnswered: _check_answered,
    RolloutCommand: _commanded,
    LinkSwitched: _link_switched,
    Announced: _announced,
}


@dataclass(frozen=True, slots=True)
class StoredRollout:
    """A rollout as it is stored, with the number that each saving raises."""

    rollout: Rollout
    revision: int = 0

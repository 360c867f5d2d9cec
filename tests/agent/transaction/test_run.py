"""Whole runs over a fake type: events, failures, skips, noop, and what the report says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent.state.runlog import RunLog
from agent.state.statefiles import StateFile, TransactionStore
from agent.transaction.context import ApplyContext
from agent.transaction.run import ApplyResult, apply_catalog
from agent.transaction.summary import ReportHeader, report_of
from shared.errors import ResourceError
from shared.models.catalog import Catalog
from shared.ral import (
    Command,
    Param,
    Platform,
    Property,
    Provider,
    Providers,
    Ref,
    State,
    Type,
    Value,
    ensurable,
)
from shared.ral.catalog import resources_of
from shared.ral.components import Unmanaged
from shared.types.schedule import Schedule

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class Box(Type, name="box", refreshable=True):
    """Something with a lid."""

    ensure = ensurable()
    name = Param(str, namevar=True)
    lid = Property(str, values=("shut", Value("open", event="box_opened", invalidate_refreshes=True)))
    label = Property(str)
    makes = Param(str, many=True)
    holds = Param(str, many=True)


@dataclass
class World:
    """The boxes there are, and what was done to them."""

    boxes: dict[str, dict[str, Any]] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)  # `what name`


class Shelf(Provider[Box], type=Box):
    def __init__(self, world: World) -> None:
        self.world = world

    def _do(self, what: str, box: Box) -> None:
        if f"{what} {box.name}" in self.world.broken:
            raise ResourceError(f"cannot {what} {box.name}")
        self.world.done.append(f"{what} {box.name}")

    async def retrieve(self, resource: Box) -> State | None:
        if f"read {resource.name}" in self.world.broken:
            raise OSError(5, "Input/output error", "/dev/shelf")
        return self.world.boxes.get(resource.name)

    async def create(self, resource: Box, state: State | None) -> None:
        self._do("create", resource)
        self.world.boxes[resource.name] = {"lid": resource.lid or "shut", "label": resource.label}

    async def destroy(self, resource: Box, state: State | None) -> None:
        self._do("destroy", resource)
        del self.world.boxes[resource.name]

    async def set(self, resource: Box, attribute: str, wanted: Any, state: State | None) -> None:
        self._do(f"set {attribute}", resource)
        self.world.boxes[resource.name] = {**self.world.boxes[resource.name], attribute: wanted}

    async def flush(self, resource: Box, now: State | None) -> None:
        self._do("flush", resource)

    async def refresh(self, resource: Box) -> None:
        self._do("refresh", resource)

    async def generate(self, resource: Box) -> Sequence[Type]:
        return [resource.child(title, {"ensure": "present"}) for title in resource.makes]

    async def eval_generate(self, resource: Box) -> Sequence[Type]:
        return [resource.child(title, {"ensure": "present"}) for title in resource.holds]


def box(title: str, **parameters: Any) -> dict[str, Any]:
    tags = ["box", *parameters.pop("tags", [])]
    secret = parameters.pop("secret", [])
    return {
        "type": "Box",
        "title": title,
        "kind": "compilable_type",
        "tags": tags,
        "parameters": parameters,
        "sensitive_parameters": secret,
    }


CONTAINERS = [{"type": "Stage", "title": "main", "kind": "class"}, {"type": "Class", "title": "main", "kind": "class"}]


@dataclass
class Run:
    applied: ApplyResult
    log: RunLog
    world: World

    @property
    def said(self) -> list[str]:
        return [f"{line.level} {line.source}: {line.message}" for line in self.log.lines if line.source != "Puppet"]

    @property
    def said_by_puppet(self) -> list[str]:
        return [f"{line.level} {line.message}" for line in self.log.lines if line.source == "Puppet" and "seconds" not in line.message]

    def flags(self, title: str) -> set[str]:
        status = self.applied.statuses[f"Box[{title}]"]
        return {name for name in ("changed", "failed", "skipped", "failed_to_restart", "restarted", "out_of_sync") if getattr(status, name)}

    def events(self, title: str) -> list[tuple[str | None, str | None, str | None]]:
        return [(event.name, event.status, event.message) for event in self.applied.statuses[f"Box[{title}]"].events]


async def run(
    world: World, *resources: dict[str, Any], contained: bool = False, store: TransactionStore | None = None, **options: Any
) -> Run:
    edges = []
    if contained:
        edges = [("Stage[main]", "Class[main]"), *(("Class[main]", f"{r['type']}[{r['title']}]") for r in resources)]
        resources = (*CONTAINERS, *resources)
    catalog = Catalog.from_data({"name": "n", "resources": list(resources), "edges": [{"source": s, "target": t} for s, t in edges]})
    from shared.types.stage import Stage

    types: Mapping[str, type[Type]] = {"box": Box, "schedule": Schedule, "stage": Stage, "tool": Tool}
    log = RunLog(level=options.pop("level", "info"), now=lambda: NOW)
    providers = Providers({"box": lambda: [Shelf(world)], "tool": lambda: [Missing()]}, Platform())
    context = ApplyContext(
        log=log, providers=providers, state=options.pop("state", StateFile(None)), store=store, now=lambda: NOW, **options
    )
    return Run(await apply_catalog(resources_of(catalog, types, known=frozenset({"package"})), context), log, world)


async def test_what_is_missing_is_created_with_all_its_properties_and_flushed_once() -> None:
    it = await run(World(), box("a", ensure="present", label="x"))
    assert it.world.done == ["create a", "flush a"]
    assert it.events("a") == [("box_created", "success", "created")]
    assert it.said == ["notice /Box[a]/ensure: created"]


async def test_each_property_is_set_by_itself_and_a_second_run_is_quiet() -> None:
    world = World({"a": {"lid": "shut", "label": "old"}})
    first = await run(world, box("a", ensure="present", lid="open", label="new"))
    assert world.done == ["set lid a", "set label a", "flush a"]
    assert first.events("a") == [
        ("box_opened", "success", "lid changed 'shut' to 'open'"),
        ("label_changed", "success", "label changed 'old' to 'new'"),
    ]
    second = await run(world, box("a", ensure="present", lid="open", label="new"))
    assert second.flags("a") == set() and second.said == [] and len(world.done) == 3


async def test_noop_says_the_same_without_the_last_call() -> None:
    it = await run(World({"b": {"lid": "shut"}}), box("a", ensure="present"), box("b", ensure="absent"), box("c", label="x"), noop=True)
    assert it.world.done == []
    assert it.events("a") == [("box_created", "noop", "current_value 'absent', should be 'present' (noop)")]
    assert it.events("b") == [("box_removed", "noop", "current_value 'present', should be 'absent' (noop)")]
    report = report_of(ReportHeader("n", NOW, "production", "7.23.0", noop=True), it.log, it.applied)
    assert (report.status, report.noop_pending, report.exit_bits) == ("unchanged", True, 0)


async def test_a_resources_own_noop_beats_the_runs() -> None:
    it = await run(World(), box("a", ensure="present", noop=False), box("b", ensure="present"), noop=True)
    assert it.world.done == ["create a", "flush a"]
    other = await run(World(), box("a", ensure="present", noop=True), box("b", ensure="present"))
    assert other.world.done == ["create b", "flush b"]


async def test_a_property_that_fails_does_not_stop_the_others() -> None:
    world = World({"a": {"lid": "shut", "label": "old"}}, broken={"set lid a"})
    it = await run(world, box("a", lid="open", label="new"))
    assert it.flags("a") == {"failed", "changed", "out_of_sync"}
    assert it.events("a")[0] == ("box_opened", "failure", "change from 'shut' to 'open' failed: cannot set lid a")
    assert world.done == ["set label a", "flush a"]
    assert it.said_by_puppet == ["err cannot set lid a"]


@pytest.mark.parametrize("broken", ["flush a", "read a"])
async def test_what_cannot_be_read_or_flushed_fails_the_resource(broken: str) -> None:
    it = await run(World(broken={broken}), box("a", ensure="present"), box("b", ensure="present"))
    assert "failed" in it.flags("a") and it.flags("b") == {"changed", "out_of_sync"}
    detail = "Input/output error - /dev/shelf" if broken == "read a" else "cannot flush a"
    assert it.said[-2].endswith(f"Could not evaluate: {detail}")
    assert it.events("a")[-1] == ("resource_error", "failure", detail)


async def test_a_refresh_comes_once_after_the_target_for_all_events() -> None:
    it = await run(
        World(), box("a", ensure="present", notify="Box[c]"), box("b", ensure="present", notify=["Box[c]"]), box("c", ensure="absent")
    )
    assert it.world.done == ["create a", "flush a", "create b", "flush b", "refresh c"]
    assert it.said[-1] == "notice /Box[c]: Triggered 'refresh' from 2 events"
    assert it.flags("c") == {"changed", "out_of_sync", "restarted"}


async def test_a_refresh_travels_on_but_plain_order_does_not_carry_it() -> None:
    it = await run(
        World(), box("a", ensure="present"), box("b", subscribe="Box[a]"), box("c", subscribe="Box[b]"), box("d", require="Box[c]")
    )
    assert [each for each in it.world.done if each.startswith("refresh")] == ["refresh b", "refresh c"]


async def test_a_failed_resource_refreshes_nobody_and_its_dependents_are_skipped() -> None:
    it = await run(
        World(broken={"create a"}),
        box("a", ensure="present", notify="Box[b]"),
        box("b", ensure="present"),
        box("c", ensure="present", require="Box[b]"),
        box("d", ensure="present"),
    )
    assert [it.flags(title) for title in "abcd"] == [{"failed", "out_of_sync"}, {"skipped"}, {"skipped"}, {"changed", "out_of_sync"}]
    assert it.said[1:4] == [
        "notice /Box[b]: Dependency Box[a] has failures: true",
        "warning /Box[b]: Skipping because of failed dependencies",
        "warning /Box[c]: Skipping because of failed dependencies",
    ]


async def test_a_failed_refresh_fails_its_resource_and_skips_what_depends_on_it() -> None:
    it = await run(
        World({"b": {}}, broken={"refresh b"}),
        box("a", ensure="present", notify="Box[b]"),
        box("b"),
        box("c", ensure="present", require="Box[b]"),
    )
    assert it.flags("b") == {"failed", "failed_to_restart", "out_of_sync"} and it.flags("c") == {"skipped"}
    assert "err /Box[b]: Failed to call refresh: cannot refresh b" in it.said
    report = report_of(ReportHeader("n", NOW, "production", "7.23.0"), it.log, it.applied)
    assert (report.status, report.exit_bits) == ("failed", 6)


async def test_a_noop_event_triggers_nothing_for_real() -> None:
    it = await run(World(), box("a", ensure="present", noop=True), box("b", subscribe="Box[a]"), contained=True)
    assert it.world.done == []
    assert "notice /Stage[main]/Main/Box[b]: Would have triggered 'refresh' from 1 event" in it.said
    assert it.said[-1] == "notice Stage[main]: Would have triggered 'refresh' from 1 event"


async def test_a_change_that_makes_a_refresh_pointless_drops_it() -> None:
    it = await run(World({"b": {"lid": "shut"}}), box("a", ensure="present", notify="Box[b]"), box("b", ensure="present", lid="open"))
    assert "refresh b" not in it.world.done
    assert "info /Box[b]: Unscheduling refresh on Box[b]" in it.said


@pytest.mark.parametrize(
    ("options", "done"),
    [
        ({"tags": ["one"]}, ["a", "b"]),
        ({"tags": ["TWO"]}, ["b"]),
        ({"skip_tags": ["two"]}, ["a", "c"]),
        ({"tags": ["one"], "skip_tags": ["two"]}, ["a"]),
        ({"tags": ["nosuch"]}, []),
    ],
)
async def test_tags_choose_what_is_evaluated(options: dict[str, Any], done: list[str]) -> None:
    resources = [box("a", ensure="present", tags=["one"]), box("b", ensure="present", tags=["one", "two"]), box("c", ensure="present")]
    it = await run(World(), *resources, **options)
    assert [each.split()[1] for each in it.world.done if each.startswith("create")] == done


async def test_a_skipped_target_loses_its_events() -> None:
    it = await run(World(), box("a", ensure="present", tags=["one"], notify="Box[b]"), box("b"), tags=["one"])
    assert it.said[-1] == "info /Box[b]: Unscheduling all events on Box[b]"


async def test_a_schedule_decides_by_the_time_of_the_last_check() -> None:
    schedule = {"type": "Schedule", "title": "daily", "parameters": {"period": "daily"}}
    state = StateFile(None)
    first = await run(World(), schedule, box("a", ensure="present", schedule="daily"), state=state)
    assert first.world.done
    state.entry("Box[a]")["checked"] = NOW
    again = await run(World(), schedule, box("a", ensure="present", schedule="daily"), state=state)
    assert again.flags("a") == {"skipped"}
    forced = await run(World(), schedule, box("a", ensure="present", schedule="daily"), state=state, ignore_schedules=True)
    assert forced.world.done


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ({"schedule": "nosuch"}, "Could not find schedule nosuch"),
        ({"provider": "nosuch"}, "Parameter provider failed on Box[a]: Invalid box provider 'nosuch'\nThis version has: shelf."),
    ],
)
async def test_a_resource_that_names_an_unknown_thing_stops_the_run_before_anything_is_applied(
    attribute: dict[str, str], message: str
) -> None:
    it = await run(World(), box("b", ensure="present"), box("a", ensure="present", **attribute))
    assert it.said_by_puppet[-1] == f"err Failed to apply catalog: {message}"
    assert it.world.done == [] and not it.applied.completed


async def test_a_resource_with_a_provider_of_another_system_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Box, "elsewhere", frozenset({"crate"}))
    it = await run(World(), box("a", ensure="present", provider="crate"), box("after", require="Box[a]"), box("b", ensure="present"))
    said = "err /Box[a]: Provider crate is not functional on this host\nThis version has: shelf."
    assert said in it.said
    assert (it.flags("a"), it.flags("after")) == ({"failed"}, {"skipped"})
    assert it.world.done == ["create b", "flush b"] and it.applied.completed


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("autorequire", "ZeroDivisionError: integer division or modulo by zero"),
        ("autonotify", "ZeroDivisionError: integer division or modulo by zero"),
        ("pre_run_check", "Some pre-run checks failed"),
    ],
)
async def test_a_type_whose_code_raises_stops_the_run_before_anything_is_applied(
    method: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def divide(box: Box, *arguments: object) -> Sequence[Ref]:
        return [Ref("box", str(1 // (box.name != "a")))]

    monkeypatch.setattr(Box, method, divide)
    it = await run(World(), box("b", ensure="present"), box("a", ensure="present"))
    assert it.said_by_puppet[-1] == f"err Failed to apply catalog: {error}"
    assert it.world.done == [] and not it.applied.completed


async def test_a_cycle_applies_nothing_and_fails_its_members() -> None:
    it = await run(World(), box("a", ensure="present", require="Box[b]"), box("b", require="Box[a]"), box("c", ensure="present"))
    assert it.world.done == []
    assert it.events("a") == [("resource_error", "failure", "resource is part of a dependency cycle")]
    assert it.said_by_puppet[-1] == "err Failed to apply catalog: One or more resource dependency cycles detected in graph"


async def test_the_graphs_of_a_run_are_written_when_wanted(tmp_path: Path) -> None:
    await run(World(), box("a", ensure="present"), box("b", require="Box[a]"), contained=True, graphs=tmp_path)
    assert '    "Class[Main]" -> "Box[a]" [\n        fontsize = 8\n    ]\n' in (tmp_path / "resources.dot").read_text()
    assert '"Box[a]" -> "Box[b]"' in (tmp_path / "relationships.dot").read_text()
    assert '"Box[b]" -> "Whit[completed_Class[Main]]"' in (tmp_path / "expanded_relationships.dot").read_text()
    it = await run(World(), box("a", require="Box[b]"), box("b", require="Box[a]"), graphs=tmp_path)
    assert (tmp_path / "cycles.dot").read_text().splitlines()[2] == '"Box[a]" -> "Box[b]" -> "Box[a]"'
    assert it.said_by_puppet[0].endswith(f"Cycle graph written to {tmp_path}/cycles.dot.")


async def test_evaltrace_counts_every_node_of_the_graph() -> None:
    it = await run(World(), box("a", ensure="present"), box("b", ensure="present"), contained=True, evaltrace=True)
    started = [line.message for line in it.log.lines if line.message.startswith("Starting to evaluate")]
    assert started == [f"Starting to evaluate the resource ({number} of {len(started)})" for number in range(1, len(started) + 1)]
    assert sum(line.message.startswith("Evaluated in ") for line in it.log.lines) == len(started) > 2


async def test_a_stop_lets_the_current_resource_finish_and_skips_the_rest() -> None:
    """R-39"""
    world = World()
    it = await run(world, box("a", ensure="present"), box("b", ensure="present"), box("c", require="Box[b]"), stop=lambda: bool(world.done))
    assert world.done == ["create a", "flush a"]
    assert [it.flags(title) for title in "abc"] == [{"changed", "out_of_sync"}, {"skipped"}, {"skipped"}]


async def test_generated_resources_come_behind_their_generator_with_its_tags() -> None:
    it = await run(World(), box("a", ensure="present", makes=["a1", "a2"], tags=["t"]), box("b", ensure="present"), contained=True)
    assert [each for each in it.world.done if each.startswith("create")] == ["create a", "create a1", "create a2", "create b"]
    status = it.applied.statuses["Box[a1]"]
    assert status.containment_path == ["Stage[main]", "Main", "Box[a1]"] and "t" in status.tags


async def test_what_waits_for_a_resource_waits_for_its_contents_and_their_failures() -> None:
    it = await run(
        World(broken={"create in2"}), box("a", ensure="present", holds=["in1", "in2"], before="Box[z]"), box("z", ensure="present")
    )
    assert it.world.done == ["create a", "flush a", "create in1", "flush in1"]
    assert it.flags("z") == {"skipped"}
    assert "info a: Unscheduling all events on a" in it.said


async def test_a_generated_resource_that_is_declared_is_the_declared_one() -> None:
    it = await run(World({"x": {}}), box("a", ensure="present", holds=["x"]), box("x", ensure="absent"))
    assert it.world.done == ["create a", "flush a", "destroy x", "flush x"]


async def test_a_type_that_is_not_supported_fails_its_resource_only() -> None:
    """AG-09"""
    package = {"type": "Package", "title": "p", "kind": "compilable_type", "parameters": {"ensure": "installed", "before": "Box[b]"}}
    it = await run(World(), package, box("a", ensure="present"), box("b", ensure="present"))
    assert it.applied.statuses["Package[p]"].failed and it.flags("b") == {"skipped"} and it.world.done == ["create a", "flush a"]
    text, _, hint = it.said[0].partition("\n")
    assert text == "err /Package[p]: Could not evaluate: The type 'package' is not supported by this agent yet"
    assert hint and not any(hint in line for line in it.said[1:])  # one error is one line of the log
    assert report_of(ReportHeader("n", NOW, "production", "7.23.0"), it.log, it.applied).exit_bits == 6


class Tool(Type, name="tool"):
    name = Param(str, namevar=True)
    size = Property(int)


class Missing(Provider[Tool], type=Tool):
    run = Command("/no/such/tool")


async def test_a_resource_without_a_fitting_provider_fails_after_everything_else_was_tried() -> None:
    tool = {"type": "Tool", "title": "t", "kind": "compilable_type", "parameters": {"size": 3, "before": "Box[b]"}}
    it = await run(World(), tool, box("a", ensure="present"), box("b", ensure="present"))
    assert it.applied.statuses["Tool[t]"].failed and it.flags("b") == {"skipped"} and "create a" in it.world.done
    assert "err Could not find a suitable provider for tool" in it.said_by_puppet


async def test_audited_values_are_remembered_and_changes_told() -> None:
    state, world = StateFile(None), World({"a": {"lid": "shut", "label": "one"}})
    first = await run(world, box("a", audit=["label"]), state=state)
    assert first.said == ["notice /Box[a]/label: audit change: newly-recorded value one"]
    world.boxes["a"]["label"] = "two"
    second = await run(world, box("a", audit=["label"]), state=state)
    assert second.events("a") == [("label_changed", "audit", "audit change: previously recorded value 'one' has been changed to 'two'")]
    assert second.flags("a") == set()


async def test_a_repair_of_drift_is_corrective_and_a_changed_manifest_is_not(tmp_path: Path) -> None:
    path, world = tmp_path / "store.yaml", World({"a": {"label": "old"}})
    await run(world, box("a", label="one"), store=TransactionStore(path))
    changed = await run(world, box("a", label="two"), store=TransactionStore(path))
    assert not changed.applied.statuses["Box[a]"].corrective_change
    world.boxes["a"]["label"] = "drifted"
    repaired = await run(world, box("a", label="two"), store=TransactionStore(path))
    assert repaired.events("a") == [("label_changed", "success", "label changed 'drifted' to 'two' (corrective)")]
    assert report_of(ReportHeader("n", NOW, "production", "7.23.0"), repaired.log, repaired.applied).corrective_change


async def test_a_secret_is_nowhere_in_log_report_and_state(tmp_path: Path) -> None:
    """AG-15"""
    path, state = tmp_path / "store.yaml", StateFile(tmp_path / "state.yaml")
    world = World({"a": {"label": "hunter1"}}, broken={"set label b"})
    world.boxes["b"] = {"label": "hunter1"}
    secret = {"secret": ["label"], "audit": ["label"]}
    it = await run(
        world,
        box("a", label="hunter2", **secret),
        box("b", label="hunter2", **secret),
        store=TransactionStore(path),
        state=state,
        level="debug",
    )
    report = report_of(ReportHeader("n", NOW, "production", "7.23.0"), it.log, it.applied)
    assert it.events("a") == [("label_changed", "success", "changed [redacted] to [redacted]")]
    assert it.applied.statuses["Box[a]"].events[0].redacted is True
    again = await run(world, box("a", audit=["label"], secret=["label"]), state=state)
    assert again.events("a") == [
        ("label_changed", "audit", "audit change: previously recorded value [redacted] has been changed to [redacted]")
    ]
    everywhere = [report.model_dump_json(), report.to_ruby_yaml().decode(), path.read_text(), (tmp_path / "state.yaml").read_text()]
    assert not any("hunter" in text for text in everywhere)


async def test_prefetch_is_called_once_and_its_failure_fails_its_resources() -> None:
    class Listing(Shelf, type=Box):
        async def prefetch(self, wanted: Mapping[str, Box]) -> Mapping[str, State | None]:
            self.world.done.append(f"prefetch {' '.join(wanted)}")
            if "prefetch" in self.world.broken:
                raise ResourceError("no listing")
            return {key: self.world.boxes.get(key) for key in wanted}

    async def listing(world: World) -> Run:
        catalog = Catalog.from_data({"name": "n", "resources": [box("a", ensure="present"), box("b", ensure="present")]})
        log = RunLog(now=lambda: NOW)
        providers = Providers({"box": lambda: [Listing(world)]}, Platform())
        context = ApplyContext(log=log, providers=providers, state=StateFile(None), now=lambda: NOW)
        return Run(await apply_catalog(resources_of(catalog, {"box": Box}), context), log, world)

    it = await listing(World({"b": {}}))
    assert it.world.done == ["prefetch a b", "create a", "flush a"]
    failed = await listing(World(broken={"prefetch"}))
    assert failed.said_by_puppet == ["err Could not prefetch box provider 'listing': no listing"]
    assert [failed.flags(title) for title in "ab"] == [{"failed", "skipped", "out_of_sync"}] * 2


async def test_an_unforeseen_error_of_a_provider_fails_its_resource_only() -> None:
    class Buggy(Shelf, type=Box):
        async def create(self, resource: Box, state: State | None) -> None:
            raise KeyError(resource.name)

    catalog = Catalog.from_data({"name": "n", "resources": [box("a", ensure="present")]})
    log = RunLog(now=lambda: NOW)
    context = ApplyContext(log=log, providers=Providers({"box": lambda: [Buggy(World())]}, Platform()), state=StateFile(None))
    applied = await apply_catalog(resources_of(catalog, {"box": Box}), context)
    assert applied.completed and applied.statuses["Box[a]"].failed


def test_a_resource_knows_its_reference_even_when_its_type_is_not_supported() -> None:
    broken = Unmanaged(Ref("package", "x"), ResourceError("no"), {"noop": True, "ensure": "installed"})
    assert (str(broken), broken.noop) == ("Package[x]", True)

"""Rollouts in the masters' database: what runs get, what others see, and who acts."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings, strategies
from hypothesis.stateful import invariant, rule, run_state_machine_as_test
from sqlalchemy import delete, func, insert, literal, select

from master.code import rows
from master.rollouts import rows as rollout_rows
from master.rollouts.machine import (
    CatalogSent,
    Rollout,
    RolloutCommand,
    RolloutEvent,
    RolloutPlan,
    RunReported,
    advance,
    begin,
)
from master.rollouts.rows import VERSION_OF_WAVE, RolloutRows
from master.rollouts.storage import update_rollout
from master.rollouts.waves import Wave, place_of
from shared.errors import Conflict, PuppetError
from shared.state.database import StateAway, StateDatabase
from shared.state.tables import environments, rollout_nodes, rollouts
from tests.master.rollouts.test_machine import Rollouts
from tests.support.examples import examples
from tests.support.postgresql import PostgresqlServer

WAVES = (Wave("canary", query="nodes { }", members=frozenset({"web1", "unknown"})), Wave("10%", 10.0), Wave("all", 100.0))
PLAN = RolloutPlan("production", "old", "new", WAVES, wait=0)
NODES = ["web1", *(f"node{number}" for number in range(20))]
EARLY = next(name for name in NODES[1:] if place_of(name) < 10)
LATE = next(name for name in NODES[1:] if place_of(name) >= 10)


@pytest.fixture
def masters(state_url: str) -> Iterator[list[RolloutRows]]:
    """Two masters, on whose environment `old` is current."""
    databases = [StateDatabase.open(state_url) for _ in range(2)]
    values = {"environment": "production", "version": "old", "deployment": 1, "switched_at": func.now(), "is_rolling": True}
    databases[0].transact(lambda connection: connection.execute(insert(environments).values(**values)))
    yield [RolloutRows(database, name) for database, name in zip(databases, ("one", "two"), strict=True)]
    for database in databases:
        database.disconnect()


def change(storage: RolloutRows, *events: Any) -> Rollout:
    _, rollout = update_rollout(storage, "production", lambda rollout, now: advance(rollout, events, now))
    assert rollout is not None
    return rollout


def version(storage: RolloutRows, client: str) -> tuple[str | None, int]:
    """Return what a new run gets."""
    query = VERSION_OF_WAVE.query(literal(client), literal("production"))
    row = storage.database.transact(lambda connection: connection.execute(query, VERSION_OF_WAVE.parameters(client)).one())
    return row.version, row.deployment


def written(storage: RolloutRows) -> int:
    """Return how many nodes the last state has written."""
    revision = select(rollouts.c.revision).scalar_subquery()
    query = select(func.count()).select_from(rollout_nodes).where(rollout_nodes.c.revision == revision)
    return storage.database.transact(lambda connection: connection.scalar(query)) or 0


def test_a_state_is_the_same_at_the_other_master_and_only_what_changes_is_written(masters: list[RolloutRows]) -> None:
    one, two = masters
    assert (one.load("production"), one.environments()) == (None, [])
    first = one.save(begin(replace(PLAN, wait=60), NODES, one.now(), failing=["web1"], habits={"web1": ["Exec[x] returns"]}), 0)
    assert (two.load("production"), two.environments(), written(one)) == (first, ["production"], len(NODES))
    change(two, RunReported("web1", "new", changed=True, message="\x00 and ünï"))
    assert written(one) == 1
    assert one.load("production") == two.load("production") == RolloutRows(one.database, "three").load("production")
    with pytest.raises(Conflict, match="changed at the same time"):
        one.save(first.rollout, first.revision)
    with pytest.raises(Conflict):
        one.save(first.rollout, 0)


def test_another_rollout_of_the_environment_leaves_nothing_of_the_one_before(masters: list[RolloutRows]) -> None:
    one, two = masters
    one.save(begin(PLAN, NODES, one.now()), 0)
    assert two.load("production") is not None
    change(one, RolloutCommand("abort"))
    last = one.load("production")
    assert last is not None
    stored = one.save(begin(replace(PLAN, after="newer"), ["web2"], one.now() + 1), last.revision)
    assert two.load("production") == stored and set(stored.rollout.nodes) == {"web2"}
    assert version(one, "web1")[0] == "newer", "a query found it, although the preview did not have it"


def test_a_prediction_belongs_to_its_version(masters: list[RolloutRows]) -> None:
    one, two = masters
    rollout = begin(PLAN, NODES, 0)
    assert two.load_prediction(rollout) is None
    for number in range(2):
        one.save_prediction("production", {"version": "new", "number": number})
    assert two.load_prediction(rollout) == {"version": "new", "number": 1}
    assert two.load_prediction(begin(replace(PLAN, after="newer"), NODES, 0)) is None


def states() -> Iterator[Rollout]:
    """Yield a rollout as it is on its way to the end, and as it is stopped, paused and aborted there."""
    rollout, at = begin(PLAN, NODES, 1000.0), 1000.0
    while rollout.is_active and rollout.status != "completing":
        yield rollout
        yield advance(rollout, [RolloutCommand("pause")], at)
        yield advance(rollout, [RolloutCommand("abort")], at)
        open_nodes = sorted(name for name, _ in rollout.open_nodes())
        yield advance(rollout, [CatalogSent(open_nodes[0], "new"), RunReported(open_nodes[0], "new", failed=True)], at)
        at += 60
        rollout = advance(rollout, [RunReported(name, "new") for name in open_nodes], at)
    yield rollout


@pytest.mark.slow
def test_a_new_run_gets_the_version_that_the_state_says_in_every_state(masters: list[RolloutRows]) -> None:
    one, revision, seen = masters[0], 0, set()
    clients = ["web1", EARLY, LATE, *NODES[1:4], "unknown", "stranger1", "stranger2"]
    for rollout in states():
        seen.add(rollout.status)
        revision = one.save(rollout, revision).revision
        expected = {client: "new" if rollout.has_new_version(client) else "old" for client in clients}
        assert {client: version(one, client)[0] for client in clients} == expected, (rollout.status, rollout.step)
        assert version(one, "")[0] == "old"
    assert seen == {"progressing", "paused", "aborted", "stopped", "completing"}


def test_what_masters_remember_of_runs_counts_again_after_the_end_only(masters: list[RolloutRows]) -> None:
    one = masters[0]
    assert version(one, "web1") == ("old", -1), "a rollout may begin at any moment"
    one.save(begin(PLAN, NODES, one.now()), 0)
    assert version(one, "web1") == ("new", -1) and version(one, LATE) == ("old", -1)
    change(one, RolloutCommand("abort"))
    assert version(one, "web1") == ("old", 1)
    (age,) = one.database.transact(lambda connection: rows.read_snapshot(connection, 60)).ages.values()
    assert age < 60, "as after a switch: runs with the other version may be under way"


def test_one_master_acts_and_another_one_when_that_has_died(masters: list[RolloutRows]) -> None:
    one, two = masters
    one.save(begin(PLAN, NODES, one.now()), 0)
    for each in masters:
        each.database.transact(lambda connection, name=each.certname: rows.appear(connection, name, ""))  # type: ignore[misc]
    assert one.claim("production") and not two.claim("production")
    assert one.claim("production"), "it was restarted while it acted"
    two.release("production")
    assert not two.claim("production"), "others cannot release it"
    one.release("production")
    assert two.claim("production")
    two.database.transact(lambda connection: rows.leave(connection, "two"))
    assert one.claim("production")
    assert not one.claim("other")


def test_a_state_that_cannot_be_read_names_its_place(masters: list[RolloutRows]) -> None:
    one, two = masters
    one.save(begin(PLAN, NODES, one.now()), 0)
    two.database.transact(lambda connection: connection.execute(rollouts.update().values(revision=9, body=b'{"format": 2}')))
    with pytest.raises(PuppetError, match="The rollout of production in the masters' database cannot be read: it has the format 2"):
        one.load("production")


@pytest.mark.slow
def test_masters_that_store_at_the_same_time_lose_nothing(masters: list[RolloutRows]) -> None:
    masters[0].save(begin(replace(PLAN, wait=60, waves=WAVES[-1:]), NODES, masters[0].now()), 0)

    def report(number: int) -> None:
        change(masters[number % 2], RunReported(NODES[number], "new", changed=True))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(report, range(len(NODES))))
    stored = [each.load("production") for each in masters]
    assert stored[0] == stored[1] and stored[0] is not None
    assert [node.status for node in stored[0].rollout.nodes.values()] == ["changed"] * len(NODES)
    assert stored[0].revision == 1 + len(NODES)


class SharedRollouts(Rollouts):
    """The same in the database, by two masters, of which either does the next step and loses its connections in the middle of it."""

    databases: list[StateDatabase]
    server: PostgresqlServer
    fault = ""

    def take(self, rollout: Rollout) -> None:
        self.masters = [RolloutRows(database, "any") for database in self.databases]
        for table in (rollout_nodes, rollouts):
            self.databases[0].transact(lambda connection, table=table: connection.execute(delete(table)))  # type: ignore[misc]
        self.rollout = self.masters[0].save(rollout, 0).rollout

    @rule(fault=strategies.sampled_from(["before", "within", "the answer"]))
    def the_next_step_loses(self, fault: str) -> None:
        self.fault = fault

    @rule()
    def the_other_master_goes_on(self) -> None:
        self.masters.reverse()

    def step(self, *events: RolloutEvent, seconds: float = 1.0) -> None:
        before, fault, self.fault = self.rollout, self.fault, ""
        super().step(*events, seconds=seconds)
        write_nodes = rollout_rows._write_nodes

        def write(*arguments: Any) -> None:
            nonlocal fault
            if fault == "within":
                fault = ""
                self.server.end_sessions()
            write_nodes(*arguments)

        def change_it() -> None:
            update_rollout(self.masters[0], "production", lambda rollout, _: advance(rollout, events, before.at + seconds))

        if fault == "before":
            self.server.end_sessions()
        with patch.object(rollout_rows, "_write_nodes", write):
            try:
                change_it()
            except StateAway:  # PostgreSQL does not always get to say that it ends the session
                assert self.stored() == before, "nothing of the step"
                change_it()
        if fault == "the answer":
            change_it()  # as who was not told that it is stored
        else:
            assert self.stored() == self.rollout, "all of the step, once"
        self.rollout = self.stored()

    def stored(self) -> Rollout:
        stored = self.masters[0].load("production")
        assert stored is not None
        return stored.rollout

    @invariant()
    def all_masters_say_what_the_state_says(self) -> None:
        assert [each.load("production").rollout for each in self.masters] == [self.rollout] * 2  # type: ignore[union-attr]
        for client in ("a", "b", "e", "joined", "stranger"):
            assert version(self.masters[0], client)[0] == ("new" if self.rollout.has_new_version(client) else "old"), client


@pytest.mark.slow
def test_two_masters_that_lose_connections_keep_the_promises_of_one(masters: list[RolloutRows], postgresql: PostgresqlServer) -> None:
    SharedRollouts.databases, SharedRollouts.server = [each.database for each in masters], postgresql
    shorter = settings(max_examples=examples(20), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(SharedRollouts, settings=shorter)

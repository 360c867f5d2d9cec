"""The version of a run is the same at each master that a request of it reaches, whenever the environment is switched."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, event, make_url

from environments.runs import RunVersions, current_versions
from master.code import rows
from master.code.knowledge import LONGEST_RUN, CodeKnowledge
from master.code.runs import RECORDED, NewRun, RunRows
from master.rollouts.machine import RolloutCommand, RolloutEvent, RolloutPlan, RunReported, advance, begin
from master.rollouts.rows import VERSION_OF_WAVE, RolloutRows
from master.rollouts.storage import update_rollout
from master.rollouts.waves import Wave
from shared.database.postgresql import DatabaseLimits
from shared.errors import NotFound, Unavailable
from shared.state.database import StateAway, StateDatabase
from tests.support.postgresql import PostgresqlServer

LIFETIME = 1000.0


class Master:
    """What one master knows of runs; its clock stands still unless the test moves it."""

    def __init__(self, name: str, root: Path, address: str) -> None:
        self.name = name
        self.now = 0.0
        self.database = StateDatabase.open(address, DatabaseLimits(connect_timeout=1))
        self.folder = root / name
        for version in "123":
            (self.folder / ".versions" / "production" / version).mkdir(parents=True)
        self.code = CodeKnowledge((str(self.folder),), clock=self.clock)
        alone = RunVersions(current_versions(self.root_of), LIFETIME)
        self.runs = RunRows(self.database, self.code, alone, LIFETIME)
        self.statements = 0

    def clock(self) -> float:
        return self.now

    def root_of(self, name: str) -> str:
        if not (self.folder / name).exists():
            raise NotFound(name)
        return str(self.folder / name)

    def look(self) -> None:
        """Do what a master does every few seconds."""
        self.database.transact(lambda connection: rows.appear(connection, self.name, ""))
        self.code.learn(self.database.transact(lambda connection: rows.read_snapshot(connection, LIFETIME)), self.now)

    def answer(self, deployment: int) -> None:
        self.look()
        self.database.transact(lambda connection: rows.answer(connection, deployment, self.name, ""))

    def ask(self, what: str, client: str = "a", environment: str = "production", transaction: str = "") -> str:
        """Return the version in which a request is answered, and count the statements that this takes."""
        engine = self.database._engine

        def count(*args: object) -> None:
            self.statements += 1

        event.listen(engine, "before_cursor_execute", count)
        try:
            folder = {
                "catalog": lambda: self.runs.for_catalog(client, environment, transaction),
                "file": lambda: self.runs.for_file(client, environment),
            }.get(what, lambda: self.runs.for_listing(client, environment, what))()
        finally:
            event.remove(engine, "before_cursor_execute", count)
        assert not folder or folder == str(self.folder / ".versions" / "production" / Path(folder).name)
        return Path(folder).name


class Site:
    """Two masters of one database."""

    def __init__(self, root: Path, address: str) -> None:
        self.masters = [Master(name, root, address) for name in ("one", "two")]

    def begin(self, version: str, *, is_rollout: bool = False) -> int:
        described = rows.Version("production", version, version * 40, "production", "control", "", "")
        database = self.masters[0].database
        database.transact(lambda connection: rows.add_version(connection, described))
        return database.transact(lambda connection: rows.begin(connection, "production", version, "test", is_rollout=is_rollout))

    def end(self, deployment: int) -> rows.Settlement | None:
        return self.masters[0].database.transact(
            lambda connection: rows.settle(connection, deployment, timeout=600, keep=5, keep_time=LIFETIME)
        )

    def switch(self, version: str, *, is_known: bool = True, is_rollout: bool = False) -> None:
        """Switch the environment, or let its rollout begin, which masters learn at once, or only when they look the next time."""
        deployment = self.begin(version, is_rollout=is_rollout)
        for master in self.masters:
            master.answer(deployment)
        assert self.end(deployment) == rows.Settlement("", {})
        for master in self.masters if is_known else ():
            master.look()


@pytest.fixture
def site(tmp_path: Path, state_url: str) -> Iterator[Site]:
    site = Site(tmp_path.resolve(), state_url)
    try:
        for master in site.masters:
            master.look()
        yield site
    finally:
        for master in site.masters:
            master.database._engine.dispose()


RUNS = [
    ("probe pluginfacts plugins | file catalog file", "1 1 1 1 1 1"),
    ("plugins catalog | file catalog file", "1 1 1 2 2"),
    ("plugins catalog | pluginfacts catalog", "1 1 2 2"),
    ("plugins | plugins catalog", "1 2 2"),
    ("probe plugins | probe plugins", "1 1 2 2"),
    ("file | file", "1 2"),
    ("file file file | file | file plugins file", "1 1 1 2 3 3 3"),
    ("catalog | file | file catalog", "1 1 1 3"),
]


@pytest.mark.parametrize("is_known", [True, False], ids=["switches are known", "switches are not known yet"])
def test_requests_of_a_run_get_its_version_at_whichever_master(site: Site, is_known: bool) -> None:
    given: dict[str, str] = {}
    for steps, _ in RUNS:
        site.switch("1", is_known=is_known)
        number, places, answers = 1, itertools.cycle(site.masters), []
        for step in steps.split():
            if step == "|":
                number += 1
                site.switch(str(number), is_known=is_known)
            else:
                answers.append(next(places).ask(step, client=steps))
        given[steps] = " ".join(answers)
    assert given == dict(RUNS)


@pytest.mark.parametrize("is_known", [True, False], ids=["the start is known", "the start is not known yet"])
def test_a_file_is_of_the_version_of_its_run_whatever_a_rollout_does_in_between(site: Site, is_known: bool) -> None:
    one, two = site.masters
    for master in site.masters:
        master.runs.new_run = VERSION_OF_WAVE
    site.switch("1")
    assert [master.ask(what, client) for what in ("catalog", "file") for master in site.masters for client in "ab"] == ["1"] * 8
    site.switch("2", is_known=is_known, is_rollout=True)
    rollouts = RolloutRows(one.database, "one")
    waves = Wave("canary", query="nodes { }", members=frozenset("b")), Wave("all", 100.0)

    def advance_with(*events: RolloutEvent) -> None:
        update_rollout(rollouts, "production", lambda rollout, now: advance(rollout, events, now))

    rollouts.save(begin(RolloutPlan("production", "1", "2", waves, wait=0), "ab", rollouts.now()), 0)
    assert [two.ask("catalog", client) for client in "ab"] == ["1", "2"]
    assert [one.ask("file", client) for client in "ab"] == ["1", "2"]
    advance_with(RunReported("b", "2"))
    assert one.ask("file", "a") == "1", "the run that began before its wave was opened"
    assert [two.ask("catalog", "a"), one.ask("file", "a")] == ["2", "2"]
    assert two.runs.version_under_way("a", "production") == "2"
    if is_known:
        assert one.code.may_have_two("production")
    advance_with(RolloutCommand("abort"))
    one.look()
    assert [one.ask("file", "a"), two.ask("catalog", "a"), one.ask("file", "a")] == ["2", "1", "1"]
    assert one.code.may_have_two("production"), "as after a switch"


def test_a_run_takes_one_statement_at_one_master_and_a_file_of_the_current_version_none(site: Site) -> None:
    site.switch("1")
    one, two = site.masters
    for number in (1, 2):
        for what in ("probe", "pluginfacts", "plugins", "locales", "catalog"):
            assert (one.ask(what), one.statements) == ("1", number)
    for _ in range(5):
        assert (one.ask("file"), two.ask("file")) == ("1", "1")
    assert (one.statements, two.statements) == (2, 1)
    site.switch("2")
    assert (one.ask("file"), one.ask("file"), one.statements) == ("1", "1", 4)  # a run from before the switch is asked for each time


def test_a_run_is_recorded_again_when_its_first_listing_was_long_ago(site: Site) -> None:
    site.switch("1")
    one = site.masters[0]
    one.ask("plugins")
    one.now += RECORDED + 1
    one.look()
    assert (one.ask("catalog"), one.statements) == ("1", 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_runs_at_any_masters_and_switches_at_any_time_have_one_version_which_is_current_at_their_beginning(site: Site, seed: int) -> None:
    chance = random.Random(seed)
    version = "1"
    site.switch(version)
    steps = ("pluginfacts", "plugins", "locales", "catalog", "file", "file")
    under_way: dict[str, list[str]] = {}
    for _ in range(150):
        if not chance.randrange(6):
            version = chance.choice("123".replace(version, ""))
            site.switch(version, is_known=chance.random() < 0.5)
        client = chance.choice("abc")
        answers = under_way.setdefault(client, [])
        answer = chance.choice(site.masters).ask(steps[len(answers)], client)
        assert answer == (answers[0] if answers else version)
        answers.append(answer)
        if len(answers) == len(steps) or not chance.randrange(8):  # or the agent is killed
            del under_way[client]


def test_a_master_relies_on_its_memory_only_as_long_as_nobody_can_have_switched(site: Site) -> None:
    site.switch("1")
    one, two = site.masters
    one.ask("catalog")
    one.ask("file")
    assert one.statements == 1
    deployment = site.begin("2")
    one.look()  # it sees the pending deployment, so the switch may come at any time
    one.ask("file")
    assert one.statements == 2
    for master in site.masters:
        master.answer(deployment)
    site.end(deployment)
    assert two.ask("plugins") == "2"
    assert one.ask("file") == "2"  # although it has not seen the switch

    one.look()
    one.ask("file")
    before = one.statements
    one.now += rows.TRUST + 1  # without a sign of life, others may have counted it as dead
    one.ask("file")
    assert one.statements == before + 1
    assert rows.TRUST + rows.BEAT <= rows.DEAD


def test_an_older_version_that_returns_is_not_taken_for_what_was_remembered_of_it(site: Site) -> None:
    site.switch("1")
    one, two = site.masters
    one.ask("catalog")
    site.switch("2")
    assert two.ask("plugins") == "2"
    site.switch("1")
    assert one.ask("file") == "2"


def test_new_runs_get_what_the_row_says_at_once(site: Site) -> None:
    site.switch("1")
    one, two = site.masters
    site.switch("2", is_known=False)
    assert (one.ask("catalog", "x"), two.ask("plugins", "y"), two.ask("file", "z")) == ("2", "2", "2")


def test_a_version_that_this_master_does_not_have_is_asked_for_elsewhere(site: Site) -> None:
    site.switch("1")
    one, two = site.masters
    two.ask("plugins")
    (one.folder / ".versions" / "production" / "1").rmdir()
    with pytest.raises(Unavailable, match="does not have the version 1"):
        one.ask("catalog")
    site.switch("2")
    assert two.ask("catalog") == "1"


def test_a_catalog_that_comes_again_within_its_transaction_belongs_to_the_same_run(site: Site) -> None:
    site.switch("1")
    one, two = site.masters
    one.ask("plugins")
    assert two.ask("catalog", transaction="x") == "1"
    site.switch("2")
    assert [master.ask("catalog", transaction="x") for master in site.masters] == ["1", "1"]
    assert [two.ask("catalog", transaction="y"), one.ask("catalog", transaction="y"), one.ask("catalog")] == ["2", "2", "2"]
    site.switch("1")
    assert [one.ask("catalog"), one.ask("catalog", transaction="y")] == ["1", "1"]


def test_a_request_that_the_database_was_too_slow_for_is_not_counted_when_it_comes_again(
    site: Site, state_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.switch("1")
    one, two = site.masters
    one.ask("plugins")
    monkeypatch.setattr("master.code.runs.PATIENCE", 0.05)
    with psycopg.connect(make_url(state_url).render_as_string(hide_password=False)) as other:
        other.execute("SELECT * FROM state_runs FOR UPDATE")
        with pytest.raises(StateAway):
            two.ask("catalog")
    two.database._threads.shutdown()  # its thread has ended, too
    monkeypatch.undo()
    site.switch("2")
    assert one.ask("catalog") == "1"


def test_a_version_is_elsewhere_if_masters_should_have_it_or_may_have_got_it_since(site: Site) -> None:
    site.switch("1")
    one = site.masters[0]
    assert [one.runs.is_elsewhere("production", version) for version in "19"] == [True, False]
    one.now += rows.TRUST  # longer ago than it may rely on
    assert [one.runs.is_elsewhere(name, "9") for name in ("production", "none")] == [True, False]


def test_environments_that_are_not_shared_are_what_their_links_say(site: Site) -> None:
    one = site.masters[0]
    (one.folder / "production").symlink_to(".versions/production/3")
    assert (one.ask("plugins"), one.ask("catalog", environment="none"), one.statements) == ("3", "", 0)


def test_runs_go_on_while_the_database_is_away_unless_they_may_be_of_two_versions(site: Site, postgresql: PostgresqlServer) -> None:
    site.switch("1")
    one, two = site.masters
    site.switch("2")
    deployment = site.begin("3")
    two.look()
    one.ask("catalog")
    postgresql.stop()
    try:
        for master in site.masters:
            with pytest.raises(StateAway) as away:
                master.ask("catalog")
            assert away.value.status == 503 and "so soon after a deployment" in away.value.reason
            assert master.code.is_lost  # the next request need not wait
        one.now += LONGEST_RUN + 1
        assert [one.ask(what) for what in ("plugins", "catalog", "file")] == ["2", "2", "2"]
        two.now += LONGEST_RUN + 1
        assert two.ask("catalog") == "2"  # although the pending switch may have come before the database went away
    finally:
        postgresql.start()
    assert site.end(deployment) is None
    for master in site.masters:
        master.answer(deployment)
    site.end(deployment)
    assert (one.ask("catalog", "x"), two.ask("catalog", "y")) == ("3", "3")


def test_each_client_can_get_a_version_of_its_own(site: Site) -> None:
    """The rule for new runs is one query, which may know more than the environment's current version."""
    from sqlalchemy import BigInteger, case, literal, select

    site.switch("1")
    one, two = site.masters
    for master in site.masters:
        master.runs.new_run = NewRun(
            lambda client, environment: select(
                case((client == "canary", "3"), else_="1").label("version"), literal(7, BigInteger).label("deployment")
            )
        )
    assert (one.ask("plugins", "canary"), two.ask("catalog", "canary"), two.ask("file", "canary")) == ("3", "3", "3")
    assert (one.ask("plugins", "other"), two.ask("catalog", "other")) == ("1", "1")


def test_ended_runs_are_forgotten_at_the_next_switch(site: Site) -> None:
    from sqlalchemy import func, select, update

    from shared.state.tables import runs

    site.switch("1")
    one = site.masters[0]
    one.ask("catalog", "gone")

    def age(connection: Connection) -> None:
        connection.execute(update(runs).values(began=func.now() - func.make_interval(0, 0, 0, 0, 1)))

    one.database.transact(age)
    assert one.ask("file", "gone") == "1"
    site.switch("2")
    assert one.database.transact(lambda connection: connection.scalar(select(func.count()).select_from(runs))) == 0

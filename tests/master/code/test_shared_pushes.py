"""A push that a web hook reports to several masters is deployed once, and by another one if the first has died."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from master.code import rows
from master.code.pushes import SharedPushes
from shared.database.postgresql import DatabaseLimits
from shared.errors import Conflict, PuppetError, Unavailable
from shared.state.database import StateAway, StateDatabase
from tests.support.postgresql import PostgresqlServer
from tests.support.waiting import until

pytestmark = pytest.mark.slow


class Deployer:
    """Deploys when the test lets it, and remembers what."""

    def __init__(self, name: str, database: StateDatabase, done: list[str]) -> None:
        self.name, self.database, self.done = name, database, done
        self.gate = asyncio.Event()
        self.started: list[str] = []
        self.queue = SharedPushes(database, self.deploy, 2, name)

    async def deploy(self, environment: str, ref: str) -> str:
        self.started.append(f"{environment} {ref}")
        await self.gate.wait()
        self.done.append(f"{self.name}: {environment} {ref}")
        if ref == "broken":
            raise PuppetError("it does not parse")
        return "1"

    async def live(self) -> None:
        await self.database.run(lambda connection: rows.appear(connection, self.name, ""))


@pytest.fixture
async def deployers(state_url: str) -> AsyncIterator[tuple[Deployer, Deployer]]:
    database = StateDatabase.open(state_url, DatabaseLimits(connect_timeout=1))
    done: list[str] = []
    pair = Deployer("one", database, done), Deployer("two", database, done)
    for each in pair:
        await each.live()
    yield pair
    await database.close()


async def test_a_delivery_that_reaches_both_masters_is_deployed_once(deployers: tuple[Deployer, Deployer]) -> None:
    one, two = deployers
    await asyncio.gather(*(each.queue.add("production", "production") for each in deployers))
    tasks = [asyncio.create_task(each.queue.work()) for each in deployers]
    await until(lambda: one.started or two.started)
    await one.queue.add("production", "production")  # which waits for the end of the first
    for each in deployers:
        await each.queue.hear()
    first = one if one.started else two
    assert len(one.started) + len(two.started) == 1
    first.gate.set()
    await until(lambda: len(one.done) == 1)
    for each in deployers:
        each.gate.set()
        await each.queue.hear()
    await until(lambda: len(one.done) == 2)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_what_a_master_has_taken_that_has_died_another_one_deploys(deployers: tuple[Deployer, Deployer]) -> None:
    one, two = deployers
    await one.queue.add("production", "production")
    dying = asyncio.create_task(one.queue.work())
    await until(lambda: one.started)
    dying.cancel()
    await asyncio.wait([dying])
    two.gate.set()
    task = asyncio.create_task(two.queue.work())
    await asyncio.sleep(0)
    await one.database.run(lambda connection: rows.leave(connection, "one"))
    await two.queue.hear()
    await until(lambda: two.done == ["two: production production"])
    task.cancel()
    await asyncio.wait([task])


async def test_the_queue_is_bounded_and_has_one_branch_for_each_environment(deployers: tuple[Deployer, Deployer]) -> None:
    one, two = deployers
    await one.queue.add("a", "a/x")
    await two.queue.add("a", "a/x")
    with pytest.raises(Conflict, match="The branch a/x is about to be deployed to the environment a: a_x is not"):
        await two.queue.add("a", "a_x")
    await two.queue.add("a", "")  # its removal is another matter
    with pytest.raises(Unavailable, match="2 deployments are waiting already"):
        await one.queue.add("b", "b")


async def test_a_push_is_refused_while_the_database_is_away_and_none_is_lost(
    deployers: tuple[Deployer, Deployer], postgresql: PostgresqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("master.code.pushes.BEAT", 0.05)
    one, _ = deployers
    await one.queue.add("production", "broken")
    await one.queue.add("next", "next")
    task = asyncio.create_task(one.queue.work())
    await until(lambda: one.started)
    postgresql.stop()
    try:
        with pytest.raises(StateAway) as refused:
            await one.queue.add("x", "x")
        assert (refused.value.status, refused.value.retry_after) == (503, 10)
        one.gate.set()
        await until(lambda: one.done)
    finally:
        postgresql.start()
    await until(lambda: "one: next next" in one.done)
    assert one.done[0] == "one: production broken"
    task.cancel()
    await asyncio.wait([task])

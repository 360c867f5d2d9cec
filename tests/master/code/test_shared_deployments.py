"""A deployment on any master is one on all: they make the same folder and are switched by one row."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from environments.directories import Environments
from environments.settings import environment_settings
from master.code import rows
from master.code.follower import CodeProblem
from master.code.shared import SharedCode
from master.deploy.deployment import DeploymentOptions, DeploymentResult, Deployments
from master.deploy.shared import SharedDeployments
from master.rollouts.machine import RolloutPlan, begin
from master.rollouts.rows import VERSION_OF_WAVE
from master.rollouts.waves import Wave
from shared.database.postgresql import DatabaseLimits
from shared.errors import Conflict, NotFound, PuppetError, Unsupported
from shared.settings import MasterSettings, load
from shared.state.database import StateAway, StateDatabase
from shared.state.masters import SharedState
from shared.state.notices import Notices
from shared.state.tables import deployments
from tests.support.control_repository import ControlRepository
from tests.support.needs import needs_git
from tests.support.postgresql import PostgresqlServer
from tests.support.waiting import until

pytestmark = [needs_git, pytest.mark.slow, pytest.mark.works_with("Deployment and tools for code", "deployments to several masters")]


class Master:
    """One master: its folder of environments, and what it knows of the others."""

    def __init__(self, name: str, root: Path, repository: ControlRepository, address: str, **settings: str) -> None:
        self.name, self.folder = name, root / name / "environments"
        self.folder.mkdir(parents=True, exist_ok=True)
        (root / name / "git").symlink_to(shutil.which("git") or "")  # and no r10k, whatever is installed here
        flags = {
            "certname": name, "confdir": str(root / name), "environmentpath": str(self.folder), "basemodulepath": "/nowhere",
            "deploy_repository": str(repository.folder), "deploy_timeout": "60s", "deploy_keep": "2", "deploy_keep_time": "0s",
            "deploy_path": str(root / name), **settings,
        }  # fmt: skip
        self.settings = load(MasterSettings, section="master", flags=flags)
        self.state = SharedState(StateDatabase.open(address, DatabaseLimits(connect_timeout=1)), Notices(address, poll=0.5))
        self.modules = "1"
        self.problems: list[str] = []
        self.gate = asyncio.Event()  # while it is not set this master makes nothing
        self.gate.set()
        self.deployments = SharedDeployments(self.settings, self.bring_modules, database=self.state.database)
        environments = Environments(environment_settings(self.settings))
        self.code = SharedCode.of(self.settings, environments, self.state, self.follow, self.problems.append, VERSION_OF_WAVE)
        self.follower = self.code.follower
        self.follower.options = replace(self.follower.options, pause=0.05)

    def bring_modules(self, root: Path) -> None:
        (root / "modules" / "m").mkdir(parents=True)
        (root / "modules" / "m" / "metadata.json").write_text(self.modules)

    async def follow(self) -> list[CodeProblem]:
        await self.gate.wait()
        return await asyncio.to_thread(self.deployments.follow)

    async def deploy(self, environment: str = "production", **options: object) -> DeploymentResult:
        wanted = replace(DeploymentOptions(checks=False), **options)  # type: ignore[arg-type]  # names of the test
        return await asyncio.to_thread(self.deployments.deploy, environment, wanted)

    async def roll_back(self, version: str = "") -> DeploymentResult:
        return await asyncio.to_thread(self.deployments.roll_back, "production", version)

    def link(self, environment: str = "production") -> str:
        """Return the version that the environment's link leads to here, '' for none."""
        place = self.folder / environment
        return place.resolve().name if place.is_symlink() else ""

    def stored(self, environment: str) -> list[Path]:
        """Return the folders of an environment's versions here."""
        try:
            return [path for path in (self.folder / ".versions" / environment).iterdir() if path.is_dir()]
        except FileNotFoundError:  # it may be removed now
            return []

    def current(self, environment: str = "production") -> str | None:
        """Return the version that this master knows to be current."""
        current = self.follower.code.current(environment)
        return current.version if current is not None else None

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        await self.follower.look_if_possible()
        tasks = [self.follower.keep_looking(), self.follower.keep_following(), self.state.notices.keep_listening()]
        running = [asyncio.create_task(task) for task in tasks]
        try:
            yield
        finally:
            for task in running:
                task.cancel()
            await asyncio.wait(running)


@dataclass
class Site:
    """A control repository, and the masters that share a database."""

    root: Path
    repository: ControlRepository
    address: str
    masters: dict[str, Master]

    def master(self, name: str, **settings: str) -> Master:
        self.masters[name] = Master(name, self.root, self.repository, self.address, **settings)
        return self.masters[name]

    def commit(self, text: str, **files: str) -> str:
        return self.repository.commit({"manifests/site.pp": f"# {text}\n", **files})


@pytest.fixture
async def site(tmp_path: Path, state_url: str) -> AsyncIterator[Site]:
    site = Site(tmp_path, ControlRepository(tmp_path / "control"), state_url, {})
    yield site
    for master in site.masters.values():
        await master.state.database.close()


@asynccontextmanager
async def two(site: Site, **settings: str) -> AsyncIterator[tuple[Master, Master]]:
    one, other = site.master("one", **settings), site.master("two", **settings)
    async with one.at_work(), other.at_work():
        yield one, other


async def all_at(version: str, *masters: Master, environment: str = "production") -> None:
    """Wait until these masters know a version as the current one, and their links lead to it."""
    await until(lambda: all((each.current(environment) or "", each.link(environment)) == (version, version) for each in masters))


async def test_a_deployment_on_one_master_switches_all_to_the_same_folder(site: Site) -> None:
    async with two(site) as (one, other):
        first = site.commit("first")
        result = await one.deploy()
        assert (result.version, result.before, result.findings) == (first, None, [])
        assert other.link() == first  # linked before the switch: no agent is told that there is none
        await all_at(first, one, other)
        assert (other.folder / "production" / "manifests" / "site.pp").read_text() == "# first\n"

        second = site.commit("second")
        assert (await other.deploy()).before == first
        await all_at(second, one, other)
        assert (await one.deploy()).to_data()["changed"] is False
        assert [version.record["ref"] for version in one.deployments.history("production").versions] == ["production"] * 2
        assert one.deployments.masters() == {"one": "", "two": ""}
    assert one.deployments.masters() == {}


async def test_no_master_is_switched_before_all_have_the_version(site: Site) -> None:
    async with two(site) as (one, other):
        first = site.commit("first")
        await one.deploy()
        await all_at(first, one, other)
        other.gate.clear()
        second = site.commit("second")
        deployment = asyncio.create_task(one.deploy())
        await until(lambda: (one.folder / ".versions" / "production" / second).exists())
        await until(lambda: not one.follower.code.is_certain("production"))
        assert (one.current(), one.link(), deployment.done()) == (first, first, False)
        with pytest.raises(PuppetError, match="under way"):
            await other.deploy()
        other.gate.set()
        assert (await deployment).version == second
        await all_at(second, one, other)


async def test_a_run_that_began_before_the_switch_goes_on_with_its_version_at_another_master(site: Site) -> None:
    async with two(site, deploy_keep_time="1h") as (one, other):
        first = site.commit("first")
        await one.deploy()
        await all_at(first, one, other)
        ask = asyncio.to_thread
        assert str(await ask(one.code.runs.for_listing, "agent", "production", "plugins")).endswith(first)
        second = site.commit("second")
        await one.deploy()
        assert await ask(other.code.runs.for_catalog, "agent", "production") == str(
            (other.folder / ".versions/production" / first).resolve()
        )
        for master in (one, other):
            assert str(await ask(master.code.runs.for_catalog, f"new at {master.name}", "production")).endswith(second)
            assert str(await ask(master.code.runs.version_for, "preview", "production")).endswith(second)


async def test_a_master_that_cannot_fetch_is_taken_out_and_comes_back_by_itself(site: Site, tmp_path: Path) -> None:
    async with two(site) as (one, other):
        first = site.commit("first")
        await one.deploy()
        await all_at(first, one, other)
        working = other.deployments
        other.deployments = SharedDeployments(
            other.settings.model_copy(update={"deploy_path": str(tmp_path)}), other.bring_modules, database=other.state.database
        )
        second = site.commit("second")
        result = await one.deploy()
        assert result.version == second
        assert [finding.message for finding in result.findings] == [
            f"two is taken out until it has the version: {other.follower._failures['production', second]}"
        ]
        await until(lambda: other.problems != [])
        assert other.problems[0].startswith(f"production {second}: ")
        assert await other.follower.condition() == other.problems[0]
        assert one.problems == []
        await until(lambda: one.deployments.masters()["two"] != "")

        third = site.commit("third")  # nobody waits for who is behind
        await one.deploy()
        other.deployments = working
        await all_at(third, one, other)
        await until(lambda: other.problems[-1] == "")


async def test_a_master_that_is_late_is_not_waited_for_longer_than_the_timeout(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "DEAD", 1.0)
    monkeypatch.setattr(rows, "BEAT", 0.1)
    async with two(site) as (one, other):
        first = site.commit("first")
        await one.deploy()
        await all_at(first, one, other)
        other.gate.clear()
        one.follower.options = replace(one.follower.options, timeout=0.5)
        site.commit("second")
        result = await one.deploy()
        assert "two is taken out until it has the version" in result.findings[0].message
        other.gate.set()
        await all_at(result.version, one, other)


async def test_a_master_that_was_away_catches_up_before_it_says_that_all_is_well(site: Site) -> None:
    one = site.master("one")
    async with one.at_work():
        site.commit("first")
        await one.deploy()
        second = site.commit("second")
        await one.deploy()
        late = site.master("late")
        late.gate.clear()
        async with late.at_work():
            assert (await late.follower.condition()).startswith(f"production {second}: ")
            assert str(late.code.runs.code.folder("production", second)) == str((late.folder / ".versions/production" / second).resolve())
            late.gate.set()
            await all_at(second, late)
            await until(lambda: late.problems[-1] == "")


@pytest.mark.parametrize("is_foreign", [True, False], ids=["another repository", "no commit"])
async def test_the_database_does_not_decide_where_code_comes_from(site: Site, tmp_path: Path, is_foreign: bool) -> None:
    foreign = ControlRepository(tmp_path / "foreign")
    commit = foreign.commit({"manifests/site.pp": "# foreign\n"}) if is_foreign else "--output=x"
    repository = foreign if is_foreign else site.repository
    row = rows.Version("production", "v1", commit, "production", str(repository.folder), "", "")

    def insert_rows(connection: Connection) -> int:
        rows.add_version(connection, row)
        return rows.begin(connection, "production", "v1", "nobody")

    def state_of(number: int, connection: Connection) -> str:
        return str(connection.scalar(select(deployments.c.state).where(deployments.c.id == number)))

    async with two(site) as (one, other):
        with pytest.raises(Unsupported, match="is not the control repository of this master"):
            await one.deploy(repository=str(foreign.folder))
        number = await one.state.database.run(insert_rows)
        await until(lambda: one.state.database.transact(partial(state_of, number)) == "failed")
        assert (one.current(), one.stored("production"), other.stored("production")) == (None, [], [])


async def test_modules_have_to_be_the_same_everywhere(site: Site) -> None:
    async with two(site) as (one, other):
        other.modules = "2"
        site.commit("first", Puppetfile="mod 'm', '1.0.0'\n")
        result = await one.deploy()
        assert "are not those of the master that deployed it" in result.findings[0].message
        other.modules = "1"
        await all_at(result.version, one, other)
        assert (other.folder / "production/modules/m/metadata.json").read_text() == "1"


async def test_a_rollback_is_one_of_all_masters_and_holds_until_a_newer_commit(site: Site) -> None:
    async with two(site) as (one, other):
        first = site.commit("first")
        await one.deploy()
        second = site.commit("second")
        await one.deploy()
        assert (await other.roll_back()).version == first
        await all_at(first, one, other)
        with pytest.raises(Conflict, match="was rolled back to"):
            await one.deploy(is_pushed=True)
        with pytest.raises(NotFound, match="No version of production before the current one"):
            await one.roll_back()
        third = site.commit("third")
        await one.deploy(is_pushed=True)
        await all_at(third, one, other)
        assert [version.code_id for version in one.deployments.history("production").versions] == [second, third]
        with pytest.raises(NotFound):
            await one.roll_back(first[:8])  # only two are kept


async def test_what_was_pushed_is_deployed_once_although_modules_could_be_others(site: Site) -> None:
    async with two(site) as (one, other):
        site.commit("first", Puppetfile="mod 'm'\n")
        result = await one.deploy(is_pushed=True)
        other.modules = "2"
        assert (await other.deploy(is_pushed=True)).version == result.version
        assert (await other.deploy()).version != result.version


async def test_a_removed_environment_is_removed_everywhere_also_where_a_master_was_away(site: Site) -> None:
    async with two(site) as (one, other):
        site.commit("first")
        site.repository.git("branch", "feature")
        third = site.master("three")
        async with third.at_work():
            for environment in ("production", "feature"):
                result = await one.deploy(environment)
                await all_at(result.version, one, other, third, environment=environment)
        site.repository.git("branch", "--delete", "feature")
        assert await asyncio.to_thread(other.deployments.prune, []) == ["feature"]
        await until(lambda: not any(each.stored("feature") for each in (one, other)))
        assert (third.link("feature"), third.deployments.environments()) == (result.version, ["production"])
        async with third.at_work():
            await until(lambda: third.link("feature") == "" and not third.stored("feature"))
        with pytest.raises(NotFound, match="puppet deploy has made no version of feature"):
            await asyncio.to_thread(one.deployments.remove, "feature")


async def test_what_was_deployed_before_masters_shared_it_stays_until_the_next_deployment(site: Site) -> None:
    one = site.master("one")
    first = site.commit("first")
    alone = Deployments(one.settings, one.bring_modules)
    await asyncio.to_thread(alone.deploy, "production", DeploymentOptions(checks=False))
    async with one.at_work():
        assert (one.current(), one.problems, one.link()) == (None, [], first)
        second = site.commit("second")
        await one.deploy()
        await all_at(second, one)
        with pytest.raises(NotFound):
            await one.roll_back(first)


async def test_a_folder_in_the_way_takes_a_master_out_unless_it_is_adopted(site: Site) -> None:
    async with two(site) as (one, other):
        (other.folder / "production" / "own").mkdir(parents=True)
        site.commit("first")
        result = await one.deploy()
        assert "puppet deploy did not make" in result.findings[0].message
        site.commit("second")
        result = await one.deploy(adopt=True)
        await all_at(result.version, one, other)
        adopted = next(path.name for path in (other.folder / ".versions" / "production").glob("adopted-*"))
        with pytest.raises((NotFound, Unsupported)):
            await other.roll_back(adopted)


async def test_deploying_says_that_the_database_is_away_and_all_comes_back_by_itself(site: Site, postgresql: PostgresqlServer) -> None:
    async with two(site) as (one, other):
        first = site.commit("first")
        await one.deploy()
        await all_at(first, one, other)
        second = site.commit("second")
        postgresql.stop()
        try:
            with pytest.raises(StateAway, match="is away"):
                await one.deploy()
            assert (one.link(), other.current()) == (first, first)
        finally:
            postgresql.start()
        await until(lambda: asyncio.get_running_loop().time() > 0)
        result = await one.deploy()
        assert result.version == second
        await all_at(second, one, other)
        assert (one.problems, other.problems) == ([], [])


async def prepare(master: Master) -> DeploymentResult:
    """Store the newest commit for a rollout, and have the masters be ready for it."""

    def prepared() -> DeploymentResult:
        result = master.deployments.prepare("production", DeploymentOptions(checks=False))
        archive = master.deployments.archive("production")
        with archive.locked(10):
            master.deployments.admit(archive, result.version)
        return result

    return await asyncio.to_thread(prepared)


async def test_all_masters_have_a_version_before_a_rollout_gives_it_to_nodes_and_the_links_stay(site: Site) -> None:
    async with two(site, deploy_keep_time="1h") as (one, other):
        with pytest.raises(Conflict, match="has no version before this one"):
            await prepare(one)
        first = site.commit("first")
        await one.deploy()
        await all_at(first, one, other)
        second = site.commit("second")
        result = await prepare(other)
        assert (result.version, result.before) == (second, first)
        assert [each.name for each in one.stored("production") if each.name == second] == [second]
        await all_at(first, one, other)
        waves = (Wave("all", 100.0),)
        storage = other.deployments.rollouts
        plan = RolloutPlan("production", first, second, waves)
        await asyncio.to_thread(lambda: storage.save(begin(plan, ["web1"], storage.now()), 0))
        for refused in (one.deploy(), one.roll_back(first), prepare(one)):
            with pytest.raises(Conflict, match="is progressing"):
                await refused
        run = await asyncio.to_thread(one.code.runs.for_catalog, "web1", "production")
        assert Path(run).name == second
        third = site.commit("third")
        assert (await one.deploy(abort_rollout=True)).version == third
        await all_at(third, one, other)
        run = await asyncio.to_thread(other.code.runs.for_catalog, "web1", "production")
        assert Path(run).name == third


async def test_a_rollout_ends_with_a_switch_of_all_masters(site: Site) -> None:
    async with two(site) as (one, other):
        first = site.commit("first")
        await one.deploy()
        await all_at(first, one, other)
        second = site.commit("second")
        await prepare(one)
        storage = one.deployments.rollouts
        plan = RolloutPlan("production", first, second, (Wave("all", 100.0),), wait=0)
        await asyncio.to_thread(lambda: storage.save(begin(plan, [], storage.now()), 0))
        assert (await other.roll_back(second)).version == second, "it has only to switch"
        await all_at(second, one, other)
        assert [version.code_id for version in one.deployments.history("production").versions] == [first, second]

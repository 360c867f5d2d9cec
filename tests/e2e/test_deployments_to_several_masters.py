"""Agents whose requests go to one master and the other by turns never see two versions of the code, whichever master is deployed to."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import json
import re
import shutil
import signal
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from sqlalchemy import func, make_url, select

from master.deploy.deployment import DeploymentOptions
from master.deploy.shared import SharedDeployments
from master.wiring import running
from shared.settings import MasterSettings, load
from shared.state.database import StateDatabase
from shared.state.tables import deployments
from tests.e2e.test_deployments import ENVIRONMENT, HOOK, V3, code, plugins, run
from tests.support.control_repository import ControlRepository
from tests.support.needs import needs_git
from tests.support.postgresql import PostgresqlServer
from tests.support.raw_master import RawAnswer, RawClient
from tests.support.waiting import until
from tests.support.wired_site import FORM, WiredSite

pytestmark = [
    needs_git,
    pytest.mark.slow,
    pytest.mark.works_with("Deployment and tools for code", "agents whose requests go to two masters in turn, during deployments"),
]
SECRET = "a secret that is long enough"


@dataclass
class ByTurns:
    """Connections of one agent to several masters, each of which gets the next request; one that is put off comes again."""

    clients: Iterator[RawClient]

    async def ask(self, method: str, target: str, body: bytes = b"", **headers: str) -> RawAnswer:
        while True:
            answer = await next(self.clients).ask(method, target, body, **headers)
            if answer.status != 503:
                return answer
            await asyncio.sleep(0.2)


@dataclass
class Site:
    """Masters that share a database; the first is the CA."""

    root: Path
    address: str
    repository: ControlRepository
    ends: AsyncExitStack
    masters: list[WiredSite] = field(default_factory=list)
    commits: dict[str, str] = field(default_factory=dict)

    async def start(self, name: str, *lines: str) -> WiredSite:
        """Start a master, with further lines in its puppet.conf."""
        root = self.root / name
        (root / "conf" / "code" / "environments").mkdir(parents=True, exist_ok=True)
        is_first = not self.masters
        hook = root / "secret"
        hook.write_text(SECRET)
        hook.chmod(0o600)
        flags = {
            "confdir": str(root / "conf"), "vardir": str(root / "var"), "rundir": str(root / "run"), "logdir": str(root / "log"),
            "autosign": "true", "key_type": "ec", "bindaddress": "127.0.0.1", "masterport": "0", "user": "root", "compile_workers": "1",
            "compile_timeout": "10m", "store": "none", "certname": name, "dns_alt_names": "localhost", "deploy_hook_secret": str(hook),
            "deploy_hook_environments": "production", "deploy_repository": str(self.repository.folder),
            **dict.fromkeys(("idle_timeout", "header_timeout", "handshake_timeout", "body_timeout", "write_timeout"), "1h"),
        }  # fmt: skip
        configuration = [f"deploy_repository = {self.repository.folder}", f"state = {self.address}", f"certname = {name}", *lines]
        if not is_first:
            first = self.masters[0]
            ssl_folder = root / "conf" / "ssl"
            await first.enrol(name)
            for source, place in (
                (first.root / f"{name}.pem", f"certs/{name}.pem"),
                (first.root / f"{name}.key", f"private_keys/{name}.pem"),
                (first.settings.cadir / "ca_crt.pem", "certs/ca.pem"),
            ):
                (ssl_folder / place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, ssl_folder / place)
            flags |= {"ca": "false", "hostcrl": str(first.settings.cadir / "ca_crl.pem"), "crl_refresh_interval": "0"}
        self.configure(name, *configuration)
        loaded = load(MasterSettings, section="master", flags=flags)
        master = await self.ends.enter_async_context(running(loaded))
        site = WiredSite(root, loaded, master)
        self.masters.append(site)
        return site

    def configure(self, name: str, *lines: str) -> None:
        (self.root / name / "conf" / "puppet.conf").write_text("\n".join(["[master]", *lines]) + "\n")

    async def client(self, place: int, name: str | None = None) -> RawClient:
        """Connect to a master as an agent, or as a stranger."""
        first = self.masters[0]
        if name is not None and not (first.root / f"{name}.pem").exists():
            await first.enrol(name)
        context = ssl.create_default_context(cafile=str(first.settings.cadir / "ca_crt.pem"))
        context.check_hostname = False
        if name is not None:
            context.load_cert_chain(first.root / f"{name}.pem", first.root / f"{name}.key")
        client = await RawClient.connect(self.masters[place].master.port, context, server="localhost")
        client.timeout = 300.0
        self.masters[place].open.append(client)
        return client

    async def agent(self, name: str) -> ByTurns:
        return ByTurns(itertools.cycle([await self.client(place, name) for place in range(len(self.masters))]))

    async def deploy(self, place: int, stamp: str) -> None:
        """Do what `puppet deploy` does on the machine of a master."""
        for old in self.repository.folder.glob("modules/m/**/s[0-9]*"):
            old.unlink()
        self.commits[stamp] = await asyncio.to_thread(self.repository.commit, code(stamp))
        settings = self.masters[place].settings
        database = StateDatabase.open(self.address)
        try:
            options = DeploymentOptions(str(self.repository.folder), checks=False)
            deploying = SharedDeployments(settings, lambda root: None, database=database)
            await asyncio.to_thread(deploying.deploy, "production", options)
        finally:
            await database.close()

    def links(self) -> set[str]:
        """Return the versions that the masters' links lead to."""
        places = [site.root / "conf/code/environments/production" for site in self.masters]
        return {place.resolve().name if place.is_symlink() else "" for place in places}


@asynccontextmanager
async def site_in(root: Path, address: str) -> AsyncIterator[Site]:
    async with AsyncExitStack() as ends:
        site = Site(root, address, ControlRepository(root / "control"), ends)
        try:
            yield site
        finally:
            for client in [client for master in site.masters for client in master.open]:
                await client.close()


async def test_a_run_goes_on_with_its_version_at_the_other_master(tmp_path: Path, empty_postgresql_url: str) -> None:
    async with site_in(tmp_path, empty_postgresql_url) as site:
        for name in ("one", "two"):
            await site.start(name)
        await site.deploy(0, "s0")
        agent = await site.agent("agent0")
        assert "s0" in await plugins(agent)  # type: ignore[arg-type]
        await site.deploy(1, "s1")
        facts = quote_plus(quote(json.dumps({"name": "agent0", "values": {"n": "x"}}), safe=""))
        form = f"facts_format=application%2Fjson&facts={facts}".encode()
        catalog = json.loads((await agent.ask("POST", f"{V3}/catalog/agent0?{ENVIRONMENT}", form, Content_Type=FORM)).text)
        assert catalog["code_id"] == site.commits["s0"]
        files = [await agent.ask("GET", f"{V3}/file_content/modules/m/f?{ENVIRONMENT}") for _ in site.masters]
        assert [answer.body for answer in files] == [b"s0\n", b"s0\n"]
        assert await run(agent, "agent0", is_static=True) == ({"s1"}, site.commits["s1"])  # type: ignore[arg-type]


async def test_a_run_takes_two_requests_to_the_database_besides_its_report_and_its_catalog_one(
    tmp_path: Path, empty_postgresql_url: str, statements: list[str]
) -> None:
    async with site_in(tmp_path, empty_postgresql_url) as site:
        await site.start("one")
        await site.deploy(0, "s0")
        agent = await site.client(0, "agent0")
        for _ in range(2):
            statements.clear()
            await plugins(agent)
            assert await run(agent, "agent0", is_static=False) == ({"s0"}, site.commits["s0"])
            # The second plugin sync begins another run.
            assert re.findall(r"(?:INTO|JOIN) state_(runs|facts|nodes)", " ".join(statements)) == ["runs", "runs", "facts"]


async def test_a_file_of_a_version_that_only_another_master_has_is_requested_again(tmp_path: Path, empty_postgresql_url: str) -> None:
    async with site_in(tmp_path, empty_postgresql_url) as site:
        master = await site.start("one")
        await site.deploy(0, "s0")
        agent = await site.client(0, "agent0")
        target = f"{V3}/static_file_content/modules/m/files/f?{ENVIRONMENT}&code_id="
        assert (await agent.ask("GET", target + site.commits["s0"])).body == b"s0\n"
        await site.deploy(0, "s1")
        environments = master.root / "conf/code/environments"
        (environments / ".versions/production" / site.commits["s0"]).rename(environments / "away")
        assert (await agent.ask("GET", target + site.commits["s0"])).status == 503


@pytest.mark.full
@pytest.mark.parametrize(("agents", "rounds"), [(20, 20)])
async def test_no_run_sees_two_versions_whichever_master_answers(
    tmp_path: Path, empty_postgresql_url: str, postgresql: PostgresqlServer, agents: int, rounds: int
) -> None:
    # What is committed survives the crash below, as it does by default.
    postgresql.run_sql(f"ALTER DATABASE {make_url(empty_postgresql_url).database} SET synchronous_commit = on")
    async with site_in(tmp_path, empty_postgresql_url) as site:
        for name in ("one", "two"):
            await site.start(name)
        await site.deploy(0, "s0")
        names = [f"agent{number}" for number in range(agents)]
        clients = {name: await site.agent(name) for name in names}
        finished, run_ended = asyncio.Event(), asyncio.Event()
        runs: list[tuple[set[str], str]] = []
        last_runs: list[set[str]] = []

        async def keep_running(name: str) -> None:
            while True:
                is_last = finished.is_set()
                client = clients[name]
                runs.append(await run(client, name, is_static=int(name.removeprefix("agent")) % 2 == 0))  # type: ignore[arg-type]
                run_ended.set()
                if is_last:
                    last_runs.append(runs[-1][0])
                    return

        async def deploy_all() -> None:
            for number in range(1, rounds + 1):
                run_ended.clear()
                if number % 5 == 4:
                    await asyncio.to_thread(postgresql.stop, signal.SIGQUIT)
                    await asyncio.to_thread(postgresql.start)
                await site.deploy(number % 2, f"s{number}")
                await run_ended.wait()
            finished.set()

        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(keep_running(name))
            group.create_task(deploy_all())
        assert [stamps for stamps, _ in runs if len(stamps) != 1] == []
        assert all(site.commits[stamp] == code_id for stamps, code_id in runs for stamp in stamps)
        assert last_runs == [{f"s{rounds}"}] * agents
        assert len({stamp for stamps, _ in runs for stamp in stamps}) > 2
        await until(lambda: site.links() == {site.commits[f"s{rounds}"]})


@pytest.mark.full
async def test_one_delivery_to_both_masters_is_one_deployment_to_both(tmp_path: Path, empty_postgresql_url: str) -> None:
    async with site_in(tmp_path, empty_postgresql_url) as site:
        for name in ("one", "two"):
            await site.start(name)
        commit = site.repository.commit(code("s1"))
        body = json.dumps({"ref": "refs/heads/production", "after": commit}).encode()
        signature = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        headers = {"Content_Type": "application/json", "X_GitHub_Event": "push", "X_Hub_Signature_256": signature}
        strangers = [await site.client(place) for place in range(2)]
        answers = await asyncio.gather(*(stranger.ask("POST", HOOK, body, **headers) for stranger in strangers))
        assert [answer.status for answer in answers] == [202, 202]
        await until(lambda: site.links() == {commit}, within=300)
        database = StateDatabase.open(empty_postgresql_url)
        try:
            assert await database.run(lambda connection: connection.scalar(select(func.count()).select_from(deployments))) == 1
        finally:
            await database.close()


@pytest.mark.full
async def test_a_master_without_the_code_is_not_running_until_it_has_caught_up(tmp_path: Path, empty_postgresql_url: str) -> None:
    async with site_in(tmp_path, empty_postgresql_url) as site:
        await site.start("one")
        await site.deploy(0, "s1")
        await site.start("two", "deploy_path = /nowhere")  # where there is no Git
        probe = await site.client(1)

        async def status_unlike(state: str) -> RawAnswer:
            while True:
                answer = await probe.ask("GET", "/status/v1/services/server")
                if json.loads(answer.text)["state"] != state:
                    return answer
                await asyncio.sleep(0.02)

        answer = await status_unlike("starting")
        assert answer.status == 503
        alerts = [alert["message"] for alert in json.loads(answer.text)["active_alerts"]]
        assert alerts == ["The code of this master is behind that of the others"]
        agent = await site.client(1, "agent0")
        refused = await agent.ask("GET", "/puppet/v3/file_metadatas/plugins?environment=production&recurse=true")
        assert refused.status in (404, 503)

        site.configure("two", f"deploy_repository = {site.repository.folder}", f"state = {empty_postgresql_url}", "certname = two")
        await site.deploy(0, "s2")
        assert (await status_unlike("error")).status == 200
        assert await run(agent, "agent0", is_static=True) == ({"s2"}, site.commits["s2"])

"""No run sees half of a deployment: its plugins, its catalog and its files are of one version, whenever another one is deployed."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, quote_plus
from uuid import uuid4

import pytest

from master.deploy.deployment import DeploymentOptions, Deployments
from master.wiring import running
from shared.settings import MasterSettings, load
from tests.support.control_repository import ControlRepository
from tests.support.needs import needs_git
from tests.support.raw_master import RawAnswer, RawClient
from tests.support.waiting import until
from tests.support.wired_site import FORM, WiredSite

pytestmark = [
    needs_git,
    pytest.mark.works_with(
        "Deployment and tools for code", "200 agents during 50 deployments: no run sees half of one; failed deployments; the web hook"
    ),
]
V3 = "/puppet/v3"
ENVIRONMENT = "environment=production"
LISTING = f"{ENVIRONMENT}&recurse=true&links=follow&checksum_type=sha256"
SITE = """
$parts = [lookup('stamp'), epp('m/stamp.epp'), m::stamp()]
notify { "STAMP ${join($parts, ' ')}": }
include m
file { '/tmp/f': source => 'puppet:///modules/m/f' }
file { '/tmp/tree': ensure => directory, recurse => true, source => 'puppet:///modules/m/tree' }
"""


def code(stamp: str) -> dict[str, str]:
    """Return the files of a control repository, each of which has a stamp in it."""
    return {
        "manifests/site.pp": SITE.replace("STAMP", stamp),
        "hiera.yaml": "version: 5\nhierarchy: [{name: a, path: a.yaml}]\n",
        "data/a.yaml": f"stamp: {stamp}\n",
        "modules/m/manifests/init.pp": f"class m {{ notify {{ 'class {stamp}': }} }}\n",
        "modules/m/functions/stamp.pp": f"function m::stamp() {{ '{stamp}' }}\n",
        "modules/m/templates/stamp.epp": stamp,
        "modules/m/files/f": f"{stamp}\n",
        "modules/m/files/tree/one": f"{stamp}\n",
        f"modules/m/files/tree/{stamp}": f"{stamp}\n",
        "modules/m/lib/facter/stamp.rb": f"# {stamp}\n",
        f"modules/m/lib/facter/{stamp}.rb": f"# {stamp}\n",
        "modules/m/facts.d/stamp.txt": f"stamp={stamp}\n",
    }


@dataclass
class Deploying:
    """A master, and a control repository of which its environment gets commits."""

    site: WiredSite
    repository: ControlRepository
    commits: dict[str, str] = field(default_factory=dict)

    async def deploy(self, stamp: str) -> None:
        if stamp not in self.commits:
            for old in self.repository.folder.glob("modules/m/**/s[0-9]*"):
                old.unlink()
            self.commits[stamp] = await asyncio.to_thread(self.repository.commit, code(stamp))
        options = DeploymentOptions(str(self.repository.folder), self.commits[stamp], checks=False)
        await asyncio.to_thread(Deployments(self.site.settings, lambda root: None).deploy, "production", options)

    async def client(self, name: str) -> RawClient:
        client = await self.site.client(name)
        client.timeout = 300.0
        return client


@asynccontextmanager
async def deploying(root: Path, **settings: str) -> AsyncIterator[Deploying]:
    (root / "conf" / "code" / "environments").mkdir(parents=True)
    flags = {
        "confdir": str(root / "conf"), "vardir": str(root / "var"), "rundir": str(root / "run"), "logdir": str(root / "log"),
        "certname": "localhost", "autosign": "true", "key_type": "ec", "bindaddress": "127.0.0.1", "masterport": "0",
        "compile_workers": "2", "compile_timeout": "10m", "store": "none",
        **dict.fromkeys(("idle_timeout", "header_timeout", "handshake_timeout", "body_timeout", "write_timeout"), "1h"), **settings,
    }  # fmt: skip
    loaded = load(MasterSettings, section="master", flags=flags)
    async with running(loaded) as master:
        site = WiredSite(root, loaded, master)
        try:
            yield Deploying(site, ControlRepository(root / "control"))
        finally:
            for client in site.open:
                await client.close()


def of(answer: RawAnswer) -> bytes:
    assert answer.status == 200, answer.text
    return answer.body


async def file_of(client: RawClient, target: str, checksum: str) -> str:
    """Return the stamp in a file's content, which has a checksum that the client was told before."""
    body = of(await client.ask("GET", target))
    assert "{sha256}" + hashlib.sha256(body).hexdigest() == checksum
    return body.decode()


async def plugins(client: RawClient) -> str:
    """Do what a plugin sync does; return all stamps in it."""
    await client.ask("GET", f"{V3}/file_metadatas/plugins?{ENVIRONMENT}&recurse=false")
    texts = []
    for mount in ("pluginfacts", "plugins"):
        for entry in json.loads(of(await client.ask("GET", f"{V3}/file_metadatas/{mount}?{LISTING}"))):
            if entry["type"] == "file":
                path = entry["relative_path"]
                target = f"{V3}/file_content/{mount}/{path}?{ENVIRONMENT}"
                texts.append(path + await file_of(client, target, entry["checksum"]["value"]))
    assert len(texts) == 3
    return " ".join(texts)


async def run(client: RawClient, name: str, *, is_static: bool) -> tuple[set[str], str]:
    """Do what an agent's run asks; return the stamps of all answers, and the catalog's code id."""
    texts = [await plugins(client)]
    facts = quote_plus(quote(json.dumps({"name": name, "values": {"n": name}}), safe=""))
    static = "&static_catalog=true&checksum_type=sha256" if is_static else ""
    body = f"facts_format=application%2Fjson&facts={facts}&transaction_uuid={uuid4()}{static}"
    catalog = json.loads(of(await client.ask("POST", f"{V3}/catalog/{name}?{ENVIRONMENT}", body.encode(), Content_Type=FORM)))
    texts += [resource["title"] for resource in catalog["resources"] if resource["type"] == "Notify"]
    if is_static:
        inlined = [catalog["metadata"]["/tmp/f"], *catalog["recursive_metadata"]["/tmp/tree"]["puppet:///modules/m/tree"]]
        for entry in inlined:
            if entry["type"] == "file":
                path = entry["content_uri"].removeprefix("puppet:///")
                target = f"{V3}/static_file_content/{path}?{ENVIRONMENT}&code_id={catalog['code_id']}"
                texts.append(path.rpartition("/")[2] + await file_of(client, target, entry["checksum"]["value"]))
    else:
        entry = json.loads(of(await client.ask("GET", f"{V3}/file_metadata/modules/m/f?{ENVIRONMENT}&checksum_type=sha256")))
        texts.append(await file_of(client, f"{V3}/file_content/modules/m/f?{ENVIRONMENT}", entry["checksum"]["value"]))
        for entry in json.loads(of(await client.ask("GET", f"{V3}/file_metadatas/modules/m/tree?{LISTING}"))):
            if entry["type"] == "file":
                target = f"{V3}/file_content/modules/m/tree/{entry['relative_path']}?{ENVIRONMENT}"
                texts.append(entry["relative_path"] + await file_of(client, target, entry["checksum"]["value"]))
    assert len(texts) == 6
    return set(re.findall(r"s[0-9]+", " ".join(texts))), catalog["code_id"]


@pytest.fixture
def many_open_files() -> Iterator[None]:
    """A login has a limit of 1024, and agents and master are one process here."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("agents", "deployments"), [(8, 6), pytest.param(200, 50, marks=pytest.mark.full)], ids=["a few", "200 agents, 50 deployments"]
)
@pytest.mark.usefixtures("many_open_files")
@pytest.mark.slow
async def test_no_run_sees_half_of_a_deployment(tmp_path: Path, agents: int, deployments: int) -> None:
    async with deploying(tmp_path) as site:
        await site.deploy("s0")
        names = [f"agent{number}" for number in range(agents)]
        clients = {name: await site.client(name) for name in names}
        finished, run_ended = asyncio.Event(), asyncio.Event()
        runs: list[tuple[set[str], str]] = []
        last_runs: list[set[str]] = []

        async def keep_running(name: str) -> None:
            while True:
                is_last = finished.is_set()
                runs.append(await run(clients[name], name, is_static=int(name.removeprefix("agent")) % 2 == 0))
                run_ended.set()
                if is_last:
                    last_runs.append(runs[-1][0])
                    return

        async def deploy_all() -> None:
            for number in range(1, deployments + 1):
                run_ended.clear()
                await site.deploy(f"s{number}")
                await run_ended.wait()  # runs end between deployments, so that some are under way at each of them
            finished.set()

        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(keep_running(name))
            group.create_task(deploy_all())
        assert [stamps for stamps, _ in runs if len(stamps) != 1] == []
        assert all(site.commits[stamp] == code_id for stamps, code_id in runs for stamp in stamps)
        assert last_runs == [{f"s{deployments}"}] * agents
        assert len({stamp for stamps, _ in runs for stamp in stamps}) > 2


@pytest.mark.parametrize("is_static", [True, False])
@pytest.mark.slow
async def test_a_run_keeps_its_version_and_the_next_one_gets_the_new_one(tmp_path: Path, is_static: bool) -> None:
    async with deploying(tmp_path, environment_timeout="unlimited") as site:
        await site.deploy("s1")
        client = await site.client("agent0")
        assert "s1" in await plugins(client)
        await site.deploy("s2")
        # What follows a plugin sync is of its version, and begins no new run.
        facts = quote_plus(quote(json.dumps({"name": "agent0", "values": {}}), safe=""))
        body = f"facts_format=application%2Fjson&facts={facts}".encode()
        catalog = json.loads(of(await client.ask("POST", f"{V3}/catalog/agent0?{ENVIRONMENT}", body, Content_Type=FORM)))
        assert catalog["code_id"] == site.commits["s1"]
        assert of(await client.ask("GET", f"{V3}/file_content/modules/m/f?{ENVIRONMENT}")) == b"s1\n"
        assert await run(client, "agent0", is_static=is_static) == ({"s2"}, site.commits["s2"])
        await site.deploy("s1")
        assert await run(client, "agent0", is_static=is_static) == ({"s1"}, site.commits["s1"])


async def test_a_run_whose_version_is_no_longer_kept_goes_on_with_the_current_one(tmp_path: Path) -> None:
    async with deploying(tmp_path, deploy_keep="1", deploy_keep_time="0") as site:
        await site.deploy("s1")
        client = await site.client("agent0")
        await plugins(client)
        await site.deploy("s2")
        assert of(await client.ask("GET", f"{V3}/file_content/modules/m/f?{ENVIRONMENT}")) == b"s2\n"
        gone = f"{V3}/static_file_content/modules/m/files/f?{ENVIRONMENT}&code_id={site.commits['s1']}"
        answer = await client.ask("GET", gone)
        assert answer.status == 404 and "does not have the version" in answer.text


@pytest.mark.parametrize("path", ["manifests/site.pp", "modules/m/files/../manifests/init.pp", "data/a.yaml", ".puppet-deploy.json"])
async def test_FS_08_by_version_only_files_of_modules_are_served(tmp_path: Path, path: str) -> None:
    async with deploying(tmp_path) as site:
        await site.deploy("s1")
        client = await site.client("agent0")
        answer = await client.ask("GET", f"{V3}/static_file_content/{path}?{ENVIRONMENT}&code_id={site.commits['s1']}")
        assert answer.status in (400, 403)
        for code_id in ("..", "history.json", ".lock", "."):
            answer = await client.ask("GET", f"{V3}/static_file_content/modules/m/files/f?{ENVIRONMENT}&code_id={code_id}")
            assert answer.status in (400, 404)


HOOK = "/puppet-admin-api/v1/deploy"


@pytest.mark.slow
async def test_a_web_hook_deploys_what_was_pushed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a secret that is long enough")
    secret.chmod(0o600)
    hook = {"user": "root", "deploy_hook_secret": str(secret), "deploy_hook_environments": "prod*,feature_*"}
    async with deploying(tmp_path, **hook) as site:
        (tmp_path / "conf" / "puppet.conf").write_text(f"[master]\ndeploy_repository = {site.repository.folder}\n")
        commit = await asyncio.to_thread(site.repository.commit, code("s1"))
        stranger = await site.site.client()

        async def call(ref: str, *, signed_as: str = "a secret that is long enough", is_deleted: bool = False, **headers: str) -> RawAnswer:
            body = json.dumps({"ref": ref, "after": commit, "deleted": is_deleted}).encode()
            signature = "sha256=" + hmac.new(signed_as.encode(), body, hashlib.sha256).hexdigest()
            kinds = {"Content_Type": "application/json", "X_GitHub_Event": "push", "X_Hub_Signature_256": signature}
            return await stranger.ask("POST", HOOK, body, **(kinds | headers))

        assert (await call("refs/heads/production", signed_as="another secret, as long")).status == 403
        assert (await call("refs/heads/development")).status == 403
        assert (await call("refs/tags/v1")).text == '{"state":"ignored"}'
        assert (await stranger.ask("GET", HOOK)).status == 405
        assert (await call("refs/heads/production", Content_Encoding="gzip")).status == 415
        assert not (tmp_path / "conf/code/environments/production").exists()
        answer = await call("refs/heads/production")
        assert (answer.status, json.loads(answer.text)) == (202, {"state": "queued", "environment": "production", "ref": "production"})
        link = tmp_path / "conf/code/environments/production"
        await until(lambda: link.is_symlink() or "failed" in caplog.text, within=300)
        assert link.resolve().name == commit, caplog.text
        client = await site.client("agent0")
        assert await run(client, "agent0", is_static=True) == ({"s1"}, commit)

        answer = await call("refs/heads/--upload-pack=x")
        assert answer.status == 400 and "A branch of the name" in answer.text and "--upload-pack=x" in answer.text
        feature = link.with_name("feature_x")
        await asyncio.to_thread(site.repository.git, "branch", "feature/x")
        assert (await call("refs/heads/feature/x")).status == 202
        await until(lambda: feature.is_symlink() or "failed" in caplog.text, within=300)
        answer = await call("refs/heads/feature_x")
        assert answer.status == 409 and "feature_x is that of the branch feature/x" in answer.text
        await asyncio.to_thread(site.repository.git, "branch", "--delete", "feature/x")
        assert (await call("refs/heads/feature/x", is_deleted=True)).status == 202
        await until(lambda: not feature.is_symlink() or "failed" in caplog.text, within=300)
        assert not feature.is_symlink() and link.is_symlink(), caplog.text


async def test_without_a_secret_there_is_no_web_hook(tmp_path: Path) -> None:
    async with deploying(tmp_path) as site:
        stranger = await site.site.client()
        assert (await stranger.ask("POST", HOOK, b"{}", Content_Type="application/json")).status == 404

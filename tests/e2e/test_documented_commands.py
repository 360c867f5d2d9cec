"""The shell commands and queries of README and docs/, typed as they are printed on the host of a running master."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bunraku.puppet import main
from environments.first import make_first_environment
from store.database.engine import Database
from store.writing.writer import DatabaseWriter
from tests.support.control_repository import ControlRepository
from tests.support.documentation import PAGES, ROOT, Block, Shell, block, blocks
from tests.support.forge import LocalForge, serving
from tests.support.needs import needs_git
from tests.support.processes import MasterProcess, OurAgent, end, master
from tests.support.store_commands import facts_command, received
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, needs_git]

NODES = ("db1.example.com", "web1.example.com", "web2.example.com")
MASTER = "puppet.example.com"
SETTINGS = {"key_type": "ec", "user": "root", "store": "sqlite", "compile_workers": "1", "certname": MASTER, "dns_alt_names": "localhost"}
CODE = {"manifests/site.pp": "notify { 'here': }\n"}
CODES = {"puppet agent --test": {0, 1, 2}, "puppet preview": {0, 2}}  # a run has to wait for its certificate; a preview found changes
PROGRAMS = {
    "make": f'exec /usr/bin/make --dry-run --directory {ROOT} "$@"',
    "apt-get": '[ "$1" = install ]',
    "pipx": f'[ "$*" = "install .[master]" ] && [ -f "{ROOT}/pyproject.toml" ]',
    "docker": f'[ "$1" = build ] && [ -f "{ROOT}/Dockerfile" ]',
    "systemd-sysusers": "true",
    "systemd-tmpfiles": '[ "$1" = --create ]',
    "systemctl": f'for unit; do :; done; [ -f "{ROOT}/packaging/systemd/${{unit%.service}}.service" ]',
}
"""What stands in for programs that would change the machine: it checks that what they are called with exists."""


@dataclass
class Host:
    """The host of a master, with the folders that the documentation names, and an agent."""

    process: MasterProcess
    programs: Mapping[str, str] = field(default_factory=lambda: PROGRAMS)

    @property
    def root(self) -> Path:
        return self.process.root

    @property
    def conf(self) -> Path:
        return self.root / "conf"

    def shell(self, name: str, *options: str, places: Mapping[str, str] | None = None) -> Shell:
        """Return a shell in a folder of that name; `options` are further ones of each command."""
        folder = self.root / re.sub(r"\W", "-", name)
        own = dict(zip(self.process.options[::2], self.process.options[1::2], strict=True))
        agent = OurAgent(self.root / "agent", self.process.port, "web1.example.com")
        names = ("--confdir", "--vardir", "--rundir", "--logdir")
        everywhere = [*(f"{name}={own[name]}" for name in names), *options]
        known = {
            "/etc/puppet": str(self.conf),
            "/var/lib/puppet": str(self.root / "var"),
            "/srv/": f"{self.root}/srv/",
            "/etc/systemd/system/": f"{self.root}/system/",
            "/etc/sysusers.d/": f"{self.root}/system/",
            "/etc/tmpfiles.d/": f"{self.root}/system/",
            "/tmp/hello": f"{self.root}/hello",
            "-g puppet": "",
            f"--server {MASTER} --from": f"--server localhost --masterport {self.process.port} --from",
        }
        shell = Shell(folder, {"": everywhere, "agent": agent.options}, known | dict(places or {}), self.programs)
        (folder / "packaging").symlink_to(ROOT / "packaging")
        (folder / ".venv/bin").mkdir(parents=True)
        (folder / ".venv/bin/activate").touch()
        return shell


def type_lines(shell: Shell, text: str) -> str:
    """Type the lines of a block one by one."""
    return "".join(
        shell.type(line, next((codes for start, codes in CODES.items() if line.startswith(start)), {0})) for line in text.splitlines()
    )


def write_conf(folder: Path, settings: Mapping[str, str] = SETTINGS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "puppet.conf").write_text("[main]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items()))


def fill_store(path: Path) -> None:
    """Store the facts of the nodes."""

    async def fill() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        database = Database.open(f"sqlite:///{path}")
        await database.migrate()
        names = dict(zip(NODES, ("Debian", "Debian", "Rocky"), strict=True))
        facts = [facts_command(1, {"os": {"name": system, "family": system}}, node=name) for name, system in names.items()]
        await DatabaseWriter(database).write(received(*facts))
        await database.close()

    asyncio.run(fill())


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A running master with a store that knows two nodes, environments, a checkout of one and a control repository."""
    root = tmp_path_factory.mktemp("documented")
    with master(root, **SETTINGS) as process:
        write_conf(root / "conf")
        rule = block("docs/preview.md", "conf", "auth.conf").body.replace("ci.example.com", MASTER)
        (root / "conf/auth.conf").write_text(rule)
        fill_store(root / "var/store/store.sqlite")
        process.write(CODE)
        repository = ControlRepository(root / "srv/control-repo.git")
        for place in (process.site.parent / "feature_x", root / "srv/checkouts/feature_x"):
            (place / "manifests").mkdir(parents=True)
            (place / "manifests/site.pp").write_text("notify { 'there': }\n")
        for branch, text in (("main", "notify { 'here': }\n"), ("my-branch", "notify { 'there': }\n")):
            repository.git("checkout", "--quiet", "-b", branch)
            repository.commit({"manifests/site.pp": text})
        (root / "system").mkdir()
        (root / "agent").mkdir()
        process.start()
        yield Host(process)


@dataclass
class Scene:
    """A host whose master does not run, with folders of its own."""

    folder: Path

    def host(self, settings: Mapping[str, str] | None = None) -> Host:
        write_conf(self.folder / "conf", settings or SETTINGS)
        return Host(MasterProcess(self.folder, dict(SETTINGS)))


def start(scene: Scene, body: str) -> None:
    """A master starts, and ends when it is asked to."""
    shell = scene.host({"user": "root", "key_type": "ec"}).shell("shell", "--masterport=0", "--bindaddress=127.0.0.1")
    log = scene.folder / "log of it"
    with log.open("wb") as output:
        process = subprocess.Popen([shell.folder / "bin/puppet", *body.split()[1:]], stdout=output, stderr=output, cwd=shell.folder)
    try:
        wait_until(lambda: b"Serving Puppet on" in log.read_bytes() or process.poll() is not None, describe=log.read_text)
    finally:
        end(process)
    assert process.returncode == 0, log.read_text()
    assert (scene.folder / f"conf/ssl/certs/{MASTER}.pem").exists()


def deploy(scene: Scene, body: str) -> None:
    repository = ControlRepository(scene.folder / "control")
    commit = repository.commit(CODE)
    repository.git("tag", "v1.4")
    repository.git("branch", "feature_x")
    repository.git("branch", "topic")
    newest = repository.commit({"manifests/site.pp": "notify { 'new': }\n"})
    shell = scene.host().shell("shell", places={"https://git.example.com/control.git": str(repository.folder), "3f2a": commit[:12]})
    make_first_environment(scene.folder / "conf/code")
    first, *rest = body.splitlines()
    shell.type(f"{first}\npuppet deploy feature_x\npuppet deploy topic")
    repository.git("branch", "--delete", "--force", "topic")
    text = type_lines(shell, "\n".join(rest))
    assert f"* {commit}" in text and newest in text
    assert "Removed the environment feature_x" in text and "Removed the environment topic" in text


def hook(scene: Scene, body: str) -> None:
    type_lines(scene.host().shell("shell"), body)
    assert (scene.folder / "conf/deploy-secret").stat().st_mode & 0o777 == 0o640
    conf = (scene.folder / "conf/puppet.conf").read_text()
    assert f"deploy_hook_secret = {scene.folder}/conf/deploy-secret" in conf and "deploy_hook_environments = production,test_*" in conf


def modules(scene: Scene, body: str) -> None:
    make_first_environment(scene.folder / "conf/code")
    with serving(LocalForge()) as forge:
        for version in ("11.1.0", "12.0.0"):
            forge.publish("puppetlabs-apache", version, {"puppetlabs-stdlib": ">= 9.0.0"})
        forge.publish("puppetlabs-stdlib", "9.4.1")
        text = type_lines(scene.host().shell("shell", f"--module_repository={forge.url}"), body)
    assert "11.1.0" in text and "12.0.0" in text


def adopt(scene: Scene, body: str) -> None:
    """The CA of another master is taken over; it is Puppet's own layout, as that of ours is."""
    old = Scene(scene.folder / "old")
    old.host().shell("shell").type(f"puppet cert generate {NODES[0]}")
    places = {"/etc/puppetlabs/puppetserver/ca": str(scene.folder / "old/conf/ssl/ca")}
    type_lines(scene.host().shell("shell", places=places), body)
    assert (scene.folder / f"conf/ssl/ca/signed/{NODES[0]}.pem").exists()


def rollover(scene: Scene, body: str) -> None:
    shell = scene.host().shell("shell")
    shell.type(f"puppet cert generate {NODES[0]} --ca_ttl 4y")  # the new one ends later, also in the same second
    before = (scene.folder / "conf/ssl/ca/ca_crt.pem").read_bytes()
    type_lines(shell, body)
    assert (scene.folder / "conf/ssl/ca/ca_crt.pem").read_bytes() != before


def merge_request(host: Host, body: str) -> None:
    """In the checkout of a merge request, on the master's host."""
    checkout, origin = ControlRepository(host.root / "checkout"), str(host.root / "srv/control-repo.git")
    checkout.git("fetch", "--quiet", origin, "main:refs/remotes/origin/main", "my-branch:merged")
    checkout.git("checkout", "--quiet", "merged")
    shell = host.shell("checkout")
    type_lines(shell, body)
    assert "Notify[there]" in (shell.folder / "comment.md").read_text()


def move(scene: Scene, body: str) -> None:
    fill_store(scene.folder / "var/store/store.sqlite")
    target = f"sqlite:///{scene.folder}/target.sqlite"
    text = type_lines(scene.host().shell("shell", places={"postgresql://store@db.example.com/store": target}), body)
    assert f"store = {target}" in text


SCENES: Mapping[str, Callable[[Scene, str], None]] = {
    "start": start,
    "deploy": deploy,
    "hook": hook,
    "modules": modules,
    "adopt": adopt,
    "rollover": rollover,
    "move": move,
}
TUTORIAL = {
    "tutorial-site": "",
    "tutorial-master": "",
    "tutorial-deploy": "production is ",
    "tutorial-agent": "This is web1.example.com. Welcome.",
    "tutorial-change": "+This is web1.example.com. Maintenance at 20:00.",
    "tutorial-rollout": "+This is web1.example.com. Maintenance at 20:00.",
    "tutorial-query": "changed",
    "tutorial-rollback": "+This is web1.example.com. Welcome.",
}
"""What the blocks of the tutorial print, in their order."""
ON_THE_MASTER: Mapping[str, Callable[[Host, str], None]] = {"merge-request": merge_request}
COMMANDS = [each for page in PAGES for each in blocks(page, "sh")]


@pytest.mark.parametrize("block", [each for each in COMMANDS if each.name in SCENES], ids=lambda block: block.name)
def test_a_block_for_a_prepared_host_does_what_it_says(block: Block, tmp_path: Path) -> None:
    SCENES[block.name](Scene(tmp_path), block.body)


@pytest.mark.parametrize("block", [each for each in COMMANDS if each.name in ON_THE_MASTER], ids=lambda block: block.name)
def test_a_block_for_a_checkout_does_what_it_says(block: Block, host: Host) -> None:
    ON_THE_MASTER[block.name](host, block.body)


def test_the_tutorial_leads_from_a_manifest_to_a_rollback(tmp_path: Path) -> None:
    assert [each.name for each in blocks("docs/tutorial.md", "sh") if each.name] == list(TUTORIAL)
    git = f'exec {shutil.which("git")} -c user.name=test -c user.email=test@example.com "$@"'
    with master(tmp_path, **SETTINGS | {"certname": "localhost"}) as process:
        make_first_environment(tmp_path / "conf/code")
        process.start()
        write_conf(tmp_path / "conf")
        (tmp_path / "agent").mkdir()
        places = {"/tmp/motd": str(tmp_path / "motd")}
        shell = Host(process, {**PROGRAMS, "git": git, "mkdir": 'exec /bin/mkdir "$@"'}).shell("home", places=places)
        for name, expected in TUTORIAL.items():
            body = block("docs/tutorial.md", "sh", name).body
            if name != "tutorial-master":
                text = shell.type(body, {0, 2}) if body.startswith(("cd ", "mkdir ")) else type_lines(shell, body)
                assert expected in text, text


ROLLOUT = {
    "rollout-start": "production: the rollout of main is progressing, wave canary (1 of 3)",
    "rollout-status": "Next: wave 10% opens in",
    "rollout-commands": "production: the rollout of main is aborted",
    "rollout-watch": "aborted",
    "rollout-emergency": "Notice: Aborted the rollout of production",
}
"""What the blocks of the page on rollouts print, in their order; the last one during a second rollout."""


def test_a_rollout_does_what_its_page_says(tmp_path: Path) -> None:
    assert [each.name for each in blocks("docs/rollout.md", "sh")] == list(ROLLOUT)
    repository = ControlRepository(tmp_path / "control")
    repository.commit(CODE)
    settings = SETTINGS | {"deploy_repository": str(repository.folder)}
    with master(tmp_path, **settings) as process:
        make_first_environment(tmp_path / "conf/code")
        write_conf(tmp_path / "conf", settings)
        fill_store(tmp_path / "var/store/store.sqlite")
        process.start()
        shell = Host(process).shell("home")
        shell.type("puppet deploy production")
        repository.git("checkout", "--quiet", "-b", "main")
        repository.commit({"manifests/site.pp": "notify { 'new': }\n"})
        for name, expected in ROLLOUT.items():
            body = block("docs/rollout.md", "sh", name).body
            if name == "rollout-emergency":
                shell.type("puppet rollout start production --ref main")
            text = shell.type(body, {4} if name == "rollout-watch" else {0})
            assert expected in text, text
        assert (shell.folder / "rollout.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("block", [each for each in COMMANDS if not each.name], ids=str)
def test_the_lines_of_a_block_can_be_typed_beside_a_running_master(block: Block, host: Host) -> None:
    text = type_lines(host.shell(str(block)), block.body)
    if "puppet agent" in block.body:
        assert "Notice: here" in text, text
    if "/tmp/hello" in block.body:
        assert (host.root / "hello").read_text() == "hello\n"


@pytest.mark.parametrize("query", [line for page in PAGES for each in blocks(page, "pql") for line in each.body.splitlines()])
def test_a_query_has_an_answer(query: str, host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", query, *host.process.options]) == 0
    assert capsys.readouterr().out.startswith("[")


@pytest.mark.parametrize("block", [each for page in PAGES if page != "docs/extending.md" for each in blocks(page, "console")], ids=str)
def test_a_session_prints_what_the_page_shows(block: Block, host: Host) -> None:
    """A pipe is no terminal, so that the table has to be asked for."""
    command, _, output = block.body.partition("\n")
    assert host.shell(str(block)).type(f"{command.removeprefix('$ ')} --table") == output

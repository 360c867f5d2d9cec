"""The row of masters that are restarted one after the other while agents go on."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import threading
from collections.abc import Iterator
from functools import partial
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from cryptography import x509

from agent.process.agent import Agent, RunOptions
from ca.storage import inventory
from shared.data import plainjson, plainyaml
from shared.settings import AgentSettings, Conf, load
from tests.support.processes import MasterProcess, master
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

AGENTS = 5
TRIES = 3  # runs, of which one has to end well
SITE = {
    "manifests/site.pp": """
        file { "ROOT/${trusted['certname']}": ensure => directory }
        file { "ROOT/${trusted['certname']}/f": source => 'puppet:///modules/m/f' }
    """,
    "modules/m/files/f": "from a master\n",
}


@pytest.fixture
def masters(tmp_path: Path) -> Iterator[list[MasterProcess]]:
    """A master with the CA and one without, for the same name and code."""
    stage = tmp_path / "stage"
    stage.mkdir()
    with master(tmp_path / "first", autosign="true", key_type="ec") as first, master(tmp_path / "second") as second:
        for each in (first, second):
            each.write({name: text.replace("ROOT", str(stage)) for name, text in SITE.items()})
        first.start()
        own = first.root / "conf/ssl"
        for name in ("certs/ca.pem", "certs/localhost.pem", "private_keys/localhost.pem"):
            (second.root / "conf/ssl" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(own / name, second.root / "conf/ssl" / name)
        shutil.copy(own / "ca/ca_crl.pem", second.root / "conf/ssl/crl.pem")
        (second.root / "conf/puppet.conf").write_text(f"[main]\nca = false\nca_server = localhost\nca_port = {first.port}\n")
        second.start()
        yield [first, second]


def settings_of(root: Path, name: str, masters: list[MasterProcess]) -> AgentSettings:
    flags = {
        **{folder: str(root / name / folder) for folder in ("confdir", "vardir", "rundir", "logdir")},
        "server_list": ",".join(f"localhost:{each.port}" for each in masters),
        "ca_server": "localhost", "ca_port": str(masters[0].port),
        "certname": name, "key_type": "ec", "onetime": True, "detailed_exitcodes": True, "usecacheonfailure": False,
        "waitforcert": "1",
    }  # fmt: skip
    return load(AgentSettings, section="agent", flags=flags, conf=Conf())


async def test_R_17_agents_go_on_while_masters_are_restarted_one_after_the_other(masters: list[MasterProcess], tmp_path: Path) -> None:
    over, everybody = threading.Event(), asyncio.Event()
    names = [f"agent{number}.test" for number in range(AGENTS)]
    runs: dict[str, list[int]] = {name: [] for name in names}

    async def loop(name: str) -> None:
        settings = settings_of(tmp_path, name, masters)
        while not over.is_set() or not runs[name]:
            for _ in range(TRIES):
                code = await Agent(settings, RunOptions(), tell=lambda text: None).run_once()
                if code in (0, 2):
                    break
                await asyncio.sleep(0.5)
            runs[name].append(code)
            if all(runs.values()):
                everybody.set()  # has its certificate

    def restart() -> None:
        for each in masters:
            assert each.stop() == 0
            each.start()
            wait_until(partial(is_functional, each))  # as whoever restarts masters one after the other does

    async def restarting() -> None:
        try:
            await everybody.wait()
            await asyncio.to_thread(restart)
        finally:
            over.set()

    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(loop(name))
        group.create_task(restarting())
    print({name: len(codes) for name, codes in runs.items()})
    assert all(codes and set(codes) <= {0, 2} for codes in runs.values()), runs
    for name in names:
        assert (tmp_path / "stage" / name / "f").read_text() == "from a master\n"
    for each in masters:
        assert each.stop() == 0
        check_whole(each)


def is_functional(process: MasterProcess) -> bool:
    """Return whether a master says that it can serve agents."""
    context = ssl.create_default_context(cafile=str(process.root / "conf/ssl/certs/ca.pem"))
    context.check_hostname = False
    connection = HTTPSConnection("127.0.0.1", process.port, timeout=30, context=context)
    try:
        connection.request("GET", "/status/v1/simple/server")
        return connection.getresponse().status == 200
    finally:
        connection.close()


def check_whole(process: MasterProcess) -> None:
    """Everything that a master stored can be read, and nothing temporary is left."""
    assert "Traceback" not in process.log
    files = [path for path in (process.root / "var").rglob("*") if path.is_file() and "code_cache" not in path.parts]
    assert [path for path in files if path.name.endswith(".tmp")] == []
    for path in files:
        if path.suffix == ".yaml":
            plainyaml.loads(path.read_bytes(), aliases=True)
        elif path.suffix == ".json":
            plainjson.loads(path.read_bytes())
    if (process.ca / "signed").exists():
        serials = [record.serial for record in inventory.inventory_entries((process.ca / "inventory.txt").read_text())]
        assert len(serials) == len(set(serials))
        for path in (process.ca / "signed").glob("*.pem"):
            assert x509.load_pem_x509_certificate(path.read_bytes()).serial_number in serials

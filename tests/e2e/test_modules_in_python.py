"""Types, providers, facts and functions that modules bring in Python: synced by our agent from our master, and under `puppet apply`."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunraku.puppet import main
from tests.support.pair import Pair

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))
from examples.hoster import Hoster  # noqa: E402

pytestmark = pytest.mark.slow

MODULES = "code/environments/production/modules"
RECORDS = {
    "www.example.com/A": {"value": ["192.0.2.1", "192.0.2.2"], "ttl": 3600},
    "mail.example.com/MX": {"value": ["10 mx.example.net."], "ttl": 3600},
}


@pytest.fixture
def hoster() -> Iterator[Hoster]:
    server = Hoster()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def pair(tmp_path: Path, hoster: Hoster) -> Pair:
    pair = Pair(
        tmp_path, manifest=f"file {{ '{tmp_path}/dns.json': content => '{access(hoster)}' }} \nCLASS".replace("CLASS", of(tmp_path))
    )
    shutil.copytree(ROOT / "examples/modules/dns", tmp_path / "master" / MODULES / "dns")
    return pair


def access(hoster: Hoster) -> str:
    return json.dumps({"url": hoster.url, "token": "secret"})


def of(root: Path, more: str = "") -> str:
    return f"class {{ 'dns': credentials => '{root}/dns.json'{more} }}\nnotify {{ \"resolvers ${{facts['dns_resolvers'] =~ Array}}\": }}\n"


async def test_the_first_run_creates_the_zone_and_the_second_has_nothing_to_do(pair: Pair, hoster: Hoster) -> None:
    async with pair.mastered():
        first = await pair.run()
        assert first.report is not None
        failed = [entry.message for entry in first.report.logs if entry.level == "err"]
        assert failed == []
        assert hoster.zones == {"example.com": {"email": "hostmaster@example.com"}}
        assert hoster.records["example.com"] == RECORDS
        assert first.report.resource_statuses["Notify[resolvers true]"].changed
        # The credentials are a file of the same catalog: it is required without a word in the manifest.
        assert len(hoster.changes) == 3
        second = await pair.run()
        assert second.report is not None
        assert hoster.changes[3:] == []
        assert not any(status.changed for ref, status in second.report.resource_statuses.items() if not ref.startswith("Notify"))
        hoster.zones["example.com"]["email"] = "somebody@else"
        third = await pair.run()
        assert third.report is not None
        status = third.report.resource_statuses["Dnszone[example.com]"]
        assert [event.message for event in status.events] == ["email changed 'somebody@else' to 'hostmaster@example.com' (corrective)"]
        assert hoster.changes[3:] == ["PUT /zones/example.com"]


async def test_an_agent_has_the_subcommand_of_the_module(pair: Pair, hoster: Hoster, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    async with pair.mastered():
        await pair.run()
    agent = pair.root / "agent"
    words = ["--confdir", str(agent), "--vardir", str(agent / "var"), "--credentials", str(pair.root / "dns.json")]
    hoster.zones["example.org"] = {"email": "somebody@else"}

    async def printed(*more: str) -> tuple[int, list[str]]:
        code = await asyncio.to_thread(main, ["dns", *words, *more])
        return code, capfdbinary.readouterr().out.decode().splitlines()

    assert await printed() == (0, ["example.com  hostmaster@example.com", "example.org  somebody@else"])
    assert await printed("zones", "--email", "somebody@else", "--json") == (0, ["{", '  "example.org": "somebody@else"', "}"])
    lines = ["mail.example.com MX 10 mx.example.net.", "www.example.com A 192.0.2.1 192.0.2.2"]
    assert await printed("records", "example.com") == (0, lines)
    assert await printed("records", "example.net") == (1, [])


async def test_a_broken_type_stops_the_run_and_names_file_and_line(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "puppet")
    async with pair.mastered():
        await pair.run()
        path = pair.root / "master" / MODULES / "dns/lib/puppet/type/dnszone.py"
        synced = pair.root / "agent" / "var" / "lib" / "puppet" / "type" / "dnszone.py"
        path.write_text(path.read_text().replace("import Iterator", "import Iterator\nimport agents_have_no_such_module if 1 else 0"))
        (pair.root / "dns.json").unlink()
        ran = await pair.run(usecacheonfailure=True)
    # The compiler reads the type as well, and says the same; then the cached catalog is to be applied, and cannot be without it.
    place = f"(file: {synced}, line: 6)"
    assert ran.report is not None
    assert (ran.code, ran.report.resource_statuses) == (1, {})
    error = f"Failed to apply catalog: Could not load the type dnszone: SyntaxError: invalid syntax {place}"
    assert sum(error in line.message for line in ran.report.logs) == 1
    assert not (pair.root / "dns.json").exists()


async def test_a_broken_provider_leaves_its_type_without_one_and_says_why(pair: Pair) -> None:
    (pair.root / "master" / MODULES / "dns/lib/puppet/provider/dnszone/rest.py").write_text("import nosuchmodule\n")
    async with pair.mastered():
        ran = await pair.run()
    assert ran.report is not None
    assert ran.report.resource_statuses["Dnszone[example.com]"].failed
    errors = [line.message for line in ran.report.logs if line.level == "err"]
    assert any("No module named 'nosuchmodule' (file: " in each for each in errors)
    assert "Could not find a suitable provider for dnszone" in errors


async def test_puppet_apply_takes_them_from_the_modulepath(tmp_path: Path, hoster: Hoster) -> None:
    (tmp_path / "dns.json").write_text(access(hoster))
    options = [f"--{name}={tmp_path / name}" for name in ("confdir", "vardir", "logdir", "rundir", "codedir")]
    words = [
        "apply",
        *options,
        "--modulepath",
        str(ROOT / "examples/modules"),
        "--detailed-exitcodes",
        "-e",
        of(tmp_path).split("notify")[0],
    ]
    codes = []
    for _ in range(2):
        done = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bunraku", *words, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        out, _ = await asyncio.wait_for(done.communicate(), 60)
        codes.append((done.returncode, out.decode() if done.returncode not in (0, 2) else ""))
    assert codes == [(2, ""), (0, "")]
    assert hoster.records["example.com"] == RECORDS

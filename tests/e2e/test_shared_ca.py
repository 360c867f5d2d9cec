"""Two whole masters with one CA in PostgreSQL: each signs and revokes, and the other knows it at once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bunraku.commands.cert import run_on_ca
from ca.commands import puppet_cert
from master.wiring import running
from shared.settings import MasterSettings, load
from tests.support.ca_site import request_pem
from tests.support.postgresql import PostgresqlServer, postgresql_programs
from tests.support.raw_master import RawClient
from tests.support.wired_site import ENV, V3, WiredSite

pytestmark = pytest.mark.slow

IN_FORCE = 1.0  # second within which a revocation counts everywhere


@pytest.fixture
def own_postgresql() -> AsyncIterator[PostgresqlServer]:
    """A server that the test may stop."""
    programs = postgresql_programs()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: postgresql)")
    server = PostgresqlServer(programs)
    yield server
    server.remove()


def flags_of_master(folder: Path, certname: str, state: str) -> dict[str, str]:
    site = folder / "conf" / "code" / "environments" / "production" / "manifests" / "site.pp"
    site.parent.mkdir(parents=True)
    site.write_text("node default { }\n")
    return {
        "confdir": str(folder / "conf"), "vardir": str(folder / "var"), "rundir": str(folder / "run"), "logdir": str(folder / "log"),
        "certname": certname, "dns_alt_names": "localhost", "state": state, "autosign": "true", "key_type": "ec",
        "bindaddress": "127.0.0.1", "masterport": "0", "compile_workers": "1",
    }  # fmt: skip


async def started(ends: AsyncExitStack, flags: dict[str, str]) -> WiredSite:
    settings = load(MasterSettings, section="master", flags=flags)
    site = WiredSite(Path(flags["confdir"]).parent, settings, await ends.enter_async_context(running(settings)))

    async def close() -> None:
        for client in site.open:
            await client.close()

    ends.push_async_callback(close)
    return site


def copy_key(first: WiredSite, folder: Path) -> None:
    cadir = folder / "conf" / "ssl" / "ca"
    cadir.mkdir(parents=True)
    (cadir / "ca_key.pem").write_bytes((first.settings.cadir / "ca_key.pem").read_bytes())


async def until_refused(client: RawClient, name: str) -> float:
    """The seconds until requests on an open connection are refused."""
    began = time.monotonic()
    while (await client.ask("GET", f"{V3}/node/{name}{ENV}")).status == 200:
        assert time.monotonic() - began < 20
        await asyncio.sleep(0.02)
    return time.monotonic() - began


async def test_two_masters_are_one_ca_and_do_without_their_database_but_for_signing(
    tmp_path: Path, own_postgresql: PostgresqlServer, caplog: pytest.LogCaptureFixture
) -> None:
    state = own_postgresql.address("postgres")
    async with AsyncExitStack() as ends:
        flags = flags_of_master(tmp_path / "1", "master1.test", state)
        first = await started(ends, flags)
        copy_key(first, tmp_path / "2")
        second = await started(ends, flags_of_master(tmp_path / "2", "master2.test", state))
        # Enrolled with one, served by the other.
        await first.enrol("agent1")
        for suffix in ("pem", "key"):
            (second.root / f"agent1.{suffix}").write_bytes((first.root / f"agent1.{suffix}").read_bytes())
        connected = await second.client("agent1")
        assert (await connected.ask("GET", f"{V3}/node/agent1{ENV}")).status == 200
        # Revoked by a command on the first master's machine, refused by the second one on the connection that is open.
        command = ["revoke", "agent1", *(f"--{name}={value}" for name, value in flags.items())]
        assert await asyncio.to_thread(run_on_ca, puppet_cert.COMMAND, puppet_cert.cert, command) == 0
        assert await until_refused(connected, "agent1") < IN_FORCE
        stranger = await first.client()
        lists = [await (await site.client()).ask("GET", "/puppet-ca/v1/certificate_revocation_list/ca") for site in (first, second)]
        assert lists[0].body == lists[1].body and lists[0].headers.get("etag") == lists[1].headers.get("etag")
        await second.enrol("agent2")
        agent2 = await second.client("agent2")
        # Without the database: no signing, and everything else.
        own_postgresql.stop()
        request = await stranger.ask("PUT", "/puppet-ca/v1/certificate_request/agent3", request_pem("agent3"), Content_Type="text/plain")
        assert (request.status, request.headers["retry-after"]) == (503, "10")
        asked = (second.root / "agent2.pem").read_bytes()
        renewed = await agent2.ask("POST", "/puppet-ca/v1/certificate_renewal", asked, Content_Type="text/plain")
        assert (renewed.status, renewed.headers["retry-after"]) == (503, "10")
        assert "is away" in renewed.text
        assert (await second.catalog(agent2, "agent2", {})).status == 200
        health = second.master.health
        await health.check(health.conditions["ca-database"])
        states = [await agent2.ask("GET", f"/status/v1/simple/{name}") for name in ("ca", "server")]
        assert [state.text for state in states] == ["error", "running"]
        assert "the revocation list in force is the one that was last confirmed on" in caplog.text
        again = await stranger.ask("GET", "/puppet-ca/v1/certificate_revocation_list/ca")
        assert (again.status, again.body) == (200, lists[0].body)
        # And back by itself.
        own_postgresql.start()
        answer = await agent2.ask("POST", "/puppet-ca/v1/certificate_renewal", asked, Content_Type="text/plain")
        assert answer.status == 200
        trail = [json.loads(line) for line in (second.settings.logdir / "audit.json").read_text().splitlines()]
        assert [(entry["name"], entry["master"]) for entry in trail if entry["action"] == "renew" and entry["result"] == "done"] == [
            ("agent2", "master2.test")
        ]

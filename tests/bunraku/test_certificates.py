"""`puppet certificate --ca-location remote`: the same indirections, asked of the CA with this host's certificate."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bunraku.commands.certificate import main
from shared.errors import ConfigError, NotFound
from tests.support.command_line import Puppet
from tests.support.fake_server import Ask, FakeMaster, Reply
from tests.support.throwaway_ca import ThrowAwayCa

NAME = "node1.example.com"
STATUS = {"name": "web1", "state": "requested", "fingerprint": "AA:BB", "fingerprints": {"default": "AA:BB"}, "dns_alt_names": []}


@pytest.fixture
def ca() -> ThrowAwayCa:
    return ThrowAwayCa.new()


def answers(replies: dict[tuple[str, str], Reply]) -> Callable[[Ask], Reply]:
    """A CA of Puppet 7 that knows these (method, path) and nothing else."""

    def answer(ask: Ask) -> Reply:
        reply = replies.get((ask.method, ask.path), Reply(404, b"not here"))
        return Reply(reply.status, reply.body, {"X-Puppet-Version": "7.23.0", "Content-Type": "text/plain", **reply.headers})

    return answer


async def asked(words: list[str], ca: ThrowAwayCa, tmp_path: Path, replies: dict[tuple[str, str], Reply]) -> list[Ask]:
    ca.ssldir(tmp_path / "ssl", NAME)
    async with FakeMaster(ca.serving(tmp_path), answers(replies)).running() as master:
        where = ["--ca-location=remote", "--confdir", str(tmp_path), "--vardir", str(tmp_path / "var"), "--certname", NAME]
        await asyncio.to_thread(main, [*words, *where, "--ca_server", "localhost", "--ca_port", str(master.port)])
        return [ask for ask in master.asked if ask.path.startswith("/puppet-ca")]


async def test_find_prints_the_certificate(ca: ThrowAwayCa, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = await asked(["find", "ca"], ca, tmp_path, {("GET", "/puppet-ca/v1/certificate/ca"): Reply(200, ca.pem)})
    assert [(ask.method, ask.path) for ask in found][-1] == ("GET", "/puppet-ca/v1/certificate/ca")
    assert capsys.readouterr().out.encode() == ca.pem


async def test_the_ca_is_the_server_of_the_list_that_answers(ca: ThrowAwayCa, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ca.ssldir(tmp_path / "ssl", NAME)
    replies = {("GET", "/puppet-ca/v1/certificate/ca"): Reply(200, ca.pem), ("GET", "/status/v1/simple/server"): Reply(200, b"running")}
    async with FakeMaster(ca.serving(tmp_path), answers(replies)).running() as master:
        where = ["--ca-location=remote", "--confdir", str(tmp_path), "--vardir", str(tmp_path / "var"), "--certname", NAME]
        await asyncio.to_thread(main, ["find", "ca", *where, "--server_list", f"localhost:1,localhost:{master.port}"])
    assert capsys.readouterr().out.encode() == ca.pem


async def test_find_of_an_unknown_name_is_an_error(ca: ThrowAwayCa, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="Could not find certificate web9"):
        await asked(["find", "web9"], ca, tmp_path, {})


async def test_list_shows_requests_also_of_a_ca_that_lists_all(ca: ThrowAwayCa, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = json.dumps([STATUS, STATUS | {"name": "web2", "state": "signed"}]).encode()
    reply = Reply(200, body, {"Content-Type": "application/json"})
    await asked(["list"], ca, tmp_path, {("GET", "/puppet-ca/v1/certificate_statuses/any"): reply})
    assert capsys.readouterr().out == "web1 (SHA256) AA:BB\n"


async def test_sign_and_destroy_show_who_asks(ca: ThrowAwayCa, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = "/puppet-ca/v1/certificate_status/web1"
    signed = await asked(["sign", "web1"], ca, tmp_path, {("PUT", path): Reply(204)})
    assert [(ask.method, ask.path, ask.certname) for ask in signed] == [("PUT", path, NAME)]
    assert json.loads(signed[0].body)["desired_state"] == "signed"
    gone = await asked(["destroy", "web1"], ca, tmp_path, {("DELETE", path): Reply(204)})
    assert [(ask.method, ask.path) for ask in gone] == [("DELETE", path)]
    assert capsys.readouterr().out == "Signed certificate request for web1\nRemoved certificate and request of web1\n"


async def test_what_a_remote_ca_cannot_do_is_named(ca: ThrowAwayCa, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot generate on a remote CA"):
        await asked(["generate", "web1"], ca, tmp_path, {})
    with pytest.raises(ConfigError, match="takes 1 argument, but you gave 0"):
        await asked(["sign"], ca, tmp_path, {})


def test_without_certificates_the_ca_is_not_asked(puppet: Puppet) -> None:
    said = puppet("certificate", "list", "--ca-location", "remote")
    assert said.code == 1
    assert said.err.startswith(f"Error: The CA certificates are missing from '{puppet.conf}/ssl/certs/ca.pem'\n")


def test_the_key_of_the_cas_own_master_is_removed_only_after_its_certificate(puppet: Puppet) -> None:
    assert puppet("cert", "generate", "node1.example.com", "--key_type", "ec").code == 0
    key = puppet.conf / "ssl" / "private_keys" / "node1.example.com.pem"
    said = puppet("ssl", "clean", "--ca_server", "ca.example.com")
    assert said.code == 1 and "The certificate node1.example.com must be cleaned from the CA first" in said.err
    assert key.exists()
    assert puppet("cert", "clean", "--force", "node1.example.com").code == 0
    assert puppet("ssl", "clean", "--ca_server", "ca.example.com").code == 0
    assert not key.exists()

"""`puppet node`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from bunraku.commands import cert
from bunraku.commands.node import deactivate, main, node_statuses, status_text
from master.puppetdb.client import PuppetDbClient
from shared.data import plainyaml
from shared.errors import BadName, ConfigError, NotFound
from tests.support.fake_puppetdb import TAKEN, UUID, FakePuppetDb, body_of
from tests.support.fake_server import Ask, Reply

FACTS = """--- !ruby/object:Puppet::Node::Facts
name: %s
values:
  kernel: Linux
"""
KEPT = ("yaml/facts/%s.yaml", "yaml/node/%s.yaml", "reports/%s/202611210000.yaml")


@pytest.fixture
def var(tmp_path: Path) -> Path:
    """Of a master that knows the nodes web1 and web2."""
    for name in ("web1", "web2"):
        for path in KEPT:
            kept = tmp_path / "var" / (path % name)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(FACTS % name if "facts" in path else "--- {}\n")
    return tmp_path / "var"


@pytest.fixture
def places(tmp_path: Path) -> list[str]:
    return [f"--confdir={tmp_path}", f"--vardir={tmp_path / 'var'}", "--certname=m.example.com", "--key_type=ec"]


def kept(var: Path, name: str) -> list[str]:
    return [path for path in KEPT if (var / (path % name)).exists()]


def test_nothing_is_left_of_a_node_that_is_gone(var: Path, places: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cert.main([*places, "generate", "web1"]) == 0
    assert main([*places, "clean", "WEB1"]) == 0
    assert kept(var, "web1") == []
    assert kept(var, "web2") == list(KEPT)
    assert "Revoked certificate with serial" in capsys.readouterr().out
    assert cert.main(["list", *places, "--all"]) == 0
    assert "web1" not in capsys.readouterr().out


def test_who_has_no_certificate_or_is_not_known_at_all_is_cleaned_too(
    var: Path, places: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cert.main([*places, "generate", "other"]) == 0
    assert main([*places, "clean", "web1", "nobody", "--verbose"]) == 0
    assert kept(var, "web1") == []
    said = capsys.readouterr()
    assert "web1 has no certificate" in said.out + said.err
    assert "web1's facts removed" in said.out + said.err


def test_a_host_that_is_no_ca_makes_none(var: Path, places: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*places, "clean", "web1", "--verbose"]) == 0
    said = capsys.readouterr()
    assert "Not managing web1 certs as this host is not a CA" in said.out + said.err
    assert kept(var, "web1") == []
    assert not (tmp_path / "ssl").exists()


def test_what_cannot_be_removed_is_said_and_the_rest_is_done(var: Path, places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    facts = var / "yaml/facts/web1.yaml"
    facts.unlink()
    facts.mkdir()  # no file, for whatever reason
    assert main([*places, "clean", "web1"]) == 1
    assert "Could not remove the facts of web1" in capsys.readouterr().err
    assert kept(var, "web1") == ["yaml/facts/%s.yaml"]


def test_nodes_are_cleaned_whatever_classifies_them(var: Path, places: list[str]) -> None:
    assert main([*places, "clean", "web1", "--node_terminus=ldap", "--ldapbase="]) == 0  # a terminus that cannot be used as it is
    assert kept(var, "web1") == []


def test_a_name_that_is_none_stops_before_anything_is_done(var: Path, places: list[str]) -> None:
    with pytest.raises(BadName):
        main([*places, "clean", "web1", "../web2"])
    assert kept(var, "web1") == list(KEPT)


def test_a_node_is_shown_as_it_is_classified(var: Path, places: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    classifier = tmp_path / "enc"
    classifier.write_text("#!/bin/sh\n[ $1 = nobody ] || echo '{classes: {ntp: {server: a}}, environment: test, parameters: {rack: 7}}'\n")
    classifier.chmod(0o755)
    words = [*places, "--node_terminus=exec", f"--external_nodes={classifier}", "find"]
    node = {"name": "web1", "environment": "test", "classes": {"ntp": {"server": "a"}}, "parameters": {"kernel": "Linux", "rack": 7}}
    assert main([*words, "web1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == node
    assert main([*words, "web1"]) == 0
    assert plainyaml.loads(capsys.readouterr().out.encode()) == node
    assert main([*words, "web1", "--terminus", "plain", "--render-as=yaml"]) == 0
    assert plainyaml.loads(capsys.readouterr().out.encode()) == {
        "name": "web1",
        "environment": "production",
        "parameters": {"kernel": "Linux"},
    }
    with pytest.raises(NotFound, match="Could not find node nobody"):
        main([*words, "nobody"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no default action"),
        (["clean"], "At least one node should be passed"),
        (["deactivate"], "Please provide at least one node for deactivation"),
        (["status"], "Please provide at least one node"),
        (["remove", "x"], "has no 'remove' action"),
        (["find"], "takes 1 argument"),
        (["find", "x", "--terminus", "moon"], "There is no terminus moon for node"),
        (["find", "x", "--render-as", "png"], "I don't know how to render"),
    ],
)
def test_wrong_calls_are_told(words: list[str], said: str, places: list[str]) -> None:
    with pytest.raises(ConfigError, match=said):
        main([*places, *words])


def test_it_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "puppet node clean NAME" in capsys.readouterr().out


RECORDED = json.loads((Path(__file__).parents[1] / "data" / "puppetdb" / "terminus.json").read_text())


@pytest.fixture
async def puppetdb(tmp_path: Path) -> AsyncIterator[FakePuppetDb]:
    """The answers of the recorded statuses, and of commands; `puppetdb.conf` names it."""

    def answer(ask: Ask) -> Reply:
        for status in RECORDED["statuses"]:
            if status["path"] == ask.target:
                return Reply(status["status"], json.dumps(status["answer"]).encode())
        return TAKEN if ask.method == "POST" else Reply(404, b'{"error" : "No information is known about this node"}')

    fake = FakePuppetDb(tmp_path)
    async with fake.serving([answer]) as urls:
        (tmp_path / "puppetdb.conf").write_text(f"[main]\nserver_urls = {urls[0]}\n")
        yield fake


def client_of(fake: FakePuppetDb) -> PuppetDbClient:
    return fake.client([f"https://localhost:{fake.servers[0].port}"], keep_alive=False)


async def test_nodes_are_deactivated_in_a_puppetdb(puppetdb: FakePuppetDb, capsys: pytest.CaptureFixture[str]) -> None:
    assert await deactivate(["a.test", "b.test"], client_of(puppetdb)) == 0
    assert capsys.readouterr().out.splitlines() == [f"Submitted 'deactivate node' for {name}.test with UUID {UUID}" for name in "ab"]
    assert [body_of(ask)["certname"] for ask in puppetdb.servers[0].asked] == ["a.test", "b.test"]
    uuids: dict[str, str] = {}
    assert await deactivate(["a.test", "b.test"], client_of(puppetdb), uuids.__setitem__) == 0
    assert uuids == {"a.test": UUID, "b.test": UUID} and capsys.readouterr().out == ""


async def test_the_status_of_nodes_is_what_a_puppetdb_knows(puppetdb: FakePuppetDb, caplog: pytest.LogCaptureFixture) -> None:
    names = [status["path"].rpartition("/")[2] for status in RECORDED["statuses"]]
    statuses = await node_statuses(names, client_of(puppetdb))
    active, deactivated = (status["answer"] for status in RECORDED["statuses"] if status["status"] == 200)
    assert statuses == [active, deactivated]
    url = f"https://localhost:{puppetdb.servers[0].port}"
    path = "/pdb/query/v4/nodes/nosuch.example.com"
    assert caplog.messages == [
        f"Could not retrieve status for nosuch.example.com: Failed to find '{path}' on any of the following 'server_urls': {url}"
    ]
    assert status_text(active).splitlines() == [
        "web1.example.com",
        "Currently active",
        f"Last catalog: {active['catalog_timestamp']}",
        f"Last facts: {active['facts_timestamp']}",
    ]
    assert status_text(deactivated).splitlines()[1] == f"Deactivated at {deactivated['deactivated']}"
    assert status_text({"certname": "n", "expired": "T"}).splitlines()[1:] == ["Expired at T", "No catalog received", "No facts received"]


async def test_what_is_kept_of_a_node_that_is_gone_is_in_a_puppetdb_too(var: Path, places: list[str], puppetdb: FakePuppetDb) -> None:
    puppetdb.ca.ssldir(Path(places[0].partition("=")[2]) / "ssl", "m.example.com")
    code = await asyncio.to_thread(main, [*places, "--storeconfigs", "--no-ca", "clean", "web1"])
    assert code == 0 and kept(var, "web1") == []
    assert "deactivate_node" in [parse_qs(ask.query).get("command", [""])[0] for ask in puppetdb.servers[0].asked]

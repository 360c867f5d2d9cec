"""Our agent, unmodified, against the real puppetmaster 3.8.5."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.expected import (
    a_file_goes_to_the_bucket_and_comes_back,
    environments_are_chosen,
    report_of,
    stage_is_complete,
    tags_choose,
)
from tests.interop.pairs import older
from tests.interop.peers import PUPPET_3
from tests.interop.puppetmaster import Puppetmaster, puppetmaster
from tests.interop.stage import SITE
from tests.interop.test_real_agent_certificates import expire, serial_of, serials_in

pytestmark = [
    pytest.mark.works_with("Servers of Puppet with this agent", "the master of 3.8.5"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(PUPPET_3.why_not()), reason=PUPPET_3.why_not()),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Puppetmaster]:
    with puppetmaster(tmp_path_factory.mktemp("puppetmaster") / "master") as process:
        yield process.with_site().start()


@pytest.mark.smoke
def test_a_first_run_changes_and_a_second_has_nothing_to_do(server: Puppetmaster, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "web1")
    first = agent.test()
    assert first.code == 2 and "Error:" not in first, first.text
    stage = agent.root / "stage"
    stage_is_complete(stage, "Linux says hello\n")
    (stage / "tree" / "stray").write_text("not from the master\n")
    repaired = agent.test()
    assert repaired.code == 2 and not (stage / "tree" / "stray").exists(), repaired.text
    second = agent.test()
    assert second.code == 0, second.text
    stored = report_of(server, agent)
    assert (stored["host"], stored["report_format"], stored["environment"]) == ("web1.example.com", 4, "production")
    assert stored["status"] == "unchanged"


def test_noop_says_what_would_change_and_changes_nothing(server: Puppetmaster, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "noop1")
    ran = agent.test("--noop")
    assert ran.code == 0 and "(noop)" in ran, ran.text
    assert not (agent.root / "stage").exists()
    assert report_of(server, agent)["status"] == "unchanged"


def test_tags_choose_what_is_applied(server: Puppetmaster, tmp_path: Path) -> None:
    tags_choose(server.agent(tmp_path, "tagged1"))


def test_agent_and_classifier_choose_environments(server: Puppetmaster, tmp_path: Path) -> None:
    environments_are_chosen(server, tmp_path)


def test_an_unknown_environment_ends_the_run(server: Puppetmaster, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "reader2")
    stranger = agent.test("--environment", "nowhere")
    assert stranger.code == 1 and "Could not find environment 'nowhere'" in stranger, stranger.text
    assert agent.test().code == 2
    ran = agent.test("--environment", "nowhere")
    assert ran.code == 1 and "Not Found: Could not find environment 'nowhere'" in ran, ran.text
    assert "Could not retrieve catalog; skipping run" in ran


def test_a_compile_error_is_shown_as_the_master_worded_it(server: Puppetmaster, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "failing1")
    failed = agent.test()
    assert failed.code == 1, failed.text
    name = agent.certname
    said = f"Error 400 on SERVER: Could not find class nosuch for {name} on node {name}"
    assert f"Could not retrieve catalog from remote server: {said}" in failed
    real = server.its_agent(tmp_path, "failing2").test()
    assert said.replace("failing1", "failing2") in real, real.text


def test_a_run_without_a_new_catalog_applies_the_one_it_has(server: Puppetmaster, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "breaking1")
    assert agent.test().code == 2
    kept = agent.root / "stage" / "kept"
    kept.unlink()
    agent.facts["broken"] = "yes"
    failed = agent.test("--no-usecacheonfailure")
    assert failed.code == 1 and "broken by a fact" in failed and not kept.exists(), failed.text
    assert report_of(server, agent)["status"] == "failed"
    ran = agent.test("--usecacheonfailure")
    assert ran.code == 2 and "broken by a fact" in ran, ran.text
    assert kept.read_text() == "kept"
    kept.unlink()
    assert agent.test("--use_cached_catalog").code == 2 and kept.exists()


def test_bytes_links_trees_and_virtual_resources_arrive_as_they_are(server: Puppetmaster, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "bytes1", {"greeting": 'ça va +%26&="ж'})
    ran = agent.test()
    assert ran.code == 2 and "Error:" not in ran, ran.text
    stage = agent.root / "stage"
    assert (stage / "latin").read_bytes() == "ümläut\n".encode("latin-1")
    assert (stage / "fact").read_text() == 'grüße ça va +%26&="ж'
    assert (stage / "binary").read_bytes() == bytes(range(256))
    assert (stage / "managed/link").is_symlink() and (stage / "followed/link").read_text() == "real\n"
    assert not (stage / "followed/link").is_symlink()
    assert sorted(path.name for path in (stage / "ignored").iterdir()) == ["link", "real"]
    assert (stage / "realized").exists() and not (stage / "virtual").exists()
    again = agent.test()
    assert again.code == 0, again.text


def test_what_a_run_replaces_is_in_the_masters_bucket(server: Puppetmaster, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "backing1", {"master_port": str(server.port)})
    path = agent.root / "stage" / "a"
    path.parent.mkdir()
    path.write_bytes(b"\xffold\x00")
    ran = agent.test()
    value = hashlib.md5(b"\xffold\x00").hexdigest()
    assert ran.code == 2 and value in ran, ran.text
    (entry,) = (server.root / "var/bucket").rglob(value)
    assert (entry / "contents").read_bytes() == b"\xffold\x00" and path.read_text() == "new\n"


def test_a_file_is_backed_up_fetched_compared_and_restored(server: Puppetmaster, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "reader3")
    assert agent.test().code == 2
    assert a_file_goes_to_the_bucket_and_comes_back(agent) == [hashlib.md5(text).hexdigest() for text in (b"one\ntwo\n", b"one\nthree\n")]


def test_plugins_catalogs_and_facts_go_by_the_tools(server: Puppetmaster, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "web8", {"rack": "r9"})
    assert agent.puppet("ssl", "bootstrap").code == 0
    first = agent.puppet("plugin", "download")
    assert first.code == 0 and "Downloaded these plugins: " in first and "facter/from_ruby.rb" in first, first.text
    assert (agent.root / "vardir/lib/facter/from_ruby.rb").read_text() == SITE["modules/stage/lib/facter/from_ruby.rb"]
    assert "No plugins downloaded." in agent.puppet("plugin", "download")
    uploaded = agent.puppet("facts", "upload")  # 3.8's own rules let nobody
    assert uploaded.code == 1 and "Error 403 on SERVER: Forbidden request: " in uploaded, uploaded.text
    downloaded = agent.puppet("catalog", "download")
    assert downloaded.code == 0, downloaded.text


def test_an_agent_waits_until_the_administrator_signs(server: Puppetmaster, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "manual1")
    waiting = agent.test("--waitforcert", "0")
    assert waiting.code == 1, waiting.text
    assert "manual1.example.com" in server.puppet("cert", "list")
    signed = server.puppet("cert", "sign", "manual1.example.com")
    assert signed.code == 0, signed.text
    assert agent.test().code == 2
    verified = agent.puppet("ssl", "verify")
    assert verified.code == 0 and "Verified client certificate" in verified, verified.text


def test_a_revoked_agent_is_refused_and_others_learn_of_it(server: Puppetmaster, tmp_path: Path) -> None:
    agent, other = server.agent(tmp_path, "reader5"), server.agent(tmp_path, "reader6")
    assert agent.test().code == 2 and other.test().code == 2
    gone = serial_of(agent.certificate)
    revoked = server.puppet("cert", "revoke", "reader5.example.com")
    assert revoked.code == 0, revoked.text
    server.stop()  # WEBrick reads its list when it starts
    server.start()
    refused = agent.test()
    assert refused.code == 1, refused.text
    assert re.search("refused the TLS connection: .*revoked", refused.text), refused.text
    assert gone not in serials_in(other.ssl / "crl.pem")
    older(other.ssl / "crl.pem", 10)
    assert other.test("--crl_refresh_interval", "1").code == 2
    assert gone in serials_in(other.ssl / "crl.pem")


def test_an_expired_certificate_is_named(server: Puppetmaster, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "reader7")
    assert agent.test().code == 2
    expire(agent.certificate, server.ca)
    ran = agent.test()
    assert ran.code == 1 and "expired" in ran, ran.text

"""
Puppet 5.5.22, unmodified: its agent with our master, our agent with its master (WEBrick), and its two with each other.

The third pair is the control: what it does not do is not expected of the others.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop import test_static_catalogs as static
from tests.interop.expected import a_file_goes_to_the_bucket_and_comes_back, stage_is_complete
from tests.interop.pairs import Pair, older, pair, part_of, program, said, stage_of
from tests.interop.peers import PUPPET_5
from tests.interop.stage import CLASSIFIED, ENC, SITE
from tests.support.processes import OurAgent, RealAgent

pytestmark = [
    pytest.mark.works_with("Agents of Puppet with this master", "5.5.22: runs, files, other commands, and its master"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(PUPPET_5.why_not()), reason=PUPPET_5.why_not()),
]

KINDS = ("5.5 with ours", "ours with 5.5", "5.5 with 5.5")
FAILING = {"manifests/site.pp": "notice('so far')\n\nfail('not today')\n"}


@pytest.fixture(params=KINDS, ids=lambda kind: kind.replace(" ", "-"))
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def here(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> Pair:
    """A pair whose master, which other tests share, serves the stage."""
    agent, _, of_master = kind.partition(" with ")
    master = request.getfixturevalue("master_of_worker" if of_master == "ours" else "ruby_master_of_worker")
    return Pair(part_of(master, tmp_path), agent == "ours")


# --- runs


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.replace(" ", "-"), indirect=True)
def test_a_first_run_changes_a_spoilt_tree_is_mended_and_the_last_has_nothing_to_do(here: Pair) -> None:
    agent = here.agent()
    first = agent.test()
    assert first.code == 2, first.text
    assert here.reports()[-1]["status"] == "changed"
    stage = stage_of(agent)
    stage_is_complete(stage)
    (stage / "tree" / "stray").write_text("not from the master\n")
    mended = agent.test()
    assert mended.code == 2 and not (stage / "tree" / "stray").exists(), mended.text
    last = agent.test()
    assert last.code == 0 and "Error:" not in said(last), last.text
    report = here.reports()[-1]
    assert (report["status"], report["host"], report["environment"]) == ("unchanged", here.name, here.master.environment)
    assert report["report_format"] == (12 if here.our_agent else 10)


def test_noop_says_what_would_change_and_changes_nothing(here: Pair) -> None:
    agent = here.agent()
    ran = agent.test("--noop")
    assert ran.code == 0 and "(noop)" in ran and "Would have triggered 'refresh'" in ran, ran.text
    assert not stage_of(agent).exists()
    (report,) = here.reports()
    assert (report["noop"], report["noop_pending"], report["status"]) == (True, True, "unchanged")


def test_tags_choose_what_is_applied(here: Pair) -> None:
    here.write(
        {
            "manifests/site.pp": "file { $facts['stage_root']: ensure => directory, tag => 'wanted' }\n"
            "file { \"${facts['stage_root']}/a\": content => 'a', tag => 'wanted' }\n"
            "file { \"${facts['stage_root']}/b\": content => 'b', tag => 'other' }\n"
        }
    )
    agent = here.agent()
    assert agent.test("--tags", "wanted").code == 2
    assert [path.name for path in stage_of(agent).iterdir()] == ["a"]
    assert agent.test("--skip_tags", "other").code == 0
    assert agent.test().code == 2
    assert sorted(path.name for path in stage_of(agent).iterdir()) == ["a", "b"]


def test_the_agent_chooses_an_environment(here: Pair) -> None:
    testing = here.master.testing
    here.write({f"../{testing}/manifests/site.pp": 'notify { "here is ${environment}": }\n'})
    agent = here.agent()
    ran = agent.test("--environment", testing)
    assert ran.code == 2 and f"here is {testing}" in ran, ran.text
    assert here.reports()[-1]["environment"] == testing
    assert not stage_of(agent).exists()


@pytest.fixture
def classified(tmp_path: Path, kind: str) -> Iterator[Pair]:
    """A pair whose nodes a program classifies."""
    enc = program(tmp_path / "master" / "enc", ENC)
    with pair(kind, tmp_path / "master", node_terminus="exec", external_nodes=enc) as found:
        found.write(CLASSIFIED)
        found.master.start()
        yield found


def test_the_classifier_chooses_environment_classes_and_parameters(classified: Pair) -> None:
    agent = classified.agent()
    ran = agent.test()
    assert ran.code == 2 and "in testing: hello, rack r7" in ran, ran.text
    assert (agent.root / "vardir/lib/facter/only_testing.rb").exists()
    assert classified.reports()[-1]["environment"] == "testing"
    overruled = agent.test("--environment", "production")
    assert overruled.code == 2 and "in testing: hello" in overruled, overruled.text

    program(classified.master.root / "enc", ENC.replace("environment: testing", "environment: production"))
    moved = agent.test()
    assert moved.code == 2 and "in production: hello, rack r7" in moved, moved.text


def test_a_node_that_the_classifier_does_not_know_gets_no_catalog(classified: Pair) -> None:
    ran = classified.agent("web3.example.com").test()
    assert ran.code == 1 and "Failed to find web3.example.com via exec" in ran, ran.text


def test_an_unknown_environment_is_named(tmp_path: Path, kind: str) -> None:
    with pair(kind, tmp_path / "master") as here:
        here.write(SITE)
        here.master.start()
        names_an_unknown_environment(here)


def names_an_unknown_environment(here: Pair) -> None:
    agent = here.agent()
    assert agent.test().code == 2
    ran = agent.test("--environment", "nowhere")
    assert "Could not find environment 'nowhere'" in ran or "Environment 'nowhere' not found on server" in ran, ran.text
    if here.our_master:  # as puppetserver since 7.10, so that nobody stays unmanaged
        assert ran.code == 0 and "restarting agent run with environment 'production'" in ran, ran.text
        here.master.until_logged("web1.example.com asks for the environment 'nowhere', which does not exist")
    else:
        assert ran.code == 1, ran.text


def test_a_compile_error_is_shown_with_its_place_and_ends_the_run(here: Pair) -> None:
    agent = here.agent()
    assert agent.test().code == 2
    here.write(FAILING)
    failed = agent.test()
    assert failed.code == 1, failed.text
    assert "Could not retrieve catalog from remote server: Error 500 on SERVER: Server Error: Evaluation Error" in failed
    place = r"(\(file: \S+site\.pp, line: 3, column: 1\)|at \S+site\.pp:3:1)"
    assert re.search(rf"not today {place} on node {re.escape(here.name)}", failed.text)
    assert here.reports()[-1]["status"] == "failed"


def test_a_run_without_a_new_catalog_applies_the_one_it_has(here: Pair) -> None:
    agent = here.agent()
    assert agent.test().code == 2
    facts, daemonless = stage_of(agent) / "facts", ("agent", "--onetime", "--no-daemonize", "--verbose", "--detailed-exitcodes")
    facts.unlink()
    here.write(FAILING)
    refused = agent.puppet(*daemonless, "--no-usecacheonfailure")
    assert refused.code == 1 and not facts.exists(), refused.text
    ran = agent.puppet(*daemonless, "--usecacheonfailure")
    assert ran.code == 2 and "Using cached catalog" in ran, ran.text
    assert facts.read_text() == "ruby says hello\n"
    assert here.reports()[-1]["cached_catalog_status"] == "on_failure"
    facts.unlink()
    assert agent.puppet(*daemonless, "--use_cached_catalog").code == 2
    assert here.reports()[-1]["cached_catalog_status"] == "explicitly_requested"


# --- what is in a catalog

SOURCES = """
$root = $facts['stage_root']
file { $root: ensure => directory }
file { "${root}/first": source => ['puppet:///modules/tree/none', 'puppet:///modules/tree/top/a', 'puppet:///modules/tree/top/b'] }
file { "${root}/all": ensure => directory, recurse => true, sourceselect => all,
  source => ['puppet:///modules/tree/top', 'puppet:///modules/tree/other'] }
file { "${root}/remote": ensure => directory, recurse => remote, purge => true, source => 'puppet:///modules/tree/other' }
file { "${root}/ignored": ensure => directory, recurse => true, ignore => ['*.swp', '.git'], source => 'puppet:///modules/tree/littered' }
file { "${root}/shallow": ensure => directory, recurse => true, recurselimit => 1, source => 'puppet:///modules/tree/top' }
file { "${root}/linked": ensure => directory, recurse => true, links => manage, source => 'puppet:///modules/tree/links' }
file { "${root}/followed": ensure => directory, recurse => true, links => follow, source => 'puppet:///modules/tree/links' }
file { "${root}/odd": source => 'puppet:///modules/tree/odd name+x' }
"""
CHECKSUMS = ("md5", "md5lite", "sha256", "sha256lite", "mtime", "ctime")
BY_CHECKSUM = "".join(
    f"file {{ \"${{facts['stage_root']}}/{each}\": source => 'puppet:///modules/tree/top/a', checksum => {each} }}\n" for each in CHECKSUMS
)
TREE = {
    "modules/tree/files/top/a": "a\n",
    "modules/tree/files/top/b": "b\n",
    "modules/tree/files/top/deep/down/c": "c\n",
    "modules/tree/files/other/a": "other a\n",
    "modules/tree/files/other/d": "d\n",
    "modules/tree/files/littered/kept": "kept\n",
    "modules/tree/files/littered/x.swp": "litter\n",
    "modules/tree/files/littered/.git/config": "litter\n",
    "modules/tree/files/links/target": "target\n",
    "modules/tree/files/odd name+x": "odd\n",
}


def tree_of(root: Path) -> dict[str, str]:
    """All below `root`: the text of files, where links point."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(root))] = f"-> {path.readlink()}"
        elif path.is_file():
            found[str(path.relative_to(root))] = path.read_text()
    return found


def test_files_come_by_all_kinds_of_sources(here: Pair) -> None:
    here.write({"manifests/site.pp": SOURCES, **TREE})
    (here.master.site / "modules/tree/files/links/link").symlink_to("target")
    agent = here.agent()
    ran = agent.test()
    assert ran.code == 2 and "Error:" not in said(ran), ran.text
    stage = stage_of(agent)
    assert (stage / "first").read_text() == "a\n"
    assert tree_of(stage / "all") == {"a": "a\n", "b": "b\n", "d": "d\n", "deep/down/c": "c\n"}
    assert tree_of(stage / "remote") == {"a": "other a\n", "d": "d\n"}
    assert tree_of(stage / "ignored") == {"kept": "kept\n"}
    assert tree_of(stage / "shallow") == {"a": "a\n", "b": "b\n"} and (stage / "shallow/deep").is_dir()
    assert tree_of(stage / "linked") == {"link": "-> target", "target": "target\n"}
    assert tree_of(stage / "followed") == {"link": "target\n", "target": "target\n"}
    assert (stage / "odd").read_text() == "odd\n"
    (stage / "remote" / "stray").write_text("mine\n")
    again = agent.test()
    assert again.code == 0 and (stage / "remote" / "stray").exists(), again.text  # only what was there before is purged by `remote`


def test_every_type_of_checksum_is_agreed_on(here: Pair) -> None:
    here.write({"manifests/site.pp": "file { $facts['stage_root']: ensure => directory }\n" + BY_CHECKSUM, **TREE})
    source = here.master.site / "modules/tree/files/top/a"
    older(source, 3600)
    agent = here.agent()
    ran = agent.test()
    assert ran.code == 2 and "Error:" not in said(ran), ran.text
    assert tree_of(stage_of(agent)) == dict.fromkeys(CHECKSUMS, "a\n")
    again = agent.test()
    assert again.code == 0, again.text
    time.sleep(1.1)  # a ctime has seconds, and nobody can set it: that of the source has to be later than the agent's own
    source.write_text("changed\n")
    older(source, -3600)
    changed = agent.test()
    assert changed.code == 2, changed.text
    assert tree_of(stage_of(agent)) == dict.fromkeys(CHECKSUMS, "changed\n")


VALUES = """
$root = $facts['stage_root']
file { $root: ensure => directory }
file { "${root}/secret": content => Sensitive("hidden\\n") }
file { "${root}/words": content => "${facts['word']} grün ☃\\n" }
file { "${root}/bytes": content => file('tree/bytes') }
file { "${root}/base64": content => Binary('/wABgA==') }
notify { 'when': message => Timestamp('2020-01-02T03:04:05.678 UTC') }
notify { 'mixed': message => [/a.b/, SemVer('1.2.3'), default, 1.5, {1 => undef}] }
"""
BYTES = b"\xff\x00\x01\x80\xc3\xa9\n"


def test_values_that_json_has_not_arrive(here: Pair) -> None:
    """This release's formats know no rich data: bytes go in PSON, a Binary as its base64, other values as text."""
    here.write({"manifests/site.pp": VALUES, **TREE})
    (here.master.site / "modules/tree/files/bytes").write_bytes(BYTES)
    agent = here.agent(word="Füße")
    ran = agent.test()
    assert ran.code == 2 and "Error:" not in said(ran), ran.text
    stage = stage_of(agent)
    assert (stage / "bytes").read_bytes() == BYTES
    assert (stage / "words").read_text("utf-8") == "Füße grün ☃\n"
    assert (stage / "secret").read_text() == "hidden\n" and "hidden" not in ran
    assert (stage / "base64").read_text() == "/wABgA=="
    assert "2020-01-02T03:04:05.678000000 UTC" in ran and "SemVer" not in ran
    again = agent.test()
    assert again.code == 2 and "/content" not in again, again.text  # the two notifications alone
    report = here.reports()[-1]
    assert "hidden" not in str(report)


@pytest.mark.parametrize("kind", ["5.5 with ours", "5.5 with 5.5"], indirect=True, ids=lambda kind: kind.replace(" ", "-"))
def test_the_format_that_an_agent_prefers_is_spoken_where_it_is_one_of_the_network(here: Pair) -> None:
    agent = here.agent(word="Füße")
    here.write({"manifests/site.pp": 'notify { "${facts[word]} grün": }\n'})
    pson = agent.test("--preferred_serialization_format", "pson")
    assert pson.code == 2 and "Füße grün" in pson and "Could not send report" not in pson, pson.text
    assert any("Füße grün" in log["message"] for log in here.reports()[-1]["logs"])
    yaml = agent.test("--preferred_serialization_format", "yaml")
    assert yaml.code == 2 and "Füße grün" in yaml, yaml.text
    refused = "Client sent a mime-type (text/yaml) that doesn't correspond to a format we support"
    assert f"Could not send report: Error 415 on SERVER: Unsupported Media Type: {refused}" in yaml, yaml.text


def test_what_is_replaced_goes_to_the_masters_bucket(here: Pair) -> None:
    agent = here.agent()
    path, content = agent.root / "precious", f"precious to {here.name}\n"
    agent.facts["precious"] = str(path)
    here.write(
        {
            "manifests/site.pp": f"filebucket {{ 'main': server => 'localhost', port => {here.master.port}, path => false }}\n"
            "file { $facts['precious']: content => 'new', backup => 'main' }\n"
        }
    )
    path.write_text(content)
    ran = agent.test()
    assert ran.code == 2 and path.read_text() == "new", ran.text
    (found,) = (each for each in (here.master.root / "var/bucket").rglob("contents") if each.read_bytes() == content.encode())
    assert (found.parent / "paths").read_text() == f"{path}\n".lstrip("/")


def test_a_static_catalogs_files_are_fetched_by_version_and_without_metadata(tmp_path: Path) -> None:
    """Of our master alone: theirs makes none without puppetserver."""
    commands = {
        "code_id_command": program(tmp_path / "id", "#!/bin/sh\necho v1\n"),
        "code_content_command": program(tmp_path / "content", f'#!/bin/sh\ntest "$2" = v1 && exec cat "{tmp_path}/v1/$3"\n'),
    }
    for name, text in static.SITE.items():
        (tmp_path / "v1" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "v1" / name).write_text(text)
    with pair("5.5 with ours", tmp_path / "master", **commands) as here:
        here.write({**static.SITE, "../../modules/elsewhere/files/f": "no version\n"})
        here.master.start()
        agent = here.agent()
        first = agent.test()
        assert first.code == 2, first.text
        asked = re.findall(r'"GET (/puppet/v3/(?:static_file_content|file_\w+)/modules[^?" ]*)', here.master.log)
        assert asked == static.ASKED
        assert tree_of(stage_of(agent)) == {"outside": "no version\n", "plain": "plain text\n", "tree/a b": "a\n", "tree/deep/b": "b\n"}
        second = agent.test()
        assert second.code == 0, second.text


# --- tools


@pytest.fixture
def agent(here: Pair) -> OurAgent | RealAgent:
    """An agent that has its certificate."""
    found = here.agent()
    assert found.test("--noop").code == 0
    return found


def test_a_file_is_backed_up_fetched_compared_and_restored(here: Pair, agent: OurAgent | RealAgent) -> None:
    a_file_goes_to_the_bucket_and_comes_back(agent)


def test_plugins_are_downloaded_once(here: Pair, agent: OurAgent | RealAgent) -> None:
    (agent.root / "vardir/lib/facter/from_ruby.rb").unlink()
    first = agent.puppet("plugin", "download")
    assert first.code == 0 and "Downloaded these plugins" in first and "from_ruby.rb" in first, first.text
    assert (agent.root / "vardir/lib/facter/from_ruby.rb").read_text() == SITE["modules/stage/lib/facter/from_ruby.rb"]
    second = agent.puppet("plugin", "download")
    assert second.code == 0 and "No plugins downloaded." in second, second.text


def test_facts_are_uploaded_and_a_catalog_is_downloaded_for_them(here: Pair, agent: OurAgent | RealAgent) -> None:
    agent.facts["rack"] = "r7"
    here.write({"manifests/site.pp": 'notify { "rack ${facts[rack]}": }\n'})
    uploaded = agent.puppet("facts", "upload")
    assert uploaded.code == 0, uploaded.text
    (stored,) = (here.master.root / "var/yaml/facts").glob(f"{here.name}.*")
    assert re.search(r"rack: \"?'?r7", stored.read_text())
    downloaded = agent.puppet("catalog", "download")
    assert downloaded.code == 0 and f"Saved catalog for {here.name} to" in downloaded, downloaded.text
    (kept,) = (path for path in (agent.root / "vardir").rglob(f"{here.name}.*") if "catalog" in path.parent.name)
    assert "rack r7" in kept.read_text()


@pytest.mark.parametrize("subject", ["node", "catalog"])
@pytest.mark.parametrize("kind", ["5.5 with ours", "5.5 with 5.5"], indirect=True, ids=lambda kind: kind.replace(" ", "-"))
def test_what_belongs_to_another_is_denied(here: Pair, agent: RealAgent, subject: str) -> None:
    denied = agent.puppet(subject, "find", "web2.example.com", "--terminus", "rest")
    assert denied.code == 1 and "Error 403 on SERVER" in denied, denied.text
    assert f"Forbidden request: /puppet/v3/{subject}/web2.example.com" in denied
    status = agent.puppet("status", "find", here.name, "--terminus", "rest", "--render-as", "json")
    assert status.code == 0 and '"is_alive":true' in status.text.replace(" ", ""), status.text
    own = agent.puppet(subject, "find", here.name, "--terminus", "rest", "--render-as", "json")
    assert own.code == 0 and f'"name":"{here.name}"' in own.text.replace(" ", ""), own.text

"""What a PuppetDB gets in the same runs of our agent from puppetserver 7.9.5, with Puppet's terminus, and from our master."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from certs import keys
from tests.interop import puppetserver
from tests.interop.puppetserver import PUPPETSERVER_7
from tests.support.fake_puppetdb import MemoryPuppetDb, in_a_thread
from tests.support.fake_server import FakeMaster
from tests.support.ports import reserved_port
from tests.support.processes import OurAgent, master
from tests.support.throwaway_ca import ThrowAwayCa

pytestmark = [
    pytest.mark.works_with("PuppetDB behind this master", "what puppetserver and this master send in the same 25 runs"),
    pytest.mark.interop,
    pytest.mark.slow,
]

TERMINUS = Path("/usr/lib/ruby/vendor_ruby/puppet/indirector/catalog/puppetdb.rb")

SITE = Path(__file__).parents[1] / "data" / "compared_site"
RUNS = (
    ("web1",),
    ("col1",),
    ("web1", "--noop"),
    ("fail1",),
    ("err1",),
    ("web2", "--tags", "site::base,realized"),
    ("col1", "--noop"),
    ("relations1",),
    ("words1",),
    ("data1",),
    ("accounts1", "--noop"),
    ("audit1",),
    ("drift1",),
    ("drift1",),
    ("tree1",),
    ("tree1", "--skip_tags", "own"),
    ("virtual1",),
    ("twice1",),
    ("circle1",),
    ("missing1",),
    ("wrong1",),
    ("web1", "--use_cached_catalog"),
    ("web1", "--prerun_command", "/bin/false"),
    ("web1", "--postrun_command", "/bin/false"),
    ("web2",),
)


@dataclass
class Side:
    """A master with its fake PuppetDB; `ran` are the commands of each run."""

    root: Path
    port: int
    puppetdb: MemoryPuppetDb
    ran: list[list[tuple[str, dict[str, Any]]]] = field(default_factory=list)

    def run(self, name: str, *options: str) -> None:
        before, folder = len(self.puppetdb.commands), self.root / "agents" / name
        folder.mkdir(parents=True, exist_ok=True)
        stage = self.root.parent / "stage"
        agent = OurAgent(folder, self.port, f"{name}.example.com", facts={"stage_root": str(stage)})
        agent.test(*options)
        self.ran.append(self.puppetdb.commands[before:])


def configure(confdir: Path, port: int) -> None:
    (confdir / "puppetdb.conf").write_text(f"[main]\nserver_urls = https://localhost:{port}\n")
    (confdir / "routes.yaml").write_text("---\nmaster: &server\n  facts: {terminus: puppetdb, cache: yaml}\nserver: *server\n")


@contextmanager
def puppetdb_of(ca: Path, folder: Path, port: int) -> Iterator[MemoryPuppetDb]:
    """A fake PuppetDB with a certificate of a CA."""
    authority = x509.load_pem_x509_certificates((ca / "ca_crt.pem").read_bytes())
    key = keys.load(ca / "ca_key.pem")
    (issuer,) = (each for each in authority if keys.public_der(each.public_key()) == keys.public_der(key.public_key()))
    puppetdb = MemoryPuppetDb()
    with in_a_thread(FakeMaster(ThrowAwayCa(key, issuer, 10_000).serving(folder), puppetdb, port=port)):
        yield puppetdb


def do_runs(side: Side) -> Side:
    for name, *options in RUNS:
        side.run(name, *options)
    return side


@pytest.fixture(scope="module")
def sides() -> Iterator[tuple[Side, Side]]:
    """Puppetserver and our master after the same runs on the same environment and the same folder of files."""
    if reason := PUPPETSERVER_7.why_not():
        pytest.skip(reason)
    if not TERMINUS.exists():
        pytest.skip("Puppet's terminus is not installed (Debian: puppet-terminus-puppetdb)")
    root = Path(tempfile.mkdtemp(prefix="puppetserver-"))  # its own user has to get there
    reserved = ExitStack()
    try:
        theirs, ours, stage = root / "theirs", root / "ours", root / "stage"
        for folder in (theirs, ours, stage):
            folder.mkdir()
        root.chmod(0o755)
        port, database = (reserved.enter_context(reserved_port()) for _ in range(2))
        puppetserver.configured(PUPPETSERVER_7, theirs, port, 1, programs=False)
        environments = theirs / "code/environments"
        shutil.rmtree(environments)
        shutil.copytree(SITE, environments / "production")
        with (theirs / "conf/puppet.conf").open("a") as conf:
            conf.write("[server]\nstoreconfigs = true\nstoreconfigs_backend = puppetdb\nreports = puppetdb\n")
        configure(theirs / "conf", database)
        with ExitStack() as stack:
            stack.enter_context(puppetserver.running(theirs, port, PUPPETSERVER_7))
            puppetdb = stack.enter_context(puppetdb_of(theirs / "ca", root, database))
            done_by_them = do_runs(Side(theirs, port, puppetdb))
        shutil.rmtree(stage)
        stage.mkdir()
        settings = {"environmentpath": str(environments), "reports": "puppetdb", "autosign": "true", "key_type": "ec"}
        (ours / "conf").mkdir()
        (ours / "conf/puppet.conf").write_text("[server]\nstoreconfigs = true\n")
        configure(ours / "conf", database)
        with ExitStack() as stack:
            process = stack.enter_context(master(ours, **settings)).start()
            puppetdb = stack.enter_context(puppetdb_of(process.ca, root, database))
            done_by_us = do_runs(Side(ours, process.port, puppetdb))
        yield done_by_them, done_by_us
    finally:
        reserved.close()
        shutil.rmtree(root)


def commands(run: list[tuple[str, dict[str, Any]]], name: str) -> list[dict[str, Any]]:
    return [body for command, body in run if command == name]


def without(data: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in names}


EACH_RUNS_OWN = ("producer_timestamp", "catalog_uuid", "transaction_uuid")


def test_each_run_sends_the_same_commands(sides: tuple[Side, Side]) -> None:
    theirs, ours = ([[name for name, _ in run] for run in side.ran] for side in sides)
    assert ours == theirs
    assert ours[RUNS.index(("err1",))] == ["replace_facts", "store_report"]
    assert ours[0] == ["replace_facts", "replace_catalog", "store_report"]


def test_catalogs_are_the_same(sides: tuple[Side, Side]) -> None:
    for number, (theirs, ours) in enumerate(zip(*(side.ran for side in sides), strict=True)):
        for their_catalog, our_catalog in zip(commands(theirs, "replace_catalog"), commands(ours, "replace_catalog"), strict=True):
            assert sorted(our_catalog) == sorted(their_catalog)
            assert comparable(our_catalog) == comparable(their_catalog), RUNS[number]
            assert "canary" not in json.dumps(our_catalog)


def comparable(catalog: dict[str, Any]) -> dict[str, Any]:
    resources = {(each["type"], each["title"]): {**each, "tags": sorted(each["tags"])} for each in catalog["resources"]}
    edges = sorted(json.dumps(edge, sort_keys=True) for edge in catalog["edges"])
    return {**without(catalog, "version", *EACH_RUNS_OWN), "resources": resources, "edges": edges, "version": type(catalog["version"])}


def test_facts_are_the_same(sides: tuple[Side, Side]) -> None:
    for theirs, ours in zip(*(side.ran for side in sides), strict=True):
        for their_facts, our_facts in zip(commands(theirs, "replace_facts"), commands(ours, "replace_facts"), strict=True):
            assert without(our_facts, "values", *EACH_RUNS_OWN) == without(their_facts, "values", *EACH_RUNS_OWN)
            assert sorted(our_facts["values"]) == sorted(their_facts["values"])
            for name in ("trusted", "os", "kernel", "identity", "stage_root", "clientcert", "clientversion", "puppetversion"):
                assert our_facts["values"][name] == their_facts["values"][name]
            same_form = [re.sub(r"\d", "0", each["producer_timestamp"]) for each in (our_facts, their_facts)]
            assert same_form[0] == same_form[1]


def test_reports_are_the_same(sides: tuple[Side, Side]) -> None:
    for number, (theirs, ours) in enumerate(zip(*(side.ran for side in sides), strict=True)):
        for their_report, our_report in zip(commands(theirs, "store_report"), commands(ours, "store_report"), strict=True):
            assert sorted(our_report) == sorted(their_report)
            assert [_form(our_report[name]) for name in TIMES] == [_form(their_report[name]) for name in TIMES]
            assert _report(our_report) == _report(their_report), RUNS[number]


TIMES = ("start_time", "end_time", "producer_timestamp")


def _form(time: str) -> str:
    return re.sub(r"\d", "0", time)


def _report(report: dict[str, Any]) -> dict[str, Any]:
    """What is the same in two runs."""
    logs = [
        {**without(log, "time"), "message": _message(log["message"]), "tags": sorted(log["tags"])}
        for log in report["logs"]
        if "/lib/puppet" not in log["source"]  # puppetserver's package brings modules of its own
    ]
    metrics = [without(metric, "value") if metric["category"] == "time" else metric for metric in report["metrics"]]
    resources = [
        {**without(each, "timestamp"), "events": [without(event, "timestamp") for event in each["events"]]} for each in report["resources"]
    ]
    rest = without(report, "configuration_version", "logs", "metrics", "resources", *EACH_RUNS_OWN, *TIMES)
    by_name = [sorted(part, key=lambda each: json.dumps(each, sort_keys=True)) for part in (logs, metrics, resources)]
    return rest | dict(zip(("logs", "metrics", "resources"), by_name, strict=True))


def _message(text: str) -> str:
    """A line of a log without what differs between runs: versions, durations, the folder of an agent."""
    text = re.sub(r"[\d.]+ seconds", "N seconds", re.sub(r"'\d{10}'", "'VERSION'", text))
    return re.sub(r"/(theirs|ours)/agents/", "/SIDE/agents/", text)

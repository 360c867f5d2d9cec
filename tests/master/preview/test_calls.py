"""Nodes whose catalogs call programs, Ruby that may read anything, or a PuppetDB: who can be affected by a change."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from environments.directories import EnvironmentSettings
from environments.files.export_keys import ExportKeys
from language.codegen.codecache import CodeCache
from master.dependencies.recorder import RecordSender
from master.dependencies.records import CatalogRecords
from master.pools.compile_worker import CompileWorker
from master.preview.worker import PreviewWorker
from tests.environments.ruby.site import PROGRAM
from tests.support.compile_jobs import catalog_job
from tests.support.edited_site import node, write
from tests.support.needs import needs_ruby

FILES = {
    "manifests/site.pp": "notify { f('m/words'): }\nnotify { template('m/t.erb'): }\nnotify { generate('/bin/cat', 'WORLD'): }\n",
    "modules/m/manifests/init.pp": "class m { }\n",
    "modules/m/words": "of the module\n",
    "modules/m/templates/t.erb": "<%= IO.binread(File.join(@place, 'text')) rescue 'none' %> <%= IO.binread('WORLD') %>!",
    "modules/m/lib/puppet/parser/functions/f.rb": (
        "Puppet::Parser::Functions.newfunction(:f, type: :rvalue) do |args|\n"
        "  mod, name = args[0].split('/')\n  IO.binread(File.join(Puppet::Module.find(mod).path, name))\nend\n"
    ),
}


class Sides:
    """Two folders of code, what a preview says of a node, and the file that programs and Ruby read."""

    def __init__(self, folder: Path) -> None:
        self.world = folder / "world"
        self.world.write_text("one")
        self.roots = folder / "environments/production", folder / "second"
        self.records = folder / "records"
        self.keys = folder / "exported.key"
        ExportKeys(self.keys).create()
        write(self.roots[0], [(name, text.replace("WORLD", str(self.world))) for name, text in FILES.items()])
        shutil.copytree(*self.roots)
        self.stored: list[Any] = []  # the rows that a PuppetDB returns to each query
        self.worker = self.new_worker()

    def new_worker(self, **settings: Any) -> PreviewWorker:
        given = EnvironmentSettings(("/nonexistent",), **{"ruby": PROGRAM, "export_keys": str(self.keys), **settings})
        return PreviewWorker(given, CodeCache(), ask_puppetdb=lambda questions: [json.dumps(self.stored).encode()] * len(questions))

    def preview(self, worker: PreviewWorker | None = None) -> tuple[str, int]:
        """The node's state, and how many catalogs were compiled."""
        outcome = self.outcome(worker)
        return outcome["state"], outcome["compilations"]

    def outcome(self, worker: PreviewWorker | None = None, name: str = "n") -> dict[str, Any]:
        sides = {"environment": "production", "roots": list(map(str, self.roots))}
        job = {"ask": "preview", "sides": sides, "each": 60, "records": str(self.records), **node(name, "web")}
        found: dict[str, Any] = json.loads((worker or self.worker).answer(job, lambda entry: None))
        return found

    def again(self) -> tuple[str, int]:
        """The same by a worker that knows nothing but the records."""
        worker = self.new_worker()
        try:
            return self.preview(worker)
        finally:
            worker.forget()


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[Sides]:
    made = Sides(tmp_path)
    yield made
    made.worker.forget()


pytestmark = [needs_ruby, pytest.mark.works_with("Preview", "programs, Ruby and PuppetDB: no affected node is missed")]


@pytest.mark.slow
def test_a_node_is_compiled_once_and_then_not_at_all(sides: Sides) -> None:
    assert sides.preview() == ("unaffected", 1)
    assert [sides.again(), sides.again()] == [("unaffected", 0)] * 2
    write(sides.roots[1], [("modules/m/manifests/other.pp", "class m::other { }\n")])
    assert sides.again() == ("unaffected", 0)


@pytest.mark.parametrize(
    "edit",
    [
        ("modules/m/words", "changed\n"),
        ("modules/m/templates/t.erb", "other"),
        ("modules/m/lib/puppet/parser/functions/f.rb", FILES["modules/m/lib/puppet/parser/functions/f.rb"].replace("IO.", "'x' + IO.")),
    ],
)
def test_a_file_that_ruby_reads_by_itself_affects_the_node(sides: Sides, edit: tuple[str, str]) -> None:
    assert sides.preview() == ("unaffected", 1)
    write(sides.roots[1], [edit])
    assert sides.again()[0] == "changed"


@pytest.mark.slow
def test_a_record_is_of_no_use_when_the_world_has_changed(sides: Sides) -> None:
    assert sides.preview() == ("unaffected", 1)
    sides.world.write_text("two")
    assert sides.again() == ("unaffected", 1)
    assert sides.again() == ("unaffected", 0)


def test_all_reasons_for_which_a_value_may_differ_from_itself_are_named(sides: Sides) -> None:
    program = sides.world.with_name("count.sh")
    program.write_text(f"#!/bin/sh\necho x >> {sides.world}\ncat {sides.world}\n")
    program.chmod(0o755)
    for root, text in zip(sides.roots, "ab", strict=True):
        write(root, [("manifests/site.pp", f"$now = time()\nnotify {{ '{text}': }}\nfile {{ '/f': content => generate('{program}') }}\n")])
    (unstable,) = sides.outcome()["unstable"]
    assert (unstable["subject"], unstable["parameter"]) == ("File[/f]", "content")
    assert unstable["reason"].split("; ")[1:] == ["generate() is called"] and "time" in unstable["reason"]


@pytest.mark.slow
def test_arguments_are_stored_encrypted_or_not_at_all(sides: Sides) -> None:
    sides.preview()
    (record,) = sides.records.iterdir()
    for key in ("", "other"):
        worker = sides.new_worker(export_keys=key and f"{sides.keys}.{key}")
        assert sides.preview(worker) == ("unaffected", 1)
        worker.forget()
    record.unlink()
    worker = sides.new_worker(export_keys="")
    assert sides.preview(worker) == ("unaffected", 1)
    assert list(sides.records.iterdir()) == []
    worker.forget()


def test_a_key_that_cannot_be_used_is_named(sides: Sides) -> None:
    worker = sides.new_worker(export_keys=str(sides.world))
    assert "The record of the calls of n needs a key of" in sides.outcome(worker)["not_kept"]
    worker.forget()


def test_a_call_is_made_once_on_each_side_for_all_nodes(sides: Sides) -> None:
    counter = sides.world.with_name("counter")
    script = sides.world.with_name("count.sh")
    script.write_text(f"#!/bin/sh\necho x >> {counter}\n")
    script.chmod(0o755)
    for root in sides.roots:
        write(root, [("manifests/site.pp", f"generate('{script}')\n")])
    for name in ("n1", "n2", "n3"):
        assert sides.outcome(name=name)["state"] == "unaffected"
    compiled = len(counter.read_text().split())
    assert compiled == 3 + 1  # from one side each, and once on the other
    for name in ("n1", "n2", "n3"):
        assert sides.outcome(name=name)["compilations"] == 0
    assert len(counter.read_text().split()) == compiled + 1


def recorded_for_an_agent(sides: Sides, keys: Path) -> list[bytes]:
    """The records that a master's compiling process sends when an agent has got the node's catalog."""
    sent: list[bytes] = []
    settings = EnvironmentSettings((str(sides.roots[0].parent),), ruby=PROGRAM, export_keys=str(keys))
    worker = CompileWorker(settings, CodeCache(), records=(sender := RecordSender(sent.append)))
    worker.answer(catalog_job("n", node("n", "web")["facts"]) | node("n", "web"), lambda entry: None)
    sender.send()
    worker.forget()
    return sent


@pytest.mark.slow
def test_a_record_of_the_catalog_that_an_agent_got_serves_as_well(sides: Sides) -> None:
    (datagram,) = recorded_for_an_agent(sides, sides.keys)
    CatalogRecords(sides.records).save("n", datagram.partition(b"\0")[2])
    assert sides.preview() == ("unaffected", 0)
    write(sides.roots[1], [("modules/m/words", "changed\n")])
    assert sides.again()[0] == "changed"


def test_an_agent_gets_its_catalog_although_no_key_can_be_used(sides: Sides) -> None:
    assert recorded_for_an_agent(sides, sides.world) == []


def test_a_query_is_asked_again_before_a_record_is_used(sides: Sides) -> None:
    for root in sides.roots:
        write(root, [("manifests/site.pp", "notify { \"${length(puppetdb_query('nodes{}'))} nodes\": }\n")])
    assert sides.preview() == ("unaffected", 1)
    assert sides.again() == ("unaffected", 0)
    sides.stored.append({"certname": "other"})
    assert [sides.again(), sides.again()] == [("unaffected", 1), ("unaffected", 0)]
    write(sides.roots[1], [("manifests/site.pp", "notify { 'another': }\n")])
    assert sides.again()[0] == "changed"


def test_what_differs_because_of_a_call_is_no_change(sides: Sides) -> None:
    script = sides.world.with_name("random.sh")
    script.write_text("#!/bin/sh\ncat /proc/sys/kernel/random/uuid\n")
    script.chmod(0o755)
    for root in sides.roots:
        write(root, [("manifests/site.pp", f"notify {{ 'n': message => generate('{script}') }}\n")])
    outcome = sides.outcome()
    assert outcome["state"] == "unchanged"
    assert "generate() is called" in json.dumps(outcome)

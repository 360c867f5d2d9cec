"""`puppet resource` and `puppet describe` of types that modules have, in Ruby and in Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shared.ruby import RubyChild
from tests.support.command_line import Puppet, Said
from tests.support.needs import needs_ruby
from tests.support.ruby_apply import MODULES, use_few_facts

Command = Callable[..., Said]

HEAPS = "---\nold:\n  :size: 1\n  :colour: red\nolder:\n  :size: 2\n"


@pytest.fixture
def command(puppet: Puppet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    use_few_facts(monkeypatch)
    monkeypatch.setenv("HEAPS", str(tmp_path / "heaps.yaml"))
    monkeypatch.setenv("CRATES", str(tmp_path))
    (tmp_path / "heaps.yaml").write_text(HEAPS)
    return lambda name, *words: puppet(name, "--color=false", "--modulepath", str(MODULES), *words)


@needs_ruby
def test_all_are_listed_and_one_is_shown(command: Command, started: list[RubyChild]) -> None:
    said = command("resource", "heap")
    assert (said.code, said.err, said.out.count("heap { ")) == (0, "", 2)
    said = command("resource", "heap", "old", "-p", "folder")
    assert said.out.splitlines()[1:5] == [
        "  ensure   => 'present',",
        "  colour   => 'red',",
        "  folder   => '/tmp',",
        "  provider => 'counted',",
    ]
    assert all(not child.alive for child in started)


@needs_ruby
def test_one_is_changed_and_shown(command: Command, tmp_path: Path) -> None:
    said = command("resource", "heap", "new", "ensure=present", "size=4")
    assert "Notice: /Heap[new]/ensure: created" in said.out and "  size     => 4,\n" in said.out
    assert ":size: 4" in (tmp_path / "heaps.yaml").read_text()
    assert "removed (noop)" not in command("resource", "heap", "new", "ensure=absent", "--noop").out
    assert "new" in (tmp_path / "heaps.yaml").read_text()


@needs_ruby
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("jar",), 1, "The jar provider 'labelled' cannot list what exists"),
        (("heap", "old", "size=many"), 1, 'Munging failed for value "many" in class size'),
        (("heap", "old", "nonsense=1"), 1, "no parameter named 'nonsense'"),
        (("broken", "x"), 1, "The type broken cannot be used"),
        (("none",), 1, "Could not find type none"),
    ],
)
def test_what_cannot_be_done_is_said(words: tuple[str, ...], code: int, message: str, command: Command) -> None:
    said = command("resource", *words)
    assert said.code == code and message in said.err


@needs_ruby
def test_providers_in_ruby_of_puppets_own_types_are_listed(command: Command, tmp_path: Path) -> None:
    (tmp_path / "one.crate").write_text("1.0")
    said = command("resource", "package", "one", "provider=crate")
    assert "  ensure   => '1.0'," in said.out and "provider => 'crate'" in said.out


def test_without_a_ruby_it_is_said_what_to_install(command: Command) -> None:
    said = command("resource", "heap", "--ruby", "")
    assert said.code == 1 and "Types of modules are in Ruby, and there is no ruby to run them: heap" in said.err


def test_the_names_of_types_need_no_ruby(command: Command, started: list[RubyChild]) -> None:
    assert {"heap", "jar", "package", "broken"} <= set(command("resource", "--types").out.split())
    assert started == []


@needs_ruby
def test_a_type_is_described(command: Command) -> None:
    said = command("describe", "jar", "--providers")
    assert said.code == 0
    assert "\njar\n===\nA jar on a shelf: a file with pairs.\n" in said.out
    assert "- **ensure**\n    Whether it is there.\n    Valid values are `present`, `absent`, `sealed` (also called `closed`)." in said.out
    assert "- **labelled**" in said.out and "Supported features: `labels`, `lids`." in said.out


@needs_ruby
def test_types_of_modules_are_listed_among_puppets_own(command: Command) -> None:
    said = command("describe", "--list")
    assert said.code == 0
    assert "jar                - A jar on a shelf: a file with pairs." in said.out and "\npackage " in said.out
    assert "Could not load the type broken" in said.err and "\nbroken " not in said.out


def test_a_type_in_python_counts_before_one_of_its_name_in_ruby(command: Command, started: list[RubyChild], tmp_path: Path) -> None:
    kinds = tmp_path / "mine" / "both" / "lib" / "puppet"
    (kinds / "type").mkdir(parents=True)
    (kinds / "provider" / "both").mkdir(parents=True)
    (kinds / "type" / "both.rb").write_text("raise 'it was loaded'")
    (kinds / "type" / "both.py").write_text(
        'from shared.ral import Param, Property, Type\n\n\nclass Both(Type, name="both"):\n    """In Python."""\n\n'
        '    name = Param(str, namevar=True, doc="It.")\n    size = Property(int, doc="How much.")\n'
    )
    (kinds / "provider" / "both" / "here.py").write_text(
        "from puppet_type_both import Both\nfrom shared.ral import Provider\n\n\nclass Here(Provider[Both], type=Both):\n"
        '    async def retrieve(self, resource):\n        return {"size": 1}\n\n'
        "    async def set(self, resource, attribute, desired, state):\n"
        f"        __import__('pathlib').Path({str(tmp_path / 'set')!r}).write_text(str(desired))\n"
    )
    (kinds / "provider" / "both" / "here.rb").write_text("raise 'it was loaded'")
    where = ("--modulepath", str(tmp_path / "mine"))
    assert "In Python." in command("describe", "both", *where).out
    assert "size     => 1" in command("resource", "both", "x", *where).out
    assert command("apply", *where, "-e", "both { 'x': size => 2 }").err == ""
    assert (tmp_path / "set").read_text() == "2"
    assert started == []

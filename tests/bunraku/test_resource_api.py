"""Types of modules that use Puppet's Resource API, applied by `puppet apply`; tests/interop compares them with the reference."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared.data import plainyaml
from tests.support.command_line import Puppet, Said
from tests.support.needs import needs_ruby

pytestmark = needs_ruby

MODULES = Path(__file__).with_name("ruby_modules")

Apply = Callable[..., Said]


@pytest.fixture
def depot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which the types of the module `crates` keep what exists."""
    path = tmp_path / "depot.yaml"
    monkeypatch.setenv("CRATES", str(path))
    return path


@pytest.fixture
def apply(puppet: Puppet, monkeypatch: pytest.MonkeyPatch, depot: Path) -> Apply:
    async def few_facts(host: object, sources: object) -> dict[str, Any]:
        return {"os": {"family": "Debian"}, "kernel": "Linux"}

    monkeypatch.setattr("bunraku.catalogs.compilation.gather", few_facts)
    monkeypatch.setattr("agent.facts.facter.gather", few_facts)
    return lambda code, *words, modules=MODULES: puppet("apply", "--color=false", "--modulepath", str(modules), *words, "-e", code)


REFUSED = [
    ("crate { 'c': size => 'x' }", "Parameter size failed on Crate[c]: crate.size expects a value of type Undef or Integer, got String"),
    (
        "crate { 'c': size => 0 }",
        "Parameter size failed on Crate[c]: crate.size expects a value of type Undef or Integer[1, 100], got Integer[0, 0]",
    ),
    (
        "crate { 'c': weight => [] }",
        "Parameter weight failed on Crate[c]: crate.weight expects a value of type Undef, Float, or Integer, got Array",
    ),
    (
        "crate { 'c': colour => blue }",
        "Parameter colour failed on Crate[c]: crate.colour expects a match for Enum['green', 'red'], got 'blue'",
    ),
    ("crate { 'c': parts => ['a', ''] }", "Parameter parts failed on Crate[c]: crate.parts index 1 expects a String[1] value, got String"),
    ("crate { 'c': options => { } }", "Parameter options failed on Crate[c]: crate.options expects size to be between 1 and 2, got 0"),
    ("crate { 'c': options => { 'x' => 1 } }", "expects a value for key 'lid'\n  crate.options unrecognized key 'x'"),
    ("crate { 'c': options => { 'lid' => 1 } }", "crate.options entry 'lid' expects a Boolean value, got Integer"),
    ("crate { 'c': fragile => 'yes' }", "Parameter fragile failed on Crate[c]: crate.fragile expects a Boolean value, got String"),
    (
        "crate { 'c': content => 'open' }",
        "Parameter content failed on Crate[c]: crate.content expects a value of type Undef or Sensitive[String], got String",
    ),
    ("crate { 'c': number => 1 }", "Parameter number failed on Crate[c]: Attempting to set `number` read_only attribute value to `1`"),
    (
        "crate { 'c': ensure => gone }",
        "Parameter ensure failed on Crate[c]: crate.ensure expects a match for Enum['absent', 'present'], got 'gone'",
    ),
    ("seal { 'c': }", "Validation of Seal[c] failed: The following mandatory parameters were not provided:\n    *  wax"),
]


@pytest.mark.parametrize(("resource", "message"), REFUSED)
def test_a_value_of_a_wrong_type_stops_the_run_with_the_references_words(resource: str, message: str, apply: Apply) -> None:
    said = apply(f"{resource} notify {{ 'other': }}")
    assert said.code == 1
    assert message in said.err and "Notice: other" not in said.out


DEFINED = "name: 'odd', desc: 'd', attributes: { name: { type: 'String', desc: 'd', behaviour: :namevar }, %s }"


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("name: 'odd'", "Puppet::ResourceApi::TypeDefinition must have `attributes`"),
        ("name: 'odd', attributes: []", "`odd.attributes` must be a hash, not `Array`"),
        (DEFINED % "a: 1", "`odd.a` must be a Hash, not a Integer"),
        (DEFINED % "a: {}", "`odd.a` has no type"),
        (DEFINED % "tag: { type: 'String' }", "must not define an attribute called `:tag`"),
        (DEFINED % "a: { type: 'String', behaviour: :strange }", "`strange` is not a valid behaviour value"),
        (
            DEFINED % "a: { type: 'bool' }",
            "The type of the `a` attribute `bool` is not recognised: The expression <bool> is not a valid type specification.",
        ),
        (
            DEFINED % "a: { type: 'Array[' }",
            "The type of the `a` attribute `Array[` could not be parsed: Syntax error at end of input",
        ),
        (
            DEFINED % "ensure: { type: 'Enum[present, latest]' }",
            "`:ensure` attribute must have a type of: `Enum[present, absent]` or `Optional[Enum[present, absent]]`",
        ),
    ],
)
def test_a_definition_that_cannot_be_is_one_error(definition: str, message: str, apply: Apply, tmp_path: Path) -> None:
    types = tmp_path / "modules" / "odd" / "lib" / "puppet" / "type"
    types.mkdir(parents=True)
    (types / "odd.rb").write_text(f"require 'puppet/resource_api'\nPuppet::ResourceApi.register_type({definition})\n")
    said = apply("odd { 'x': } odd { 'y': }", modules=tmp_path / "modules")
    assert said.code == 1
    assert len(re.findall(rf"^Error: Could not load the type odd: {re.escape(message)}", said.err, re.M)) == 1


@pytest.mark.slow
def test_get_is_called_once_for_all_that_exists(apply: Apply, depot: Path) -> None:
    code = 'range(1, 50).each |$n| { crate { "c$n": size => $n } }'
    assert apply(code).code == 0
    gets = depot.with_name("depot.yaml.gets")
    gets.unlink()
    said = apply(code + " resources { 'crate': purge => true }")
    assert (said.code, said.err, "Crate[" in said.out) == (0, "", False)
    assert gets.read_text() == "xx"  # once to find what is to be purged, before the first resource


PAIR = "crate {{ 'a': size => 1 }} -> {between} -> crate {{ 'b': size => 2 }}"


@pytest.mark.parametrize(
    ("between", "gets", "made"),
    [
        ("exec { 'rm @': path => '/bin' }", "xx", True),
        ("exec { 'rm @': path => '/bin', noop => true }", "xx", False),
        ("notify { 'n': }", "xx", False),
        ("crate { 'c': size => 3 }", "x", False),
        ("crate { 'c': size => 4 }", "xx", False),
    ],
    ids=["a command that changes them", "one that would", "another resource", "one of the type", "one of the type that is changed"],
)
def test_get_is_called_again_when_something_else_came_between(between: str, gets: str, made: bool, apply: Apply, depot: Path) -> None:
    code = PAIR.format(between=between.replace("@", str(depot)))
    states = ", ".join(f"{name}: {{ size: {size}, colour: red, fragile: false }}" for name, size in (("a", 1), ("b", 2), ("c", 3)))
    depot.write_text(f"crates: {{ {states} }}\n")
    said = apply(code)
    assert said.code == 0
    assert depot.with_name("depot.yaml.gets").read_text() == gets
    assert ("Crate[b]/ensure: defined 'ensure' as 'present'" in said.out) == made


def test_what_set_raises_fails_the_resource_after_its_events(apply: Apply) -> None:
    said = apply(
        "crate { 'bad': fails => true } notify { 'after': require => Crate['bad'] } pallet { 'x/1': height => 200 }", "--detailed-exitcodes"
    )
    assert said.code == 6
    assert "Crate[bad]/ensure: defined 'ensure' as 'present'" in said.out
    assert re.search(r"crate\[bad\]: Creating: Failed after [\d.]+ seconds: there is no wood", said.err)
    assert "Crate[bad]: Could not evaluate: Execution encountered an error" in said.err
    assert "Notify[after]: Skipping because of failed dependencies" in said.err
    assert "pallet[x/1]: it is too high" in said.err


@pytest.mark.parametrize(
    ("strict", "code", "line"),
    [
        ("warning", 2, "Warning: Attempting to change `wood` init_only attribute value from `oak` to `elm`"),
        ("error", 6, "Could not evaluate: Attempting to change `wood` init_only attribute value from `oak` to `elm`"),
    ],
)
def test_strict_decides_about_an_attribute_that_only_creation_sets(strict: str, code: int, line: str, apply: Apply, depot: Path) -> None:
    depot.write_text("crates: { old: { wood: oak, colour: red, fragile: false } }\n")
    said = apply("crate { 'old': wood => elm }", "--detailed-exitcodes", "--strict", strict)
    assert said.code == code
    assert line in said.out + said.err


def test_no_line_has_a_secret_and_the_provider_has_it_wrapped(apply: Apply, depot: Path) -> None:
    code = "crate { 'x': content => Sensitive('canary-one'), keys => [Sensitive('canary-two')] }"
    said = apply(code, "--debug")
    assert said.code == 0
    assert "canary" not in said.out + said.err
    assert "canary-one" in depot.read_text() and "canary-two" in depot.read_text()
    assert "Crate[x]" not in apply(code).out


def test_a_type_without_a_provider_fails_its_resources_with_its_name(apply: Apply) -> None:
    said = apply("unprovided { 'x': ensure => present } notify { 'other': }", "--detailed-exitcodes")
    assert said.code == 6
    provider = "provider class Puppet::Provider::Unprovided::Unprovided not found in puppet/provider/unprovided/unprovided"
    assert f"Unprovided[x]: Could not evaluate: {provider}" in said.err
    assert "Notice: other" in said.out


def test_a_thing_on_a_device_is_skipped_as_there_is_none(apply: Apply) -> None:
    said = apply("faraway { 'x': ensure => present } notify { 'other': }", "--debug")
    assert said.code == 0
    assert "Faraway[x]: Skipping device resources because running on a posix host" in said.out
    assert "Notice: other" in said.out


def test_unmanaged_things_are_purged_by_all_their_names(apply: Apply, depot: Path) -> None:
    depot.write_text("pallets: { a/1: { height: 1 }, b/2: { height: 2 } }\n")
    said = apply("resources { 'pallet': purge => true } pallet { 'b': place => '2', height => 2 }")
    assert (said.code, said.err) == (0, "")
    assert "Pallet[a/1]/ensure: undefined 'ensure' from 'present'" in said.out
    assert "a/1" not in depot.read_text() and "b/2" in depot.read_text()


@pytest.mark.parametrize(
    ("words", "stored"),
    [
        ("size=007 fragile=true", {"size": 7, "fragile": True}),
        ("weight=1.5 label=12", {"weight": 1.5, "label": "12", "fragile": False}),
        ("label=none", {"label": "none", "fragile": False}),
    ],
)
def test_puppet_resource_converts_the_texts_of_its_command_line(words: str, stored: dict[str, Any], puppet: Puppet, depot: Path) -> None:
    said = puppet("resource", "crate", "new", *words.split(), "--modulepath", str(MODULES))
    assert said.code == 0, said.err
    assert plainyaml.loads(depot.read_bytes()) == {"crates": {"new": {"colour": "red", **stored}}}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("size=x", "crate.size expects an Integer value, got String"),
        ("weight=x", "crate.weight expects a value of type Float or Integer, got String"),
        ("fragile=maybe", "crate.fragile expects a Boolean value, got String"),
    ],
)
def test_puppet_resource_refuses_a_text_that_is_no_value_of_the_type(word: str, message: str, puppet: Puppet, depot: Path) -> None:
    said = puppet("resource", "crate", "new", word, "--modulepath", str(MODULES))
    assert said.code == 1
    assert message in said.err


def test_a_provider_finds_a_fact_that_its_module_declares_but_that_has_no_value(apply: Apply) -> None:
    said = apply("seal { 'fact': wax => 'red' }")
    assert (said.code, said.err) == (0, "")
    assert "seal[fact]: Updating: the fact has no value" in said.out

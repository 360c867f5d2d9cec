"""Catalogs from memory that depend on programs, and on Ruby that may read anything: only while these give the same again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from environments.repeated_calls import MAX_CALLS, MAX_CHANGES, MAX_OCTETS, ProgramCall, RepeatableCall, RepeatedCalls
from shared.errors import CompileError, EvaluationError
from tests.environments.ruby.site import PROGRAM
from tests.master.test_memo import Site
from tests.support.needs import needs_ruby


def legacy(name: str, body: str) -> dict[str, str]:
    """A function in Ruby of the 3.x API, whose file is found by its name."""
    text = f"Puppet::Parser::Functions.newfunction(:{name}, :type => :rvalue) do |args|\n  {body}\nend\n"
    return {f"modules/m/lib/puppet/parser/functions/{name}.rb": text}


def function(name: str, body: str, parameters: str = "x") -> dict[str, str]:
    text = f"Puppet::Functions.create_function(:'m::{name}') do\n  def {name}({parameters})\n    {body}\n  end\nend\n"
    return {f"modules/m/lib/puppet/functions/m/{name}.rb": text}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Path]:
    """A file that programs and functions read without our knowledge."""
    file = tmp_path / "world"
    file.write_text("one")
    yield file


def site_of(tmp_path: Path, manifest: str, files: Mapping[str, str] | None = None) -> Site:
    return Site(tmp_path, {"manifests/site.pp": manifest, **(files or {})}, ruby=PROGRAM)


def titles(site: Site) -> list[str]:
    return [each["title"] for each in site.ask()["resources"] if each["type"] == "Notify"]


def test_a_program_is_run_again_and_its_output_compared(tmp_path: Path, world: Path) -> None:
    site = site_of(tmp_path, f"notify {{ generate('/bin/cat', '{world}'): }}")
    assert [titles(site), titles(site)] == [["one"], ["one"]]
    assert (site.bench.memo.origin, site.bench.reasons) == ("memory", [])
    world.write_text("two")
    assert titles(site) == ["two"]
    assert site.bench.memo.origin == "answers"
    assert titles(site) == ["two"]
    assert site.bench.memo.origin == "memory"


@pytest.mark.parametrize(
    ("manifest", "hits"),
    [
        ("generate('PROGRAM')\n", 1),
        ("class c { if true { generate('PROGRAM') } else { 1 } }\ninclude c", 1),
        ("[1, 2].each |$i| { if $i == 1 { generate('PROGRAM', $i) } }", 1),
        ("each([1]) |$i| { generate('PROGRAM') }", 1),
        ("notify { generate('PROGRAM'): }", 0),
        ("$x = generate('PROGRAM')", 0),
        ("[1].map |$i| { generate('PROGRAM') }", 0),
        ("[1].each |$i| >> String { generate('PROGRAM') }", 0),
        ("function f() { generate('PROGRAM') }\nnotify { f(): }", 0),
        ("if generate('PROGRAM') =~ /1/ { notify { 'one': } }", 0),
    ],
)
def test_an_output_that_nobody_uses_may_differ_each_time(tmp_path: Path, manifest: str, hits: int) -> None:
    script = tmp_path / "clock.sh"
    script.write_text("#!/bin/sh\ncat /proc/sys/kernel/random/uuid\n")
    script.chmod(0o755)
    site = site_of(tmp_path, manifest.replace("PROGRAM", str(script)))
    site.ask()
    site.ask()
    assert site.bench.memo.hits == hits
    script.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(CompileError, match="returned 3"):
        site.ask()


def test_a_program_that_fails_later_fails_the_catalog(tmp_path: Path, world: Path) -> None:
    site = site_of(tmp_path, f"notify {{ generate('/bin/cat', '{world}'): }}")
    titles(site)
    world.unlink()
    with pytest.raises(EvaluationError, match="Failed to execute generator /bin/cat"):
        titles(site)


def test_what_answers_differently_each_time_is_called_once_for_each_catalog(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    script = tmp_path / "count.sh"
    script.write_text(f"#!/bin/sh\necho x >> {counter}\nwc -l < {counter}\n")
    script.chmod(0o755)
    site = site_of(tmp_path, f"notify {{ \"${{generate('{script}')}}\": }}")
    for _ in range(MAX_CHANGES + 1):
        assert titles(site)
        assert site.bench.memo.hits == 0
    assert site.bench.reasons == [("manifests/site.pp line 1", "generate() is called")]
    calls = len(counter.read_text().split())
    titles(site)
    assert len(counter.read_text().split()) == calls + 1


@needs_ruby
def test_ruby_that_answers_differently_each_time_is_named_with_its_line(tmp_path: Path) -> None:
    site = site_of(tmp_path, 'notify { "${m::clock()}": }', function("clock", "Process.clock_gettime(Process::CLOCK_MONOTONIC)", ""))
    for _ in range(MAX_CHANGES + 1):
        titles(site)
    assert site.bench.memo.hits == 0
    assert site.bench.reasons == [("m/lib/puppet/functions/m/clock.rb line 3", "Process.clock_gettime")]
    site.bench.forget()


FUNCTIONS = {
    "reads a file": (legacy("f", "IO.binread(args[0])"), "f('{world}')"),
    "reads a file, in the newer API": (function("f", "IO.binread(x)"), "m::f('{world}')"),
    "returns a hash": (function("f", "{{ 'a' => [IO.binread(x), :b, 1.5, nil] }}"), "m::f('{world}')['a'][0]"),
    "asks for variables": (legacy("f", "IO.binread(lookupvar('place'))"), "f()"),
    "calls a function": (legacy("f", "call_function('upcase', IO.binread(args[0]))"), "f('{world}')"),
    "calls one that reads a file": (
        {**legacy("g", "IO.binread(args[0])"), **legacy("f", "function_g([args[0]]) + $PROGRAM_NAME[0, 0]")},
        "f('{world}')",
    ),
    "changes what it is given": (function("f", "x << IO.binread('{world}')\n    x"), "m::f(['a'])[1]"),
    "runs a lambda of the manifest's": (
        {
            name: text.replace("  def", "  dispatch :f do\n    param 'String', :x\n    block_param\n  end\n\n  def")
            for name, text in function("f", "IO.binread(x) + yield('!')").items()
        },
        "m::f('{world}') |$y| {{ '' }}",
    ),
    "is a template": ({"modules/m/templates/t.erb": "<%= IO.binread(@place) %>"}, "template('m/t.erb')"),
    "is a template in a manifest": ({}, "inline_template('<%= IO.binread(@place) %>')"),
    "requires a file of its module": (
        {
            **function("f", "PuppetX::M.text(x)"),
            "modules/m/lib/puppet_x/m.rb": "module PuppetX\n  module M\n    def self.text(x)\n      IO.binread(x)\n    end\n  end\nend\n",
        },
        "m::f('{world}')",
    ),
}


@needs_ruby
@pytest.mark.parametrize(("files", "call"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_ruby_that_may_read_anything_is_called_again_and_its_result_compared(
    tmp_path: Path, world: Path, files: dict[str, str], call: str
) -> None:
    files = {name: text.replace("{{", "{").replace("}}", "}").replace("{world}", str(world)) for name, text in files.items()}
    if "modules/m/lib/puppet_x/m.rb" in files:
        files = {name: "require 'puppet_x/m'\n" + text if name.endswith("f.rb") else text for name, text in files.items()}
    call = call.replace("{{", "{").replace("}}", "}").replace("{world}", str(world))
    site = site_of(tmp_path, f"$place = '{world}'\nnotify {{ \"${{{call}}}\": }}", files)
    first = titles(site)
    assert first == titles(site)
    assert (site.bench.memo.origin, site.bench.reasons) == ("memory", [])
    world.write_text("two")
    assert [text.lower() for text in titles(site)] == ["two"]
    assert site.bench.memo.origin == "answers"
    world.write_text("one")
    assert titles(site) == first
    site.bench.forget()


UNREPEATABLE = {
    "gives a block to a function": (legacy("f", "call_function('map', [1]) {{ |each| IO.binread('/dev/null') + 'a' }}.first"), "f()"),
    "asks for more than is worth it": (
        legacy("f", "600.times {{ call_function('md5', 'x' * 1000) }}\n  IO.binread('/dev/null') + 'a'"),
        "f()",
    ),
    "returns what Ruby alone has, which is handed back": (
        {**function("f", "Struct.new(:path).new(x)"), **function("g", "x.path")},
        "m::g(m::f('a'))",
    ),
    "sets a variable": (legacy("f", "setvar('v', [IO.binread('/dev/null')])\n  'a'"), "f()"),
}


@needs_ruby
@pytest.mark.parametrize(("files", "call"), UNREPEATABLE.values(), ids=UNREPEATABLE)
def test_a_call_that_needs_more_of_its_compilation_keeps_the_catalog_out(tmp_path: Path, files: dict[str, str], call: str) -> None:
    files = {name: text.replace("{{", "{").replace("}}", "}") for name, text in files.items()}
    site = site_of(tmp_path, f'notify {{ "${{{call.replace("{{", "{").replace("}}", "}")}}}": }}', files)
    assert titles(site) == titles(site)
    assert site.bench.memo.hits == 0
    site.bench.forget()


@needs_ruby
def test_what_ruby_alone_has_is_handed_back_by_a_variable_too(tmp_path: Path) -> None:
    files = {**function("f", "Struct.new(:path).new(x)"), **function("g", "closure_scope['o'].path", "")}
    site = site_of(tmp_path, "$o = m::f('a')\nnotify { m::g(): }", files)
    assert titles(site) == titles(site)
    assert site.bench.memo.hits == 0
    assert "an object" in site.bench.reasons[0][1]
    site.bench.forget()


@needs_ruby
def test_what_ruby_alone_has_and_nobody_hands_back_counts_by_its_text(tmp_path: Path) -> None:
    files = function("patch", "IO.binread('/dev/null')\n    Comparable", "")
    site = site_of(tmp_path, "m::patch()\nnotify { 'a': }", files)
    assert titles(site) == titles(site)
    assert site.bench.memo.hits == 1
    site.bench.forget()


# --- the recorder itself ---


class Results:
    """What is called: each subject has a result."""

    def __init__(self) -> None:
        self.now: dict[str, bytes] = {}
        self.called: list[str] = []
        self.rounds = 0

    def begin(self) -> None:
        self.rounds += 1

    def again(self, call: RepeatableCall) -> bytes:
        self.called.append(call.subject)
        if call.subject not in self.now:
            raise EvaluationError("It is gone")
        return self.now[call.subject]


def recorded(calls: RepeatedCalls, *made: ProgramCall) -> list[bool]:
    with calls.record("n"):
        return [calls.add(call) for call in made]


def test_calls_are_made_again_in_their_order_until_one_has_another_result() -> None:
    results = Results()
    calls = RepeatedCalls(results.begin, results.again)
    results.now = {"a": b"1", "b": b"2", "c": b"3"}
    made = [ProgramCall((name,), result) for name, result in results.now.items()]
    assert calls.are_unchanged("n", made)
    results.now["b"] = b"other"
    assert not calls.are_unchanged("n", made)
    assert results.called == ["a", "b", "c", "a", "b"]
    assert results.rounds == 2
    del results.now["a"]
    assert not calls.are_unchanged("n", made)


def test_nothing_is_recorded_where_nobody_compares() -> None:
    calls = RepeatedCalls(lambda: None, lambda call: b"")
    assert not calls.add(ProgramCall(("a",), b""))
    with calls.record("n"):
        assert calls.add(ProgramCall(("a",), b""))
        assert len(calls.made()) == 1
    assert calls.made() == ()


def test_what_had_the_same_result_in_between_is_called_again() -> None:
    results = Results()
    calls = RepeatedCalls(results.begin, results.again)
    call = ProgramCall(("a",), b"1")
    for result in (b"2", b"1", b"2"):
        results.now["a"] = result
        calls.are_unchanged("n", [call])
    assert recorded(calls, call) == [True]
    calls.are_unchanged("n", [call])
    assert recorded(calls, call) == [False]


def test_what_has_changed_once_for_many_nodes_is_called_again_for_all_of_them() -> None:
    results = Results()
    calls = RepeatedCalls(results.begin, results.again)
    call = ProgramCall(("a",), b"1")
    results.now["a"] = b"2"
    for node in ("n1", "n2", "n3"):
        assert not calls.are_unchanged(node, [call])
        with calls.record(node):
            assert calls.add(call)


def test_more_calls_than_are_worth_it_are_not_made_again() -> None:
    calls = RepeatedCalls(lambda: None, lambda call: b"")
    assert recorded(calls, *[ProgramCall(("a",), b"")] * (MAX_CALLS + 1))[-2:] == [True, False]
    assert recorded(calls, ProgramCall(("a", "x" * MAX_OCTETS), b"")) == [False]
    with calls.record("n"):
        for _ in range(MAX_CALLS + 5):
            calls.add(ProgramCall(("a",), b""))
        assert len(calls.made()) == MAX_CALLS

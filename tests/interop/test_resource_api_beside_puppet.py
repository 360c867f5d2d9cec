"""Types of the Resource API: the real `puppet apply` and ours say and do the same, twice in a row; data types mean the same."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.ruby import datatypes
from shared.ruby import find_ruby
from tests.interop.applying import apply_twice

pytestmark = [
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.skipif(not shutil.which("puppet") or not find_ruby("auto"), reason="there is no puppet and no ruby"),
]

MODULES = Path(__file__).parents[1] / "bunraku" / "ruby_modules"

DEPOT = """---
crates:
  old: {size: 3, colour: red, wood: oak, number: 7, fragile: true}
  gone: {size: 1, colour: green, fragile: false}
  same: {size: 2, colour: green, fragile: false}
pallets:
  a/1: {load: {x: 1}, height: 5}
  b/2: {load: {}, height: 1.5}
gauges:
  g: {level: 7, words: Hello}
"""

CRATES = """
crate { 'new': size => 4, colour => 'GREEN', parts => ['a', 'b'], options => { lid => true }, fragile => true, shelf => '/tmp',
  below => 'old', weight => 1.5, label => '12' }
crate { 'old': size => 5, fragile => false, wood => 'oak', parts => ['x'], options => { lid => false, screws => 3 } }
crate { 'gone': ensure => absent }
crate { 'never': ensure => absent }
crate { 'same': size => 2, colour => green }
crate { 'bad': fails => true }
crate { 'after': require => Crate['bad'] }
"""

OTHERS = """
pallet { 'a/1': height => 6 }
pallet { 'b': place => '2', height => 1.5, load => {} }
pallet { 'c/3': height => 2, load => { y => 3 } }
pallet { 'c/4': height => 200 }
pallet { 'z/9': ensure => absent, height => 3 }
gauge { 'g': slack => 1, words => 'hello' }
gauge { 'h': level => 2, words => 'w' }
gauge { 'i': slack => 99 }
seal { 's': wax => 'red' }
faraway { 'x': ensure => present }
unprovided { 'x': ensure => present }
"""

SLOPPY = """
crate { 'old': wood => 'elm', fragile => true, size => 3 }
sloppy { 'a': size => 2 }
sloppy { 'b': size => 3 }
sloppy { 'c': ensure => absent }
sloppy { 'd': size => 1, ensure => present }
"""

PURGE = """
resources { ['crate', 'pallet']: purge => true }
crate { 'same': colour => green }
pallet { 'b/2': height => 3 }
"""


def events(report: Path) -> list[Any]:
    """Return the statuses and events of a report, without times."""
    data = yaml.safe_load(re.sub(r"!ruby/\S+", "", report.read_text()))
    status_fields = ("failed", "changed", "out_of_sync", "skipped", "corrective_change", "out_of_sync_count", "change_count")
    event_fields = ("property", "previous_value", "desired_value", "message", "name", "status", "corrective_change", "redacted", "audited")
    return [
        (ref, [status[key] for key in status_fields], [[event.get(key) for key in event_fields] for event in status["events"]])
        for ref, status in data["resource_statuses"].items()
        if not ref.startswith(("Schedule[", "Filebucket["))
    ]


def applied(program: list[str], manifest: str, root: Path, *options: str) -> tuple[str, list[Any]]:
    """Return what a program prints and leaves behind when it applies a manifest twice, and the events of the second run."""
    root.mkdir()
    (root / "depot.yaml").write_text(DEPOT)
    (root / "site.pp").write_text(manifest)
    lines = apply_twice(program, root, MODULES, *options, environ={"CRATES": str(root / "depot.yaml")})
    lines += (root / "depot.yaml").read_text()
    lines = re.sub(r"(in|after) [\d.]+ seconds|^Notice: Compiled catalog.*\n|^Error: Facter: .*\n", "", lines, flags=re.MULTILINE)
    return lines.replace(str(root), "@root"), events(root / "var" / "state" / "last_run_report.yaml")


@pytest.mark.parametrize(
    ("manifest", "options"),
    [
        pytest.param(CRATES + OTHERS, (), marks=pytest.mark.smoke),
        (CRATES + OTHERS, ("--noop",)),
        (SLOPPY, ()),
        (SLOPPY, ("--strict", "error")),
        (PURGE, ()),
    ],
    ids=["applied", "in noop", "sloppy", "sloppy and strict", "purged"],
)
def test_both_say_report_and_do_the_same(manifest: str, options: tuple[str, ...], tmp_path: Path) -> None:
    ours = applied([sys.executable, "-m", "bunraku"], manifest, tmp_path / "ours", *options)
    assert ours == applied(["puppet"], manifest, tmp_path / "theirs", *options)


TYPES = (
    r"""
String | String[1] | String[2,3] | Integer | Integer[0] | Integer[1, 10] | Integer[default, 5] | Float | Float[0.0, 1.5] |
Numeric | Boolean | Boolean[true] | Enum[a, b] | Enum['present', absent] | Enum[a, b, true] | Pattern[/x/, /^y$/] |
Pattern[/^a\/b/] | Undef | Any | Scalar | ScalarData | Default | Array | Array[String] | Array[Integer[0], 1, 2] | Hash |
Hash[String, Integer] | Hash[String, String, 1] | Collection | Collection[1, 2] | Tuple[String, Integer] |
Tuple[Integer, 1, 3] | Struct[{a => Integer, Optional[b] => String}] | Struct[{'c' => Optional[String]}] |
Optional[Enum[x]] | Optional[String[1]] | Optional[Variant[Pattern[/^\d+$/], Integer]] | NotUndef | NotUndef[Integer] |
Stdlib::Port | Variant[String[1], Integer] | Variant[Array[String], Hash[String, Integer]] |
Variant[Enum[a], Enum[b], Undef] | Variant[Integer[0, 3], Integer[4, 9]] | Variant[Pattern[/q/], Boolean] | Sensitive |
Sensitive[String] | Sensitive[Array[String]] | Optional[Array[Sensitive[String]]] | Data | Regexp | Regexp[/x/] | Timestamp |
Array[Variant[Tuple[String, String], Struct[{a => Boolean}]]]
""".replace(" |\n", " | ")
    .strip()
    .split(" | ")
)
VALUES = [
    "a",
    "",
    "present",
    "a/b",
    "xyz",
    5,
    0,
    -3,
    20,
    0.5,
    True,
    None,
    [],
    ["a"],
    ["a", 1],
    [[]],
    {},
    {"a": 1},
    {"a": 1, "b": "x"},
    {"c": None},
    {"$": "default", "v": None},
    {"$": "regexp", "v": "x"},
    {"$": "object", "v": ["Symbol", "a"]},
    {"$": "object", "v": ["Object", "1"]},
    {"$": "sensitive", "v": "s"},
    {"$": "sensitive", "v": ["s", "t"]},
    {"$": "sensitive", "v": 5},
    [{"$": "sensitive", "v": "s"}],
    [{"$": "object", "v": ["Symbol", "a"]}, 1],
    {"$": "hash", "v": [[{"$": "object", "v": ["Symbol", "a"]}, 1], [{"$": "object", "v": ["Symbol", "b"]}, "x"]]},
    {"$": "hash", "v": [[1, "x"]]},
]
THEIRS = """
require 'puppet'
require 'json'
T = Puppet::Pops::Types
def load(data)
  case data
  when Array then data.map { |each| load(each) }
  when Hash
    case data['$']
    when nil then data.transform_values { |each| load(each) }
    when 'hash' then data['v'].map { |pair| load(pair) }.to_h
    when 'default' then :default
    when 'regexp' then Regexp.new(data['v'])
    when 'sensitive' then T::PSensitiveType::Sensitive.new(load(data['v']))
    else data['v'][0] == 'Symbol' ? data['v'][1].to_sym : Object.new
    end
  else data
  end
end
types, values = JSON.parse($stdin.read)
values.map! { |each| load(each) }
answers = types.map do |text|
  type = T::TypeParser.singleton.parse(text)
  values.map do |each|
    type.instance?(each) ? nil : T::TypeMismatchDescriber.new.describe_mismatch('x.y', type, T::TypeCalculator.infer_set(each))
  end
end
puts JSON.generate(answers)
"""


def test_data_types_accept_the_same_values_and_say_the_same_of_others() -> None:
    command = ["ruby", "-e", THEIRS]
    answer = subprocess.run(command, input=json.dumps([TYPES, VALUES]), text=True, capture_output=True, timeout=120, check=True)
    theirs = json.loads(answer.stdout)
    ours = [datatypes.answer("complaints", [[type_, value, "x.y"] for value in VALUES]) for type_ in TYPES]
    for type_, our_answers, their_answers in zip(TYPES, ours, theirs, strict=True):
        assert dict(zip(map(str, VALUES), our_answers, strict=True)) == dict(zip(map(str, VALUES), their_answers, strict=True)), type_

"""Thousands of made-up versions and ranges mean to us what they mean to the gem semantic_puppet, which Puppet reads metadata with."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from typing import Any

import pytest

from language.values.versions import BadVersion, SemVer, SemVerRange
from tests.interop.conftest import NOT_INSTALLED

pytestmark = [
    pytest.mark.works_with("Module tool, compared with Puppet's", "12,000 version ranges of the gem semantic_puppet"),
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.skipif(shutil.which("ruby") is None, reason="ruby is not installed"),
]

RUBY = r"""
require 'semantic_puppet'; require 'json'
V, R = SemanticPuppet::Version, SemanticPuppet::VersionRange
versions = JSON.parse(STDIN.readline).map { |text| V.parse(text) rescue nil }
puts JSON.generate(versions.map { |version| version && version.to_s })
known = versions.compact
puts JSON.generate(known.each_with_index.sort { |(a, i), (b, j)| c = a <=> b; c == 0 ? i <=> j : c }.map(&:last))
ranges = STDIN.each_line.map { |line| JSON.parse(line)[0] }
parsed = ranges.map do |text|
  begin
    range = R.parse(text)
    puts JSON.generate(known.map { |version| range.include?(version) ? 1 : 0 }.join)
    range
  rescue ArgumentError => e
    puts JSON.generate(["error", e.message])
    nil
  rescue NameError
    puts '["crash"]'  # of the gem itself, where alternatives end at the same version, or nothing is left of three
    nil
  end
end
parsed.each_slice(2).select { |pair| pair.compact.size == 2 }.each do |one, other|
  begin
    puts JSON.generate(one.intersection(other) != R::EMPTY_RANGE)
  rescue NameError
    puts 'null'
  end
end
"""
OPERATORS = (*("", ">=", "<", ">", "<=", "=", "~", "^", "~>", "~=") * 3, "<>", "!", "==")
PARTS = (*("0", "1", "1", "2", "2", "3") * 4, "x", "X", "*", "01")
BUILDS = ("", "", "", "", "", "+7", "+a.b")
PRERELEASES = ("", "", "", "", "-rc1", "-rc.2", "-alpha", "-0", "-1.x", "-01", "-")


def version(chance: random.Random) -> str:
    numbers = ".".join(chance.choice(("0", "1", "2", "3", "10")) for _ in range(3))
    return numbers + chance.choice(PRERELEASES) + chance.choice(BUILDS)


def partial(chance: random.Random) -> str:
    count = chance.choice((1, 2, 3, 3, 3, 3))
    text = ".".join(chance.choice(PARTS) for _ in range(count))
    return text + (chance.choice(PRERELEASES) + chance.choice(BUILDS) if count == 3 or chance.random() < 0.02 else "")


def comparison(chance: random.Random) -> str:
    return chance.choice(OPERATORS) + chance.choice((*("", " ", "  ") * 5, "v", " v", "\t")) + partial(chance)


def alternative(chance: random.Random) -> str:
    if chance.random() < 0.1:
        return f"{partial(chance)}{chance.choice((' ', '  ', ''))}-{chance.choice((' ', '  ', ''))}{partial(chance)}"
    return chance.choice((*(" ", "  ") * 8, ",")).join(comparison(chance) for _ in range(chance.choice((*(1, 1, 1, 2, 2, 2, 3) * 2, 0))))


def version_range(chance: random.Random) -> str:
    text = chance.choice(("||", " || ", " ||")).join(alternative(chance) for _ in range(chance.choice((1, 1, 1, 1, 2, 2, 3))))
    return chance.choice((*("",) * 20, " ")) + text + chance.choice((*("",) * 5, " ", "\n"))


def ours(text: str, versions: list[SemVer]) -> Any:
    try:
        parsed = SemVerRange.parse(text)
    except BadVersion as err:
        return ["error", str(err)]
    return "".join("1" if each in parsed else "0" for each in versions)


@pytest.mark.smoke
def test_versions_and_ranges_are_read_as_semantic_puppet_reads_them() -> None:
    probe = subprocess.run(["ruby", "-e", "require 'semantic_puppet'"], capture_output=True, timeout=60, check=False)
    if probe.returncode:
        pytest.fail(NOT_INSTALLED)
    chance = random.Random(20261124)
    texts = sorted({version(chance) for _ in range(400)})
    ranges = [version_range(chance) for _ in range(12_000)]
    asked = "".join(json.dumps(line) + "\n" for line in (texts, *([text] for text in ranges)))
    answer = subprocess.run(["ruby", "-e", RUBY], input=asked, capture_output=True, text=True, timeout=300, check=True).stdout.splitlines()
    versions: list[SemVer] = []
    for text, theirs in zip(texts, json.loads(answer[0]), strict=True):
        try:
            versions.append(SemVer.parse(text))
            assert str(versions[-1]) == theirs
        except BadVersion:
            assert theirs is None, text
    assert sorted(range(len(versions)), key=lambda index: versions[index].order) == json.loads(answer[1])
    parsed = [json.loads(line) for line in answer[2 : 2 + len(ranges)]]
    differ = [
        (text, theirs, mine)
        for text, theirs in zip(ranges, parsed, strict=True)
        if theirs != ["crash"] and theirs != (mine := ours(text, versions))
    ]
    assert differ[:10] == []
    assert sum(isinstance(theirs, str) and "1" in theirs for theirs in parsed) > len(ranges) / 4  # the ranges are not all empty or wrong
    overlaps = iter(json.loads(line) for line in answer[2 + len(ranges) :])
    for index in range(0, len(ranges), 2):
        if all(isinstance(theirs, str) for theirs in parsed[index : index + 2]):
            one, other = (SemVerRange.parse(text) for text in ranges[index : index + 2])
            assert (theirs := next(overlaps)) is None or theirs == one.overlaps(other), ranges[index : index + 2]

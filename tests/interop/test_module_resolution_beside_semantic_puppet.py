"""Made-up modules that depend on each other are resolved to the releases that semantic_puppet, which Puppet asks, resolves them to."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from bunraku.modules.modulepath.resolution import Candidate, ResolutionProblem, Unsatisfiable, resolve
from bunraku.modules.releases.metadata import ModuleDependency
from language.values.versions import SemVer, SemVerRange
from tests.interop.conftest import NOT_INSTALLED

pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.skipif(shutil.which("ruby") is None, reason="ruby is not installed")]

RUBY = r"""
require 'semantic_puppet'; require 'json'
D = SemanticPuppet::Dependency
class Made < D::Source
  def initialize(releases) = @releases = releases
  def fetch(name) = (@releases[name] || {}).map { |version, needs| create_release(name, version, needs) }
end
STDIN.each_line do |line|
  D.clear_sources
  D.add_source(Made.new(JSON.parse(line)))
  begin
    puts JSON.generate(D.resolve(D.query('m-a' => '>= 0.0.0')).map { |release| [release.name, release.version.to_s] })
  rescue D::UnsatisfiableGraph
    puts 'null'
  end
end
"""
NAMES = [f"m-{letter}" for letter in "abcdef"]
RANGES = [">= 1.0.0", "1.x", "< 3.0.0", "2.x", ">= 2.0.0 < 4.0.0", "^1.1", "3.0.0", ">= 2.0.0-rc1", "1.0.0 || 3.x"]
VERSIONS = ["1.0.0", "1.1.0", "2.0.0-rc1", "2.0.0", "2.1.0", "3.0.0"]
Universe = Mapping[str, Mapping[str, Mapping[str, str]]]


def universe(chance: random.Random) -> Universe:
    def needs(name: str) -> dict[str, str]:
        return {other: chance.choice(RANGES) for other in NAMES if other != name and chance.random() < 0.3}

    return {name: {version: needs(name) for version in VERSIONS if chance.random() < 0.6} for name in NAMES if chance.random() < 0.95}


def ours(releases: Universe) -> Any:
    async def fetch(name: str) -> Sequence[Candidate]:
        return [
            Candidate(
                name,
                SemVer.parse(version),
                tuple(ModuleDependency(other, text, SemVerRange.parse(text)) for other, text in needs.items()),
            )
            for version, needs in releases.get(name, {}).items()
        ]

    try:
        chosen = asyncio.run(resolve(ResolutionProblem("m-a", SemVerRange.parse(">= 0.0.0"), fetch, {}), {}))
    except Unsatisfiable:
        return None
    return {candidate.name: str(candidate.version) for candidate in chosen}


@pytest.mark.smoke
def test_made_up_modules_are_resolved_as_semantic_puppet_resolves_them() -> None:
    if subprocess.run(["ruby", "-e", "require 'semantic_puppet'"], capture_output=True, timeout=60, check=False).returncode:
        pytest.fail(NOT_INSTALLED)
    chance = random.Random(20261124)
    universes = [universe(chance) for _ in range(600)]
    asked = "".join(json.dumps(each) + "\n" for each in universes)
    answer = subprocess.run(["ruby", "-e", RUBY], input=asked, capture_output=True, text=True, timeout=300, check=True).stdout.splitlines()
    differ, solved = [], 0
    for each, line in zip(universes, answer, strict=True):
        chosen = json.loads(line)
        expected = None if chosen is None else dict(chosen)
        if chosen is not None and len(chosen) != len(expected or ()):
            continue  # where modules depend on each other it may choose two releases of one
        solved += len(expected or ()) > 1
        if (mine := ours(each)) != expected:
            differ.append((each, expected, mine))
    assert differ == []
    assert 100 < solved < 500

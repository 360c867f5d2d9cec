"""Nothing but modules reaches the Ruby that root runs: no path in data, no folder, no variable and no descriptor of somebody else."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from agent.ruby.facts import PROGRAM as FACTS
from agent.ruby.loading import in_ruby
from agent.ruby.process import PROGRAM as TYPES
from environments.ruby.host import HOST
from tests.bunraku.conftest import puppet
from tests.support.command_line import Puppet
from tests.support.needs import needs_ruby
from tests.support.ruby_apply import MODULES, Apply, apply, use_few_facts

__all__ = ["apply", "puppet"]

EVIL = "File.write('{0}/pwned', 'x')\n"


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A file in Ruby of a local user, in that user's folder, under names that Ruby or Puppet look for."""
    folder = tmp_path / "user"
    names = ["evil", "json", "set", "date", "puppet", "facter", "puppet/type/jar", "puppet/provider/jar/plain", "puppet/provider/jar/evil"]
    for name in names:
        (folder / f"{name}.rb").parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.rb").write_text(EVIL.format(tmp_path))
    return folder


def upwards(folder: Path) -> str:
    """A path that leads to a folder from wherever it begins."""
    return "../" * 30 + str(folder).lstrip("/")


@needs_ruby
@pytest.mark.parametrize("form", ["{up}/evil", "../../../{up}/evil", "{there}/evil", "./{up}/evil"])
def test_the_name_of_a_provider_is_no_path(form: str, apply: Apply, evil: Path, tmp_path: Path) -> None:
    name = form.format(up=upwards(evil), there=evil)
    said = apply(f"jar {{ 'x': shelf => '{tmp_path}', provider => '{name}' }} notify {{ 'other': }}")
    assert f"Parameter provider failed on Jar[x]: Invalid jar provider '{name}'" in said.err and "Notice: other" not in said.out
    assert not (tmp_path / "pwned").exists()


@needs_ruby
def test_the_name_of_a_type_is_no_path(puppet: Puppet, evil: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_few_facts(monkeypatch)
    assert in_ruby([MODULES / "shelf" / "lib"], [upwards(evil) + "/evil", "../type/jar", "jar"]) == ["jar"]
    resource = {"type": upwards(evil) + "/evil", "title": "x", "exported": False, "parameters": {}, "tags": []}
    catalog = {"name": "h", "version": 1, "environment": "production", "resources": [resource], "edges": [], "classes": []}
    (tmp_path / "catalog.json").write_text(json.dumps(catalog))
    said = puppet("apply", "--modulepath", str(MODULES), "--catalog", str(tmp_path / "catalog.json"))
    assert said.code != 0
    assert not (tmp_path / "pwned").exists()


@needs_ruby
@pytest.mark.parametrize("name", ["RUBYLIB", "GEM_HOME", "GEM_PATH", "HOME", "BUNDLE_GEMFILE", "BUNDLE_PATH", "RUBYPATH"])
def test_neither_folder_nor_variables_of_whoever_starts_it_bring_code(
    name: str, apply: Apply, evil: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(evil)
    monkeypatch.setenv(name, str(evil / "evil.rb") if name == "BUNDLE_GEMFILE" else str(evil))
    said = apply(f"jar {{ 'x': shelf => '{tmp_path}', colour => red }}")
    assert (said.code, said.err) == (0, "") and (tmp_path / "x").exists()
    assert not (tmp_path / "pwned").exists()


@needs_ruby
def test_ruby_has_no_descriptor_of_the_agents(apply: Apply, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    kept = os.open(tmp_path / "secret", os.O_RDONLY)
    os.set_inheritable(kept, True)
    try:
        said = apply(f"wild {{ 'a': ensure => present, folder => '{tmp_path}', how => 'descriptors' }}")
    finally:
        os.close(kept)
    assert "Notice: descriptors [" in said.out and "secret" not in said.out


REQUIRING = """
require ARGV[0]
folder = ARGV[1]
answers = ARGV[2..-1].map do |name|
  ok = name.end_with?('.rb') ? load(name) : require(name)
  "#{name}: #{ok}"
rescue LoadError => e
  "#{name}: #{e.message.lines.first.chomp}"
end
puts answers, $LOADED_FEATURES.grep(/\\A#{folder}/), $LOAD_PATH.grep(/\\A#{folder}/), PuppetX.class
"""


@needs_ruby
@pytest.mark.parametrize("program", [TYPES, FACTS, HOST], ids=["types", "facts", "functions"])
def test_no_program_reads_an_installed_puppet_and_each_finds_the_libraries_beside_it(program: Path, tmp_path: Path) -> None:
    installed = ["puppet", "puppet/util", "puppet/nowhere_else", "puppet_pal", "puppet_x", "puppet_x/strange", "facter", "hiera"]
    for name in installed:
        (tmp_path / f"{name}.rb").parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.rb").write_text("abort 'read'")
    (tmp_path / "companion").mkdir()
    (tmp_path / "companion.rb").write_text("require 'companion/part'")
    (tmp_path / "companion" / "part.rb").write_text("")
    names = [*installed, "puppet/util.rb", "companion", "companion/nowhere"]
    words = ["ruby", "-I", str(tmp_path), "-e", REQUIRING, str(program), str(tmp_path), *names]
    lines = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    assert lines == [
        *(f"{name}: false" for name in ("puppet", "puppet/util", "puppet/nowhere_else")),
        "puppet_pal: cannot load such file -- puppet_pal",
        "puppet_x: false",
        "puppet_x/strange: cannot load such file -- puppet_x/strange",
        *("facter: false", "hiera: false"),
        "puppet/util.rb: cannot load such file -- puppet/util.rb",
        "companion: true",
        "companion/nowhere: cannot load such file -- companion/nowhere",
        *(f"{tmp_path}/{name}.rb" for name in ("companion/part", "companion")),
        "Module",
    ]

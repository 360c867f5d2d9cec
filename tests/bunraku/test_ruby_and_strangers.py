"""Nothing but modules reaches the Ruby that root runs: no path in data, no folder, no variable and no descriptor of somebody else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agent.ruby.loading import in_ruby
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

"""Puppetfiles: what they declare, what is refused, and how their modules get into an environment."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bunraku.modules.puppetfiles.deployment import install_puppetfile
from bunraku.modules.puppetfiles.puppetfile import parse_puppetfile, read_puppetfile
from shared.errors import ConfigError, PuppetError
from shared.settings import AgentSettings, load
from tests.support.forge import LocalForge, serving

FULL = """
# frozen_string_literal: true
forge "https://forge.example.com"
moduledir 'thirdparty'

mod 'puppetlabs/stdlib', '9.4.1'   # exactly
mod 'puppetlabs-concat', :latest
mod 'puppetlabs/apache', '>= 1.0.0 < 2.0.0'
mod "made/any"
mod 'site', local: true
mod 'a', git: 'https://example.com/a.git', ref: 'v1.0'
mod 'made/b',
  :git    => 'git@example.com:b.git',
  :commit => '0123456789abcdef'
mod('c', { 'git' => '/srv/git/c', :branch => 'feature/x', :install_path => 'own' })
mod 'made/d', :type => 'forge', :version => '1.2.3'
"""


def test_modules_are_declared_in_all_forms() -> None:
    puppetfile = parse_puppetfile(FULL.encode(), "Puppetfile")
    assert puppetfile.forge == "https://forge.example.com"
    assert [(module.kind, puppetfile.path_of(module), str(module), module.line) for module in puppetfile.modules] == [
        ("forge", "thirdparty/stdlib", "Forge, 9.4.1", 6),
        ("forge", "thirdparty/concat", "Forge, latest", 7),
        ("forge", "thirdparty/apache", "Forge, >= 1.0.0 < 2.0.0", 8),
        ("forge", "thirdparty/any", "Forge, latest", 9),
        ("local", "thirdparty/site", "local", 10),
        ("git", "thirdparty/a", "https://example.com/a.git v1.0", 11),
        ("git", "thirdparty/b", "git@example.com:b.git 0123456789abcdef", 12),
        ("git", "own/c", "/srv/git/c feature/x", 15),
        ("forge", "thirdparty/d", "Forge, 1.2.3", 16),
    ]


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("x = 1\n", "line: 1", "declares no module"),
        ("\nsystem('id')", "line: 2", "declares no module"),
        ("mod 'made/x', `id`", "line: 1", "is not a plain value"),
        ('mod "made/#{name}"', "line: 1", "is not a plain text"),
        ("mod 'made/x', ENV['V']", "line: 1", "is not a plain value"),
        ("mod 'made/x' do\nend", "line: 1", "declares no module"),
        ("if true\n  mod 'made/x'\nend", "line: 1", "declares no module"),
        ("mod 'made/x', '1.0.0'.strip", "line: 1", "is not a plain value"),
        ("Kernel.mod 'made/x'", "line: 1", "declares no module"),
        ("mod 'made/x', :control_branch => true", "line: 1", "is an option that is not supported here"),
        ("mod 'made/x', :git => 'ext::sh -c id'", "line: 1", "has an invalid repository"),
        ("mod 'made/x', :git => '--upload-pack=id'", "line: 1", "has an invalid repository"),
        ("mod 'made/x', :git => 'ssh://-oProxyCommand=id/x'", "line: 1", "has an invalid repository"),
        ("mod 'made/x', :git => 'https://e/x', :ref => '--output=x'", "line: 1", "has an invalid reference"),
        ("mod 'made/x', :git => 'https://e/x', :ref => 'a..b'", "line: 1", "has an invalid reference"),
        ("mod 'made/x', :git => 'https://e/x', :ref => :control_branch", "line: 1", "has an invalid reference"),
        ("mod 'made/x', :git => 'https://e/x', :ref => 'a', :tag => 'b'", "line: 1", "has more than one version"),
        ("mod '../x', :local => true", "line: 1", "names no module"),
        ("mod 'made/../x'", "line: 1", "names no module"),
        ("mod 'x'", "line: 1", "without its author"),
        ("mod 'made/x', 'fish'", "line: 1", "has an invalid version"),
        ("mod 'made/x'\nmod 'other/x'", "line: 2", "is in one folder with the module of line 1"),
        ("moduledir '../x'", "line: 1", "is not below that of the environment"),
        ("moduledir '/etc'", "line: 1", "is not below that of the environment"),
        ("mod 'x', :local => true, :install_path => '.git'", "line: 1", "is not below that of the environment"),
        ("forge 'file:///etc'", "line: 1", "is no URL of a Forge"),
        ("mod 'made/x', :local => true, :git => 'https://e/x'", "line: 1", "do not go together"),
        ("mod 'made/x'\nmod 'made/y', (", "line: 2", ""),
    ],
)
def test_what_does_more_than_declare_is_refused_with_its_line(text: str, place: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_puppetfile(text.encode(), "/env/Puppetfile")
    assert problem in str(caught.value)
    assert place in str(caught.value)
    assert "r10k" in caught.value.hint or problem not in ("declares no module", "is not a plain value", "is not a plain text")


def test_an_environment_without_puppetfile_has_none(tmp_path: Path) -> None:
    assert read_puppetfile(tmp_path) is None


def git(*words: str, folder: Path) -> str:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false")
    argv = ["git", "-C", str(folder), *identity, *words]
    return subprocess.run(argv, env=environ, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the tag v1, a later commit on main, and a branch."""
    folder = tmp_path / "repository"
    (folder / "manifests").mkdir(parents=True)
    git("init", "--quiet", folder=folder)
    for number, version in enumerate(("one", "two", "three")):
        (folder / "manifests" / "init.pp").write_text(version)
        git("add", "--all", folder=folder)
        git("commit", "--quiet", "--message", version, folder=folder)
        git("tag", f"v{number + 1}", folder=folder)
    git("branch", "old", "v2", folder=folder)
    return folder


def settings_for(tmp_path: Path, forge: LocalForge, **more: str) -> AgentSettings:
    flags = {"confdir": str(tmp_path / "conf"), "vardir": str(tmp_path / "var"), "module_repository": forge.url, **more}
    return load(AgentSettings, section="user", flags=flags)


@pytest.mark.slow
async def test_all_modules_of_a_puppetfile_get_into_the_environment(tmp_path: Path, repository: Path) -> None:
    environment = tmp_path / "environment"
    environment.mkdir()
    commit = git("rev-parse", "v1", folder=repository)
    text = f"""
      mod 'made/base', '1.0.0'
      mod 'made/newest'
      mod 'own', :local => true
      mod 'tagged', :git => '{repository}', :tag => 'v1'
      mod 'branched', :git => 'file://{repository}', :branch => 'old'
      mod 'head', :git => '{repository}'
      mod 'short', :git => '{repository}', :ref => '{commit[:10]}'
      mod 'exact', :git => '{repository}', :commit => '{commit}', :install_path => 'site'
    """
    with serving(LocalForge()) as forge:
        for version in ("1.0.0", "2.0.0"):
            forge.publish("made-base", version, {"made-never": "1.x"})
            forge.publish("made-newest", version)
        done = await install_puppetfile(parse_puppetfile(text.encode(), "Puppetfile"), environment, settings_for(tmp_path, forge))
    contents = {str(path.relative_to(environment)): path.read_text() for path in environment.rglob("init.pp")}
    assert contents == {
        "modules/base/manifests/init.pp": "class base { } # 1.0.0\n",
        "modules/newest/manifests/init.pp": "class newest { } # 2.0.0\n",
        "modules/tagged/manifests/init.pp": "one",
        "modules/branched/manifests/init.pp": "two",
        "modules/head/manifests/init.pp": "three",
        "modules/short/manifests/init.pp": "one",
        "site/exact/manifests/init.pp": "one",
    }
    versions = {module.module.folder: module.version for module in done}
    assert (versions["base"], versions["newest"], versions["own"], versions["short"]) == ("1.0.0", "2.0.0", "", commit)
    left = [str(path) for path in environment.rglob("*") if path.name.startswith(".")]
    assert left == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ("mod 'made/nothing'", "has no release"),
        ("mod 'made/base', '7.0.0'", "has no release 7.0.0"),
        ("mod 'x', :git => 'REPOSITORY', :tag => 'v9'", "git fetch ended with"),
        ("mod 'x', :git => 'REPOSITORY', :ref => 'fffffffff'", "git rev-parse ended with"),
        ("mod 'x', :git => '/nowhere/at/all'", "git fetch ended with"),
    ],
)
async def test_nothing_is_changed_when_one_module_cannot_be_had(tmp_path: Path, repository: Path, declared: str, problem: str) -> None:
    environment = tmp_path / "environment"
    (environment / "modules" / "base").mkdir(parents=True)
    text = f"mod 'made/base', '1.0.0'\n{declared.replace('made/base', 'made/base2').replace('REPOSITORY', str(repository))}\n"
    with serving(LocalForge()) as forge:
        forge.publish("made-base", "1.0.0")
        forge.publish("made-base2", "1.0.0")
        with pytest.raises(PuppetError, match=problem):
            await install_puppetfile(parse_puppetfile(text.encode(), "Puppetfile"), environment, settings_for(tmp_path, forge))
    assert [str(path.relative_to(environment)) for path in sorted(environment.rglob("*"))] == ["modules", "modules/base"]


@pytest.mark.slow
async def test_a_repository_cannot_lead_out_of_its_module_by_a_link(tmp_path: Path, repository: Path) -> None:
    (repository / "files").symlink_to("/etc")
    git("add", "--all", folder=repository)
    git("commit", "--quiet", "--message", "link", folder=repository)
    environment = tmp_path / "environment"
    environment.mkdir()
    puppetfile = parse_puppetfile(f"mod 'x', :git => '{repository}'".encode(), "Puppetfile")
    with serving(LocalForge()) as forge, pytest.raises(PuppetError, match="has a link that leads out of it"):
        await install_puppetfile(puppetfile, environment, settings_for(tmp_path, forge))
    assert list((environment / "modules").iterdir()) == []

"""Environments: where they are, what environment.conf says, and when they are read again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from environments.directories import Environments, EnvironmentSettings, read_environment
from environments.files.code_files import DiskFiles
from environments.loaded import LoadedEnvironments
from language.codegen.codecache import CodeCache
from language.evaluation.compile import compile_catalog
from language.host import NodeInput
from shared.errors import ConfigError, NotFound
from shared.settings import Conf, MasterSettings, load


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _settings(tmp_path: Path, **given: Any) -> EnvironmentSettings:
    return EnvironmentSettings((str(tmp_path / "environments"),), (str(tmp_path / "base"),), **given)


def _loaded(tmp_path: Path, clock: Clock, **given: Any) -> LoadedEnvironments:
    return LoadedEnvironments(_settings(tmp_path, **given), CodeCache(), log=lambda level, found: None, clock=clock, now=clock)


def _titles(environments: LoadedEnvironments, name: str = "production") -> list[str]:
    loaded = environments.get(name)
    catalog = compile_catalog(loaded.host, loaded.loader, NodeInput("n"), version=loaded.version, log=lambda entry: None)
    return [each["title"] for each in catalog["resources"] if each["type"] == "Notify"]


def _touch(path: Path, text: str) -> None:
    path.write_text(text)
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))


def test_the_defaults_are_the_environment_s_own_folders(tmp_path: Path) -> None:
    root = tmp_path / "environments/production"
    _write(root, {"manifests/site.pp": ""})
    found = Environments(_settings(tmp_path)).read("production")
    assert found.modulepath == (f"{root}/modules", str(tmp_path / "base"))
    assert found.manifest == f"{root}/manifests"
    assert found.environment_timeout == 0


def test_environment_conf_says_otherwise_and_its_variables_are_expanded(tmp_path: Path) -> None:
    root = tmp_path / "environments/production"
    conf = "# comment\nmodulepath = site:$basemodulepath:/opt/$environment\nmanifest=main.pp\nenvironment_timeout = 3m\n"
    _write(root, {"environment.conf": conf})
    found = Environments(_settings(tmp_path)).read("production")
    assert found.modulepath == (f"{root}/site", str(tmp_path / "base"), "/opt/production")
    assert found.manifest == f"{root}/main.pp"
    assert found.environment_timeout == 180


def test_an_unknown_setting_is_a_warning_and_a_line_without_value_an_error(tmp_path: Path) -> None:
    root = tmp_path / "environments/production"
    _write(root, {"environment.conf": "modulpath = x\n"})
    (warning,) = Environments(_settings(tmp_path)).read("production").warnings
    assert "modulpath" in warning
    (root / "environment.conf").write_text("nonsense\n")
    with pytest.raises(ConfigError, match=r"Could not match line 'nonsense'"):
        Environments(_settings(tmp_path)).read("production")


@pytest.mark.parametrize("name", ["nope", "../production", "a/b", "", ".", "a b"])
def test_what_is_no_environment_is_not_found(tmp_path: Path, name: str) -> None:
    _write(tmp_path / "environments/production", {"manifests/site.pp": ""})
    with pytest.raises(NotFound, match="Could not find environment"):
        Environments(_settings(tmp_path)).root_of(name)


def test_a_changed_manifest_is_read_again(tmp_path: Path) -> None:
    root = tmp_path / "environments/production"
    _write(root, {"manifests/site.pp": "notify { 'one': }"})
    environments = _loaded(tmp_path, Clock())
    assert _titles(environments) == ["one"]
    _touch(root / "manifests/site.pp", "notify { 'two': }")
    assert _titles(environments) == ["two"]


def test_a_module_that_appears_is_found(tmp_path: Path) -> None:
    root = tmp_path / "environments/production"
    _write(root, {"manifests/site.pp": "if defined('m') { include m }"})
    environments = _loaded(tmp_path, Clock())
    assert _titles(environments) == []
    _write(root, {"modules/m/manifests/init.pp": "class m { notify { 'appeared': } }"})
    assert _titles(environments) == ["appeared"]


def test_an_unchanged_environment_is_kept(tmp_path: Path) -> None:
    _write(tmp_path / "environments/production", {"manifests/site.pp": "notify { 'one': }"})
    environments = _loaded(tmp_path, Clock())
    assert environments.get("production") is environments.get("production")


def test_within_its_timeout_nobody_looks_at_the_files(tmp_path: Path) -> None:
    root = tmp_path / "environments/production"
    _write(root, {"manifests/site.pp": "notify { 'one': }"})
    clock = Clock()
    environments = _loaded(tmp_path, clock, environment_timeout=60.0)
    assert _titles(environments) == ["one"]
    _touch(root / "manifests/site.pp", "notify { 'two': }")
    clock.time += 59
    assert _titles(environments) == ["one"]
    clock.time += 2
    assert _titles(environments) == ["two"]


def test_an_unlimited_environment_is_read_again_when_it_is_told_to(tmp_path: Path) -> None:
    root = tmp_path / "environments/production"
    _write(root, {"manifests/site.pp": "notify { 'one': }"})
    environments = _loaded(tmp_path, Clock(), environment_timeout=None)
    _titles(environments)
    _touch(root / "manifests/site.pp", "notify { 'two': }")
    assert _titles(environments) == ["one"]
    environments.forget("production")
    assert _titles(environments) == ["two"]


@pytest.mark.slow
def test_config_version_is_what_the_program_prints(tmp_path: Path) -> None:
    root = tmp_path / "environments/production"
    _write(root, {"environment.conf": "config_version = version.sh\n", "version.sh": "#!/bin/sh\necho abc123\n"})
    (root / "version.sh").chmod(0o755)
    assert _loaded(tmp_path, Clock()).get("production").version == "abc123"
    _touch(root / "version.sh", "#!/bin/sh\necho broken >&2\nexit 3\n")
    with pytest.raises(ConfigError, match="exit code 3") as caught:
        _loaded(tmp_path, Clock()).get("production")
    assert caught.value.hint == "broken"


def test_without_config_version_the_version_is_the_time_of_loading(tmp_path: Path) -> None:
    _write(tmp_path / "environments/production", {"manifests/site.pp": ""})
    assert _loaded(tmp_path, Clock()).get("production").version == 1000


def test_two_environments_do_not_see_each_other(tmp_path: Path) -> None:
    for name in ("production", "testing"):
        _write(
            tmp_path / f"environments/{name}",
            {"manifests/site.pp": "include m", "modules/m/manifests/init.pp": f"class m {{ notify {{ '{name}': }} }}"},
        )
    environments = _loaded(tmp_path, Clock())
    assert [_titles(environments, name) for name in ("production", "testing")] == [["production"], ["testing"]]


async def test_the_listing_is_what_the_api_answers(tmp_path: Path) -> None:
    _write(tmp_path / "environments/production", {"manifests/site.pp": ""})
    listing = await Environments(_settings(tmp_path)).listing()
    assert listing["search_paths"] == [(tmp_path / "environments").as_uri()]
    assert listing["environments"]["production"]["settings"]["environment_timeout"] == 0


def test_an_environment_without_words_of_its_own_goes_by_the_masters_settings(tmp_path: Path) -> None:
    root = tmp_path / "environments"
    _write(root, {"plain/manifests/site.pp": "", "own/environment.conf": "rich_data = true\nenvironment_data_provider = hiera\n"})
    flags = {"environmentpath": str(root), "rich_data": "false", "environment_data_provider": "none"}
    environments = Environments(EnvironmentSettings.of(load(MasterSettings, section="master", flags=flags, conf=Conf())))
    assert [(found.rich_data, found.data_provider) for found in map(environments.read, ("plain", "own"))] == [
        (False, "none"),
        (True, "hiera"),
    ]


def test_a_timeout_that_is_none_is_named_with_its_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "environment.conf").write_text("# mine\nenvironment_timeout = soon\n")
    settings = EnvironmentSettings((str(tmp_path.parent),))
    place = rf"\(file: {tmp_path}/environment\.conf, line: 2\)$"
    with pytest.raises(ConfigError, match=rf"^Could not set environment_timeout: Invalid duration format 'soon'; .* {place}"):
        read_environment("e", str(tmp_path), DiskFiles(), settings)

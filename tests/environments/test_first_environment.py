"""The environment that a master makes when it starts for the first time, and where it makes none."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from environments.first import prepare_environments
from master.checks.environments import check
from shared.settings import MasterSettings, load


def settings_below(root: Path, **flags: str) -> MasterSettings:
    folders = {name: str(root / name) for name in ("confdir", "vardir", "logdir", "rundir")}
    return load(MasterSettings, section="master", flags={**folders, **flags})


def test_a_first_start_makes_production_with_a_manifest_that_is_only_a_comment(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "puppet.master")
    prepare_environments(settings_below(tmp_path))
    root = tmp_path / "confdir/code/environments/production"
    manifest = root / "manifests" / "site.pp"
    assert [line for line in manifest.read_text().splitlines() if not line.startswith("#")] == []
    assert (root / "modules").is_dir()
    assert root.stat().st_mode & 0o777 == 0o755 and manifest.stat().st_mode & 0o777 == 0o644
    assert str(manifest) in caplog.text
    manifest.write_text("notify { 'mine': }")
    prepare_environments(settings_below(tmp_path))
    assert manifest.read_text() == "notify { 'mine': }"


def test_a_check_before_the_first_start_asks_for_no_environment_and_makes_none(tmp_path: Path) -> None:
    assert check(settings_below(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "confdir/code/modules/ntp").mkdir(parents=True)
    assert [finding.severity for finding in check(settings_below(tmp_path))] == ["error", "warning"]


def test_what_an_interrupted_start_left_is_made_anew(tmp_path: Path) -> None:
    left = tmp_path / "confdir/code/environments/.production.new/manifests"
    left.mkdir(parents=True)
    prepare_environments(settings_below(tmp_path))
    assert [path.name for path in (tmp_path / "confdir/code/environments").iterdir()] == ["production"]


@pytest.mark.parametrize(
    "arrange",
    [
        lambda code: (code / "environments" / "dev").mkdir(parents=True),
        lambda code: (code / "modules" / "ntp").mkdir(parents=True),
        lambda code: (code / ".git").mkdir(parents=True),
        lambda code: (code.mkdir(parents=True), (code / "hiera.yaml").write_text("version: 5")),
        lambda code: (code.mkdir(parents=True), (code / "environments").symlink_to("/nonexistent")),
        lambda code: (code.parent.mkdir(), (code.parent / "r10k").mkdir(), code.symlink_to(code.parent / "r10k")),
    ],
    ids=["environment", "module", "repository", "data", "link to environments", "linked codedir"],
)
def test_code_that_somebody_has_put_there_is_left_alone_and_the_start_says_what_is_missing(
    arrange: Callable[[Path], object], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    code = tmp_path / "confdir" / "code"
    arrange(code)
    before = sorted(tmp_path.rglob("*"))
    prepare_environments(settings_below(tmp_path))
    assert sorted(tmp_path.rglob("*")) == before
    assert "There is no environment 'production'" in caplog.text


@pytest.mark.parametrize(
    "flags",
    [{"environment": "dev"}, {"environmentpath": "/nonexistent/envs"}, {"code_id_command": "/bin/true"}],
    ids=["another environment", "another place", "versioned code"],
)
def test_a_site_that_says_where_its_code_is_gets_none_made(flags: dict[str, str], tmp_path: Path) -> None:
    prepare_environments(settings_below(tmp_path, **flags))
    assert not (tmp_path / "confdir").exists()


def test_a_check_names_modules_of_packages_that_are_not_in_basemodulepath(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "packages"
    (packages / "cron_core").mkdir(parents=True)
    monkeypatch.setenv("BUNRAKU_PACKAGE_MODULES", f"{packages}")
    assert check(settings_below(tmp_path)) == []
    (finding,) = check(settings_below(tmp_path, basemodulepath="/other"))
    assert (finding.severity, finding.message) == ("notice", f"The modules in {packages} are not in basemodulepath: cron_core")

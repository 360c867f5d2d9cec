"""The settings of a site's own data reach what compiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.settings import environment_settings
from shared.settings import MasterSettings, load


def _settings(root: Path, **given: str) -> MasterSettings:
    return load(MasterSettings, section="master", flags={"confdir": str(root / "conf"), "codedir": str(root / "code"), **given})


def test_hiera_yaml_is_that_of_codedir_where_there_is_one(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    assert _settings(tmp_path).site_hiera_config == tmp_path / "conf" / "hiera.yaml"
    (tmp_path / "code" / "hiera.yaml").write_text("version: 5\n")
    assert _settings(tmp_path).site_hiera_config == tmp_path / "code" / "hiera.yaml"
    assert _settings(tmp_path, hiera_config="/srv/h.yaml").site_hiera_config == Path("/srv/h.yaml")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("data_binding_terminus", "none", "none"),
        ("disable_warnings", "deprecations,undefined_variables", ["deprecations", "undefined_variables"]),
        ("strict_hostname_checking", "false", False),
        ("hiera_config", "/srv/h.yaml", "/srv/h.yaml"),
        ("strict", "error", "error"),
    ],
)
def test_a_setting_reaches_the_compiler(name: str, text: str, value: object, tmp_path: Path) -> None:
    assert environment_settings(_settings(tmp_path, **{name: text})).compiler[name] == value

"""The import names are plain words that other distributions could own too: here nobody else may."""

from __future__ import annotations

import os
import subprocess
from importlib.metadata import entry_points, files, packages_distributions, version
from pathlib import Path

import pytest

import shared

ROOT = Path(__file__).parent.parent
NAMES = ("master", "agent", "shared", "certs", "bunraku")


@pytest.mark.parametrize("name", NAMES)
def test_no_other_distribution_owns_the_import_name(name: str) -> None:
    assert set(packages_distributions().get(name, ["bunraku"])) == {"bunraku"}


def test_the_version_is_declared_once() -> None:
    assert version("bunraku") == shared.__version__


@pytest.mark.parametrize("command", ["puppet", "puppet-master", "puppet-agent"])
def test_the_installed_commands_are_the_scripts_of_bin(command: str) -> None:
    script = next(each for each in files("bunraku") or [] if each.name == command)
    assert script.read_text() == (ROOT / "bin" / command).read_text()
    path = script.locate()
    assert os.access(str(path), os.X_OK)
    assert subprocess.run([str(path), "--version"], capture_output=True, text=True, timeout=60).stdout == f"{shared.__version__}\n"


def test_no_entry_point_starts_an_interpreter_that_is_not_isolated() -> None:
    assert [each.name for each in entry_points(group="console_scripts") if each.dist and each.dist.name == "bunraku"] == []

"""The import names are plain words that other distributions could own too: here nobody else may."""

from __future__ import annotations

from importlib.metadata import entry_points, packages_distributions, version

import pytest

import shared

NAMES = ("master", "agent", "shared", "certs", "bunraku")


@pytest.mark.parametrize("name", NAMES)
def test_no_other_distribution_owns_the_import_name(name: str) -> None:
    assert set(packages_distributions().get(name, ["bunraku"])) == {"bunraku"}


def test_the_version_is_declared_once() -> None:
    assert version("bunraku") == shared.__version__


@pytest.mark.parametrize("command", ["puppet", "puppet-master", "puppet-agent"])
def test_every_command_can_be_loaded(command: str) -> None:
    (entry,) = entry_points(group="console_scripts", name=command)
    assert callable(entry.load())

"""`puppet resource` beside the real one, on this machine; both only read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.processes import clean_environment
from tests.support.smoke import with_smoke

pytestmark = [
    pytest.mark.works_with("Commands and answers of Puppet 7.23", "puppet resource"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("puppet") is None, reason="puppet is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the password file and services are read as root"),
]
CHECKOUT = Path(__file__).parents[2]


def listed(program: list[str], *words: str) -> Any:
    done = subprocess.run(
        [*program, "resource", *words, "--to_yaml"], capture_output=True, timeout=120, env=clean_environment(), cwd=CHECKOUT, check=False
    )
    return yaml.safe_load(done.stdout)


def ours() -> list[str]:
    return [sys.executable, "-m", "bunraku.puppet"]


@pytest.mark.parametrize("type_name", with_smoke(["user", "group", "service", "host", "cron"], "user"))
def test_what_exists_is_listed_as_the_real_puppet_lists_it(type_name: str) -> None:
    real = listed(["puppet"], type_name)
    if real is None:
        pytest.skip(f"the real puppet knows no {type_name}: install puppet-module-puppetlabs-{type_name}-core")
    assert listed(ours(), type_name)[type_name] == (real[type_name] or {})


@pytest.mark.parametrize(
    "words", [("user", "root"), ("group", "root"), ("user", "no-such-user"), ("package", "dpkg"), ("package", "no-such-package")]
)
def test_one_resource_is_shown_as_the_real_puppet_shows_it(words: tuple[str, str]) -> None:
    assert listed(ours(), *words) == listed(["puppet"], *words)

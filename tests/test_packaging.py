"""The import names are plain words that other distributions could own too: here nobody else may."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, entry_points, files, packages_distributions, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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


PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)


def pinned(lock: str = "release") -> dict[str, str]:
    """The versions in a file of requirements/, each with hashes."""
    return {canonicalize_name(name): found for name, found, _ in PIN.findall((ROOT / f"requirements/{lock}.txt").read_text())}


def declared() -> list[Requirement]:
    """What pyproject.toml says that a release needs, with what is optional."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    return [Requirement(text) for text in (*project["dependencies"], *optional["ldap"], *optional["postgresql"])]


def test_a_release_pins_everything_that_is_declared_in_a_version_that_fits() -> None:
    pins = pinned()
    for each in declared():
        assert pins.get(canonicalize_name(each.name), "") in each.specifier, f"run make lock: {each}"


def test_a_wheel_is_made_with_a_pinned_backend_that_fits() -> None:
    for text in tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]:
        each = Requirement(text)
        assert pinned("build").get(canonicalize_name(each.name), "") in each.specifier, f"run make lock: {each}"


@pytest.mark.parametrize("lock", ["release", "build"])
def test_every_pin_has_hashes_and_nothing_says_where_it_came_from(lock: str) -> None:
    text = (ROOT / f"requirements/{lock}.txt").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(lines) == len(pinned(lock)) > 4
    assert "://" not in text and "--find-links" not in text and "--index-url" not in text


def test_a_release_pins_what_its_packages_need_too_and_nothing_else() -> None:
    pins = pinned()
    needed: set[tuple[str, str]] = set()  # packages with one of their extras, or without
    unread = [(each.name, extra) for each in declared() for extra in ("", *each.extras)]
    while unread:
        name, extra = unread.pop()
        name = canonicalize_name(name)
        if (name, extra) in needed:
            continue
        needed.add((name, extra))
        try:
            requirements = [Requirement(text) for text in requires(name) or ()]
        except PackageNotFoundError:
            continue  # optional, and not installed here
        for requirement in requirements:
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                unread += [(requirement.name, more) for more in ("", *requirement.extras)]
    names = {name for name, _ in needed}
    assert names <= set(pins), "run make lock"
    assert set(pins) <= names | {"pyasn1"}, "run make lock"  # of ldap3


AUDITS = [
    ({"name": "a", "version": "1", "vulns": []}, 0, "1 of 1 packages audited, 0 known"),
    ({"name": "a", "version": "1", "vulns": [{"id": "X-1", "fix_versions": ["2"]}]}, 1, "a 1: X-1; fixed in 2"),
    ({"name": "a", "skip_reason": "not found"}, 0, "NOTHING WAS AUDITED"),
    (None, 0, "NOTHING WAS AUDITED: the vulnerability service could not be asked: could not connect"),
]


@pytest.mark.parametrize(("package", "code", "said"), AUDITS)
def test_an_audit_fails_for_a_vulnerability_and_says_what_it_could_not_ask(
    package: dict[str, object] | None, code: int, said: str, tmp_path: Path
) -> None:
    told = f"print({json.dumps({'dependencies': [package]})!r})" if package else "raise SystemExit('could not connect')"
    (tmp_path / "pip_audit.py").write_text(told)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, str(ROOT / ".ci/audit")], env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (code, "")
    assert said in done.stdout

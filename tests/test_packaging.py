"""The import names are plain words that other distributions could own too: here nobody else may."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distributions, entry_points, files, packages_distributions, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import shared
from shared.process.parts import PARTS
from tests.support.imports import PACKAGES

ROOT = Path(__file__).parent.parent
NAMES = PACKAGES


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
    assert subprocess.run([str(path), "--version"], capture_output=True, text=True, timeout=60).stdout == f"{shared.VERSIONS}\n"


def test_no_entry_point_starts_an_interpreter_that_is_not_isolated() -> None:
    assert [each.name for each in entry_points(group="console_scripts") if each.dist and each.dist.name == "bunraku"] == []


PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)


def pinned(lock: str = "release") -> dict[str, str]:
    """The versions in a file of requirements/, each with hashes."""
    return {canonicalize_name(name): found for name, found, _ in PIN.findall((ROOT / f"requirements/{lock}.txt").read_text())}


EXTRAS = {
    "release": ("master", "ldap", "postgresql"),
    "dev": ("dev", "master", "ldap", "postgresql"),
    "releasing": ("master", "release"),
}
"""The locks of this project with what it needs, and which of the optional things they have."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.15")


def declared(lock: str = "release") -> list[Requirement]:
    """What pyproject.toml says that this project needs, with what is optional and in a lock."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    optional = [text for extra in ("store", *EXTRAS[lock]) for text in extras[extra] if not text.startswith("bunraku")]
    return [Requirement(text) for text in (*project["dependencies"], *optional)]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_names_the_packages_that_its_extra_brings(part: str) -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"][part]
    named = [Requirement(text).name for text in extra if not text.startswith("bunraku")]
    assert sorted(named) == sorted(package.replace("_", "-") for package in PARTS[part])


@pytest.mark.parametrize(
    ("words", "package", "part"), [("db --no-daemonize", "sqlalchemy", "store"), ("master --no-daemonize", "resolvelib", "master")]
)
def test_a_command_that_lacks_a_package_says_what_brings_it(words: str, package: str, part: str, tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(
        f"import sys\nsys.modules[{package!r}] = None\nfrom bunraku.puppet import main\nsys.exit(main({words.split()!r}))"
    )
    done = subprocess.run([sys.executable, tmp_path / "run.py"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and done.stderr.splitlines()[0] == f"Error: The Python package {package} is not installed", done.stderr
    assert f"pip install 'bunraku[{part}]'" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("lock", EXTRAS)
def test_a_lock_pins_everything_that_is_declared_in_a_version_that_fits(lock: str) -> None:
    pins = pinned(lock)
    for each in declared(lock):
        assert pins.get(canonicalize_name(each.name), "") in each.specifier, f"run make lock: {each}"


@pytest.mark.parametrize("lock", ["dev", "releasing"])
def test_tests_run_with_the_versions_of_a_release(lock: str) -> None:
    pins, others = pinned(lock), pinned("build") | pinned()
    assert {name: others[name] for name in pins.keys() & others.keys()} == {name: pins[name] for name in pins.keys() & others.keys()}


def test_a_wheel_is_made_with_a_pinned_backend_that_fits() -> None:
    for text in tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]:
        each = Requirement(text)
        assert pinned("build").get(canonicalize_name(each.name), "") in each.specifier, f"run make lock: {each}"


@pytest.mark.parametrize("lock", ["release", "build", "dev", "releasing"])
def test_every_pin_has_hashes_and_nothing_says_where_it_came_from(lock: str) -> None:
    text = (ROOT / f"requirements/{lock}.txt").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(lines) == len(pinned(lock)) > 4
    assert "://" not in text and "--find-links" not in text and "--index-url" not in text


def test_a_release_pins_what_its_packages_need_too_and_nothing_else() -> None:
    pins, names = pinned(), needed(declared())
    assert names <= set(pins), "run make lock"
    assert set(pins) <= names | {"pyasn1"}, "run make lock"  # of ldap3


def test_the_python_of_debian_12_is_new_enough_for_what_tests_need() -> None:
    installed = {canonicalize_name(each.metadata["Name"]): each.metadata.get("Requires-Python") for each in distributions()}
    needs = {name: installed.get(name) for name in pinned("dev")}
    assert [(name, python) for name, python in needs.items() if python and "3.11.2" not in SpecifierSet(python)] == []


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", EXTRAS)
def test_a_lock_pins_what_its_packages_need_with_later_versions_of_python(lock: str, python: str) -> None:
    assert needed(declared(lock), python_version=python, python_full_version=f"{python}.0") <= set(pinned(lock))


def needed(requirements: list[Requirement], **environment: str) -> set[str]:
    """Return the names of the packages that are needed, those that they need, and so on, as far as they are installed here."""
    needed: set[tuple[str, str]] = set()  # packages with one of their extras, or without
    unread = [(each.name, extra) for each in requirements for extra in ("", *each.extras)]
    while unread:
        name, extra = unread.pop()
        name = canonicalize_name(name)
        if (name, extra) in needed:
            continue
        needed.add((name, extra))
        try:
            further = [Requirement(text) for text in requires(name) or ()]
        except PackageNotFoundError:
            continue  # optional, and not installed here
        for requirement in further:
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra, **environment}):
                unread += [(requirement.name, more) for more in ("", *requirement.extras)]
    return {name for name, _ in needed}


NOT_THERE = (
    "WARNING: x\nERROR: Could not find a version that satisfies the requirement a==1\nERROR: No matching distribution found for a==1"
)
OTHER_FILE = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n    a==1"
INSTALL = "-m pip install --quiet --disable-pip-version-check"
LOCKED, ON_TOP = f"{INSTALL} --require-hashes --requirement the.txt", f"{INSTALL} --no-deps --no-build-isolation --editable ."
NEWEST = f"{INSTALL} --upgrade --editable .[dev]"


@pytest.mark.parametrize(
    ("problem", "fails", "calls", "said"),
    [
        ("", 0, [LOCKED, ON_TOP], ""),
        (NOT_THERE, 0, [LOCKED, NEWEST], "the newest versions that fit are taken: No matching distribution found for a==1\n"),
        (OTHER_FILE, 1, [LOCKED], f"{OTHER_FILE}\n"),
    ],
    ids=["as locked", "a version that the index has no longer", "a file with other content"],
)
def test_what_a_lock_names_is_installed_or_one_line_says_why_not(
    problem: str, fails: int, calls: list[str], said: str, tmp_path: Path
) -> None:
    python = tmp_path / "python"  # which is asked to run pip
    refuse = f"case \"$*\" in *--require-hashes*) cat <<'END' >&2\n{problem}\nEND\nexit 1;; esac\n" if problem else ""
    python.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n{refuse}')
    python.chmod(0o755)
    argv = ["sh", str(ROOT / "requirements/install.sh"), str(python), "the.txt", "--editable", ".[dev]"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr.removeprefix("the.txt cannot be installed as it is, ")) == (fails, "", said)
    assert (tmp_path / "calls").read_text().splitlines() == calls


NO_GIT = "Git is missing (Debian: apt install git): the demo's preview is left out, and tests that need Git are skipped\n"


@pytest.mark.parametrize(
    ("python", "programs", "code", "said"),
    [
        ("exit 0", ["git"], 0, ""),
        ("exit 0", [], 0, NO_GIT),
        ("", [], 1, "<python> is missing (Debian: apt install python3)\n"),
        (
            'case "$*" in --version) echo Python 3.9.2;; *) exit 1;; esac', [], 1,
            "<python> is Python 3.9.2, and 3.11 or a newer one is needed: make PYTHON=python3.11 ...\n",
        ),
        (
            'case "$*" in *ensurepip*) echo Traceback >&2; exit 1;; esac', [], 1,
            "<python> can make no virtual environment, its module venv or ensurepip is missing (Debian: apt install python3-venv)\n",
        ),
    ],
    ids=["nothing", "Git", "Python", "a newer Python", "python3-venv"],
)  # fmt: skip
def test_what_is_missing_for_the_virtual_environment_is_said_in_one_line(
    python: str, programs: list[str], code: int, said: str, tmp_path: Path
) -> None:
    for name, text in [("python", python), *((program, "exit 0") for program in programs)]:
        if text:
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / name).chmod(0o755)
    interpreter = str(tmp_path / "python")
    argv = ["/bin/sh", str(ROOT / "requirements/check.sh"), interpreter]
    done = subprocess.run(argv, env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said.replace("<python>", interpreter))


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

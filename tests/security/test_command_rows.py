"""Rows about who is asked for code when an administrator types a command."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
CAUGHT = "from pathlib import Path\nPath({path!r}).touch()\n"
# Ours, those of the standard library and of others that ours import early, and what Python looks for by itself.
BAIT = ("bunraku", "shared", "master", "agent", "certs", "json", "difflib", "yaml", "pydantic", "orjson", "sitecustomize", "usercustomize")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the commands in a virtual environment that has this checkout in editable form, as pip makes it."""
    root = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(root, symlinks=True)
    packages = next(root.glob("lib/python*/site-packages"))
    (packages / "checkout.pth").write_text("\n".join([str(ROOT), *site.getsitepackages()]) + "\n")
    for script in (ROOT / "bin").iterdir():
        shutil.copy(script, root / "bin" / script.name)
    return root / "bin"


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A user's folder with modules of well-known names, each of which leaves the file `caught`."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in BAIT:
        (folder / f"{name}.py").write_text(CAUGHT.format(path=str(tmp_path / "caught")))
    return folder


def run(command: list[str], trap: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    base = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(trap)}
    return subprocess.run(command, cwd=trap, env=base | environ, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("pythonpath", [None, "", ".", "TRAP"])
@pytest.mark.parametrize(
    "words", [["puppet", "apply", "-e", "notice('hi')"], ["puppet-agent", "--version"], ["puppet-master", "--version"]]
)
def test_CMP_11_a_command_imports_nothing_from_the_current_folder_or_pythonpath(
    installed: Path, trap: Path, words: list[str], pythonpath: str | None
) -> None:
    places = [f"--{name}={trap.parent / name}" for name in ("confdir", "vardir", "logdir", "rundir")] if words[1] == "apply" else []
    given = {} if pythonpath is None else {"PYTHONPATH": pythonpath.replace("TRAP", str(trap))}
    done = run([str(installed / words[0]), *words[1:], *places], trap, **given, PYTHONSTARTUP=str(trap / "json.py"))
    assert (done.returncode, done.stderr) == (0, "")
    assert not (trap.parent / "caught").exists()


def test_CMP_11_the_trap_catches_an_interpreter_that_is_not_isolated(installed: Path, trap: Path) -> None:
    run([str(installed / "python3"), "-m", "bunraku", "--version"], trap)
    assert (trap.parent / "caught").exists()


def test_a_command_works_through_a_link_and_by_a_relative_path(installed: Path, trap: Path) -> None:
    (trap.parent / "puppet").symlink_to(installed / "puppet")
    for command in (str(trap.parent / "puppet"), "../puppet", os.path.relpath(installed / "puppet", trap)):
        done = run([command, "--version"], trap)
        assert (done.returncode, done.stderr) == (0, "")


def test_without_its_interpreter_a_command_says_what_is_missing(trap: Path) -> None:
    shutil.copy(ROOT / "bin" / "puppet", trap.parent / "puppet")
    done = run([str(trap.parent / "puppet"), "--version"], trap)
    assert done.returncode == 127
    assert f"{trap.parent}/python3" in done.stderr


def test_a_compile_under_an_isolated_command_is_isolated_too(installed: Path, trap: Path) -> None:
    """`puppet master --compile` starts a process of its own."""
    site_folder = trap.parent / "confdir" / "code" / "environments" / "production" / "manifests"
    site_folder.mkdir(parents=True)
    (site_folder / "site.pp").write_text("notify { 'hi': }\n")
    places = [f"--{name}={trap.parent / name}" for name in ("confdir", "vardir", "logdir", "rundir")]
    done = run(
        [str(installed / "puppet"), "master", "--compile", "web1", "--certname", "web1", "--user", "root", *places],
        trap,
        PYTHONPATH=str(trap),
    )
    assert done.returncode == 0, done.stderr
    assert "Notify" in done.stdout
    assert not (trap.parent / "caught").exists()

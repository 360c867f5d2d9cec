"""`make demo` as a newcomer sees it, with and without Git: what it tells, and that nothing but a page stays."""

from __future__ import annotations

import html
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from demo import run
from tests.support.documentation import ROOT
from tests.support.needs import needs_git

pytestmark = [pytest.mark.slow, needs_git]
TITLES = [run.MASTER, run.FIRST, run.SECOND, run.QUERY, run.PREVIEW, run.ROLLOUT, run.NEXT]


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the demo makes its folder."""
    return tmp_path_factory.mktemp("demo")


def told_by_demo(temporary: Path, path: str) -> str:
    """Return what the demo prints with that PATH."""
    environ = {**os.environ, "TMPDIR": str(temporary), "PATH": path}
    command = [sys.executable, run.__file__]
    demo = subprocess.Popen(command, env=environ, cwd=temporary, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = demo.communicate(timeout=180)
    finally:
        if demo.poll() is None:  # with all that it started
            os.killpg(demo.pid, signal.SIGKILL)
            demo.communicate()
    assert (demo.returncode, err.decode()) == (0, "")
    return out.decode()


@pytest.fixture(scope="module")
def told(temporary: Path) -> str:
    """What it tells where there is Git."""
    return told_by_demo(temporary, os.environ["PATH"])


def section(told: str, title: str) -> str:
    """Return what a part of the demo tells."""
    return told.split(f"== {title}\n")[1].split("\n\n")[0]


def test_it_tells_its_story_in_sixty_lines_and_leaves_the_page(told: str) -> None:
    assert re.findall(r"^== (.*)$", told, re.M) == TITLES
    assert len(told.splitlines()) <= 60
    assert "(30 nodes: web01.example.com … web30.example.com)" in told and "6 failed" in told
    page, command = (line.strip() for line in told.splitlines()[-2:])
    assert page == f"Open the preview in a browser: {run.PAGE.as_uri()}" and run.PAGE.exists()
    assert command.startswith("source .venv/bin/activate && puppet help")


def test_the_picture_in_readme_shows_this_story() -> None:
    picture = html.unescape((ROOT / "docs/demo.svg").read_text()).replace("\xa0", " ")
    assert [
        title for title in (run.MASTER, run.FIRST, run.SECOND, run.QUERY, run.PREVIEW, run.ROLLOUT, run.NEXT) if title not in picture
    ] == []
    assert "@font-face" not in picture


@pytest.mark.full
def test_without_git_that_is_said_first_and_all_else_is_told(tmp_path: Path) -> None:
    told = told_by_demo(tmp_path, "/nonexistent")
    assert told.startswith("Git is missing (Debian: apt install git): the preview and the rollout of a change are left out.\n\n== ")
    assert re.findall(r"^== (.*)$", told, re.M) == [run.MASTER, run.FIRST, run.SECOND, run.QUERY, run.NO_PREVIEW, run.NEXT]


def test_the_first_run_changes_what_differs_and_refreshes_what_depends_on_it(told: str) -> None:
    first = section(told, run.FIRST)
    assert "-PermitRootLogin yes" in first and "+PermitRootLogin no" in first
    assert "Exec[reload sshd]: Triggered 'refresh' from 1 event" in first
    assert re.search(r"\d+ requests", first)


def test_the_second_run_changes_nothing(told: str) -> None:
    lines = [line for line in section(told, run.SECOND).splitlines() if line.startswith("   | ")]
    assert len(lines) == 1 and "Notice: Applied catalog in" in lines[0]


def test_the_rollout_stops_in_its_second_wave_and_goes_back(told: str) -> None:
    rollout = section(told, run.ROLLOUT)
    assert re.search(r"is rolled-back: [1-3] bad nodes?, 0 allowed \(wave 30%\)", rollout)
    waves = {line.split()[1]: line.split()[2:] for line in rollout.splitlines() if re.match(r"   \| \d+%", line)}
    assert {name: (states[0], states[1], states[-1]) for name, states in waves.items()} == {
        "5%": ("5", "-", "done"),
        "30%": ("24", "-", "open"),
        "100%": ("71", "71", "-"),
    }
    assert "failed: Service[nginx]: nginx: [emerg]" in rollout and re.search(r"all \d+ machines that had the change got", rollout)


def test_what_it_started_has_ended(told: str, temporary: Path) -> None:
    (port,) = (int(match) for match in re.findall(r"127\.0\.0\.1 port (\d+)", told))
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 5):
        pass
    assert list(temporary.iterdir()) == []


def test_the_paths_of_its_sockets_are_short_whatever_the_temporary_folder_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        assert run.temporary_folder().parent == Path(folder)
        monkeypatch.setattr(tempfile, "tempdir", f"{folder}/{'long' * 25}")
        other = run.temporary_folder()
        other.rmdir()
        assert other.parent == Path("/tmp")


def test_the_store_of_the_master_has_the_facts(told: str) -> None:
    assert "web01.example.com" in section(told, run.QUERY) and "1 row" in section(told, run.QUERY)

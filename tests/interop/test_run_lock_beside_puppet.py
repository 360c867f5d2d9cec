"""The lock of a run as the real Puppet sees ours, and as we see its."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent.run.lock import RunLock
from tests.support.processes import REAL_PUPPET, clean_environment

pytestmark = [pytest.mark.works_with("Commands and answers of Puppet 7.23", "the lock of a run"), pytest.mark.interop, pytest.mark.slow]

OURS = """
import sys, time
from pathlib import Path
from agent.cli import set_process_title
from agent.run.lock import RunLock
set_process_title("puppet agent")
assert RunLock(Path(sys.argv[1])).acquire()
print("held", flush=True)
time.sleep(60)
"""
IS_LOCKED = "require 'puppet'; puts Puppet::Util::Pidlock.new(ARGV[0]).locked?"
THEIRS = "require 'puppet'; $0 = 'puppet agent'; puts Puppet::Util::Pidlock.new(ARGV[0]).lock; $stdout.flush; sleep 60"


@pytest.fixture
def ruby() -> str:
    found = shutil.which("ruby")
    if found is None or not Path(REAL_PUPPET).exists():
        pytest.skip("the real Puppet is not installed")
    return found


@pytest.mark.smoke
def test_the_real_puppet_respects_our_lock_while_we_live(tmp_path: Path, ruby: str) -> None:
    path = tmp_path / "agent_catalog_run.lock"

    def seen() -> str:
        command = [ruby, "-e", IS_LOCKED, str(path)]
        return subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=60, check=True).stdout.strip()

    with subprocess.Popen([sys.executable, "-c", OURS, str(path)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            assert seen() == "true"
        finally:
            holder.kill()
            holder.wait()
    assert seen() == "false"


def test_we_respect_the_real_puppets_lock_while_it_lives(tmp_path: Path, ruby: str) -> None:
    path = tmp_path / "agent_catalog_run.lock"
    with subprocess.Popen([ruby, "-e", THEIRS, str(path)], stdout=subprocess.PIPE, env=clean_environment()) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"true\n"
            assert not RunLock(path).acquire()
        finally:
            holder.kill()
            holder.wait()
    lock = RunLock(path)
    assert lock.acquire()
    lock.release()

"""Rows of the master's end: a stop ends it in its time, whatever its threads do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from master.service.hard_end import OVERDUE

pytestmark = pytest.mark.slow

# A master's process with a thread that no signal interrupts: it sleeps, computes, or holds the interpreter's lock.
STOPPED = """
import ctypes, logging, os, signal, sys, threading, time
from pathlib import Path
from master.service.hard_end import HardEnd
from shared.process.logqueue import queued

def sleep_long(): time.sleep(600)
def compute_long():
    while True: sum(range(1000))
def do_nothing(): pass
def hold_the_lock(): ctypes.PyDLL(None).sleep(600)

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
with queued(100) as queues:
    end = HardEnd(queues, Path(sys.argv[2]).unlink)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: (end.arm(0.5), stop.set()))
    print("ready", flush=True)
    stop.wait()
    threading.Thread(target=globals()[sys.argv[1]], name="worker_3").start()
"""


def stopped(work: str, folder: Path) -> tuple[int, str]:
    """The exit code and output of such a process, to which TERM is sent."""
    pidfile = folder / "pid"
    pidfile.touch()
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED, work, str(pidfile)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    try:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        os.kill(process.pid, signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait(10)
    return process.returncode, output.decode()


@pytest.mark.parametrize("work", ["sleep_long", "compute_long"])
def test_PRS_04_a_thread_that_nothing_interrupts_does_not_keep_a_stopped_master(work: str, tmp_path: Path) -> None:
    code, output = stopped(work, tmp_path)
    assert code == OVERDUE
    assert "CRITICAL Stopping took too long" in output and f"worker_3 in {work}" in output, output
    assert not (tmp_path / "pid").exists()


def test_PRS_04_a_thread_that_holds_the_interpreters_lock_does_not_either(tmp_path: Path) -> None:
    code, _ = stopped("hold_the_lock", tmp_path)
    assert code == -signal.SIGALRM


def test_PRS_04_a_stop_that_ends_in_time_is_left_alone(tmp_path: Path) -> None:
    code, output = stopped("do_nothing", tmp_path)
    assert (code, output) == (0, "")
    assert (tmp_path / "pid").exists()

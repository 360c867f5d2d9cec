"""Tests take turns: many at once, or one that is alone."""

from __future__ import annotations

import fcntl
import threading
import time
from pathlib import Path

from tests.support.turns import turn

WAIT = 20.0  # seconds


def until_held(path: Path) -> None:
    """Return when somebody holds the lock of a file."""
    for _ in range(int(WAIT / 0.01)):
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
        time.sleep(0.01)
    raise TimeoutError(path)


def test_tests_run_at_the_same_time(tmp_path: Path) -> None:
    with turn(tmp_path, alone=False), turn(tmp_path, alone=False):
        pass


def test_a_lone_test_begins_when_the_others_have_ended_and_no_other_overtakes_it(tmp_path: Path) -> None:
    order: list[str] = []

    def run(name: str, *, alone: bool) -> None:
        with turn(tmp_path, alone=alone):
            order.append(name)

    lone = threading.Thread(target=run, args=("lone",), kwargs={"alone": True})
    later = threading.Thread(target=run, args=("later",), kwargs={"alone": False})
    with turn(tmp_path, alone=False):
        lone.start()
        until_held(tmp_path / "door")
        later.start()
        assert order == []
    for thread in (lone, later):
        thread.join(WAIT)
    assert order == ["lone", "later"]

"""Tests take turns: many at once, or one that is alone."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.turns import turn

HOLD, WAIT = 0.05, 20.0  # seconds


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
        lone.join(HOLD)
        later.start()
        later.join(HOLD)
        assert order == []
    for thread in (lone, later):
        thread.join(WAIT)
    assert order == ["lone", "later"]

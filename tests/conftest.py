"""What holds for every test: somebody waits for the ends of its processes, and logging is afterwards as it was."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.awaited import closed_loops, started_processes, unawaited
from tests.support.fakes import logging_kept

pytest_plugins = ["tests.gate.plugin", "tests.support.guard", "tests.support.postgresql"]

# How long an example takes says how busy the machine is, and nothing of the code. The gate asks the same questions each time, so that
# it is red for a change and never for a new example; the full run asks new ones, and five times as many.
settings.register_profile("full", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("gate", parent=settings.get_profile("full"), max_examples=20, derandomize=True, database=None)
settings.load_profile("gate")

os.umask(0o022)  # Debian 13's accounts have 002, and programs that a group may write to are not trusted


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """A process whose end nobody waited for is this test's fault, and a connection that outlives its loop."""
    with started_processes() as started, closed_loops() as left:
        yield
    assert not unawaited(started), "nobody waited for the ends of these processes"
    assert not left, "these connections outlive their loop"


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    """Commands send the logs of the whole process where they want them, at a level of theirs: the next test hears all again."""
    with logging_kept():
        yield

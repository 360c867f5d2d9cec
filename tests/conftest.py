"""
What holds for every test: it has its turn, somebody waits for the ends of its processes, and logging is afterwards as it was; and what a
run says at its end: how many were skipped, for which reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.awaited import started_processes, unawaited
from tests.support.fakes import logging_kept
from tests.support.turns import turn

# How long an example takes says how busy the machine is, and nothing of the code.
settings.register_profile("any machine", parent=settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Outside of all else, so that waiting for a turn is no part of a test's time."""
    cache = getattr(item.config, "cache", None)
    if cache is None:  # `-p no:cacheprovider`: nobody else can be told of turns
        return (yield)
    with turn(cache.mkdir("turns"), alone=item.get_closest_marker("alone") is not None):
        return (yield)


@pytest.fixture(autouse=True)
def _awaited_processes() -> Iterator[None]:
    """A process whose end nobody waited for is this test's fault; the garbage collector would blame the one that it happens to run in."""
    with started_processes() as started:
        yield
    assert not unawaited(started), "nobody waited for the ends of these processes"


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    """Commands send the logs of the whole process where they want them, at a level of theirs: the next test hears all again."""
    with logging_kept():
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line a reason, the most frequent first; a thousand `s` among the dots tell nobody what is missing."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        place_and_reason = report.longrepr
        reason = place_and_reason[2] if isinstance(place_and_reason, tuple) else str(place_and_reason)
        reasons[reason.removeprefix("Skipped: ")] += 1
    if reasons:
        terminalreporter.section("skipped")
    for reason, count in reasons.most_common():
        terminalreporter.line(f"{count:5} {reason}")

"""
What pytest does for a gate: it begins with the files that take longest, runs one part of several, and writes down what it found.

    --results FILE   outcomes, skips and durations, in JSON
    --part 2/4       the second of four parts that take equally long
    --marked MARK    leave out the files that do not name this mark, which is faster than to collect and deselect their tests
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

from tests.gate.durations import part_of, read_durations, seconds_of_files
from tests.gate.results import Results

CHOOSING = ("slow", "smoke", "alone")
"""The marks by which stages find their tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gate")
    group.addoption("--results", metavar="FILE", type=Path, help="write outcomes, skips and durations to a file, in JSON")
    group.addoption("--part", metavar="K/N", help="run the K-th of N parts that take equally long")
    group.addoption("--marked", metavar="MARK", choices=CHOOSING, help="leave out the files that do not name this mark")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Shared())
    path = config.getoption("--results", None)
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(path))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if hasattr(item.config, "workerinput") and item.get_closest_marker("alone") is not None:
        pytest.fail("this test needs the machine for itself: run it with -n 0 -m alone, and the others with -m 'not alone'", pytrace=False)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    mark = config.getoption("--marked", None)
    is_left_out = mark and collection_path.suffix == ".py" and mark not in collection_path.read_text("utf-8")
    return True if is_left_out else None


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """
    Leave the tests of the part, and put the longest files first.

    A file is in the same part whatever marks are chosen. A test that is alone counts twice: the others share the time of two.
    """
    durations = read_durations()
    _check_marks(items)
    if part := config.getoption("--part", None):
        number, _, parts = part.partition("/")
        lone = {item.nodeid for item in items if item.get_closest_marker("alone") is not None}
        weights = {test: seconds * (1 + (test in lone)) for test, seconds in durations.items()}
        chosen = part_of(seconds_of_files([item.nodeid for item in items], weights), int(number), int(parts))
        left = [item for item in items if _file(item) not in chosen]
        items[:] = [item for item in items if _file(item) in chosen]
        config.hook.pytest_deselected(items=left)
    yield  # the choice by marks
    files = seconds_of_files([item.nodeid for item in items], durations)
    items.sort(key=lambda item: (-files[_file(item)], _file(item)))


def _check_marks(items: list[pytest.Item]) -> None:
    """Refuse a file whose tests have a mark that it does not name: `--marked` would miss them."""
    marks: dict[Path, set[str]] = {}
    for item in items:
        choosing = CHOOSING if item.get_closest_marker("interop") is None else ("smoke",)
        marks.setdefault(item.path, set()).update(name for name in choosing if item.get_closest_marker(name) is not None)
    for path, names in marks.items():
        text = path.read_text("utf-8")
        if unnamed := sorted(name for name in names if name not in text):
            raise pytest.UsageError(f"{path} has to name the mark of its tests: {', '.join(unnamed)}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line a reason of skips, the most frequent first; a gate says it at its end once more, for all stages."""
    reports = terminalreporter.stats.get("skipped", [])
    if not reports:
        return
    terminalreporter.section("skipped")
    for reason, count in Counter(map(reason_of, reports)).most_common():
        terminalreporter.line(f"{count:5} {reason}")


class Shared:
    """Counts the seconds of setting up what tests share: they fall to whichever test asks first, and are not its own."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._is_within = False

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        if fixturedef.scope == "function" or self._is_within:
            return (yield)
        began = time.perf_counter()
        self._is_within = True
        try:
            return (yield)
        finally:
            self._is_within = False
            self._seconds += time.perf_counter() - began

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        report.shared, self._seconds = self._seconds, 0.0  # type: ignore[attr-defined]  # pytest-xdist carries it to the recorder
        return report


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def is_to_be_short(marks: Mapping[str, object]) -> bool:
    """Return whether a test with these marks is neither slow nor left to the full run."""
    return not ("slow" in marks or "full" in marks or ("interop" in marks and "smoke" not in marks))


class Recorder:
    """Hears the reports of all workers, and writes the results at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._results = Results()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        results, test = self._results, report.nodeid
        results.seconds[test] = results.seconds.get(test, 0.0) + report.duration
        if is_to_be_short(report.keywords) and report.when != "teardown":
            results.unmarked[test] = results.unmarked.get(test, 0.0) + report.duration - getattr(report, "shared", 0.0)
        if report.failed:
            results.outcomes["failed" if report.when == "call" else "error"] += 1
        elif report.skipped:
            results.outcomes["skipped"] += 1
            results.skips[reason_of(report)] += 1
        elif report.when == "call":
            results.outcomes["passed"] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._results.outcomes["error"] += 1

    def pytest_sessionfinish(self) -> None:
        self._results.write(self._path)


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return why a test was skipped."""
    place_and_reason = report.longrepr
    reason = place_and_reason[2] if isinstance(place_and_reason, tuple) else str(place_and_reason)
    return reason.removeprefix("Skipped: ")

"""How long tests take, as committed in `durations.json`: runs begin with the longest files, and parts take equally long."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECORDED = Path(__file__).with_name("durations.json")
LEAST = 0.1  # seconds; shorter tests are not recorded one by one
SHORT = 0.01  # seconds that stand for each of them


def read_durations() -> dict[str, float]:
    """Return the recorded seconds by the ids of tests."""
    recorded: dict[str, dict[str, float]] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    return {f"{file}::{name}": seconds for file, names in recorded.items() for name, seconds in names.items()}


def write_durations(seconds: Mapping[str, float]) -> None:
    """
    Record the seconds of tests, sorted, a file and its tests together.

    Those of tests that were not run stay as they are, if their functions still exist.
    """
    every = {**read_durations(), **seconds}
    stale = stale_tests(every)
    by_file: dict[str, dict[str, float]] = {}
    for test, duration in sorted(every.items()):
        if duration >= LEAST and test not in stale:
            file, _, name = test.partition("::")
            by_file.setdefault(file, {})[name] = round(duration, 1)
    RECORDED.write_text(json.dumps(by_file, indent=0) + "\n")


def stale_tests(tests: Iterable[str]) -> set[str]:
    """Return those of tests, by their ids, whose files do not exist or do not define their functions."""
    texts: dict[str, str] = {}
    stale = set()
    for test in tests:
        file, _, name = test.partition("::")
        if file not in texts:
            texts[file] = (ROOT / file).read_text("utf-8") if (ROOT / file).exists() else ""
        *classes, function = name.partition("[")[0].split("::")
        # The only test of a state machine is inherited.
        if (classes[0] if function == "runTest" else f"def {function}(") not in texts[file]:
            stale.add(test)
    return stale


def seconds_of_files(tests: Iterable[str], durations: Mapping[str, float]) -> dict[str, float]:
    """Return how long those tests of each file take, by file."""
    files: dict[str, float] = {}
    for test in tests:
        file = test.partition("::")[0]
        files[file] = files.get(file, 0.0) + durations.get(test, SHORT)
    return files


def part_of(files: Mapping[str, float], number: int, parts: int) -> set[str]:
    """Return the files of one of several parts, numbered from 1. Each file joins the part that is shortest so far, longest files first."""
    loads = [0.0] * parts
    chosen: set[str] = set()
    for file, seconds in sorted(files.items(), key=lambda each: (-each[1], each[0])):
        shortest = loads.index(min(loads))
        loads[shortest] += seconds
        if shortest == number - 1:
            chosen.add(file)
    return chosen

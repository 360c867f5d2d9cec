"""What makes a gate red beside a failed test: tests that are skipped unexpectedly, and slow ones that are not marked so."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from statistics import median

from tests.gate.durations import LEAST, read_durations, write_durations
from tests.gate.record import Record, results_of
from tests.gate.results import Results
from tests.gate.stages import run_pytest

SKIPS = Path(__file__).with_name("skips.json")
"""How many tests of a gate are skipped for which reason, on a machine with all that `.ci/run` installs."""
UNMARKED = 0.25  # seconds on a quiet machine that a test may take without the mark `slow`
NOISE = 3.0  # times that, for a machine that is not quiet
LONGEST = 10


def faults(results: Results, *, is_whole: bool) -> list[str]:
    """
    Return what is wrong though all tests passed, a sentence each.

    `is_whole`: all stages of the gate have run, so that skips can be compared.
    """
    wrong = [f"not marked slow, but takes {seconds:.2f} s: {test}" for test, seconds in slow_unmarked(results)]
    if is_whole:
        wrong += differing_skips(results.skips, Counter(json.loads(SKIPS.read_text())))
    return wrong


def differing_skips(now: Counter[str], committed: Counter[str]) -> list[str]:
    """Return a sentence for each reason by which more or fewer tests are skipped than was committed."""
    return [
        f"{now[reason]} tests are skipped, and {committed[reason]} were to be ({SKIPS.name}): {reason}"
        for reason in sorted(now | committed)
        if now[reason] != committed[reason]
    ]


def slow_unmarked(results: Results) -> list[tuple[str, float]]:
    """
    Return the tests that should be marked slow, with their seconds.

    How slow this machine is now is told by tests whose durations are recorded. What is too long runs once more by itself before it is
    blamed.
    """
    limit = UNMARKED * NOISE * slowness(results.seconds, read_durations())
    suspects = [test for test, seconds in results.unmarked.items() if seconds > limit]
    if not suspects:
        return []
    path = results_of("again")
    print(f"\n{len(suspects)} tests that are not marked slow took more than {limit:.2f} s. They run once more:", flush=True)
    run_pytest("--results", str(path), *suspects)
    again = Results.read(path).unmarked
    return sorted((test, seconds) for test, seconds in again.items() if seconds > limit)


def slowness(now: dict[str, float], recorded: dict[str, float]) -> float:
    """Return how many times as long tests take now as was recorded, in the median; 1 at least, and where nothing can be compared."""
    ratios = [now[test] / seconds for test, seconds in recorded.items() if test in now and seconds >= LEAST]
    return max(1.0, median(ratios)) if ratios else 1.0


def closing(record: Record, *wrong: str) -> str:
    """Return the end of a gate's output: stages, longest tests, skips, what is wrong, and the closing line of all its tests."""
    results = record.results
    lines = ["", "== stages"]
    lines += [f"{seconds:8.0f} s  {stage}" for stage, seconds in record.stages.items()]
    lines += [f"{sum(record.stages.values()):8.0f} s  together"]
    lines += ["", f"== the {LONGEST} longest tests"]
    longest = sorted(results.seconds.items(), key=lambda each: -each[1])[:LONGEST]
    lines += [f"{seconds:8.1f} s  {test}" for test, seconds in longest]
    lines += ["", "== skipped"]
    lines += [f"{count:8}  {reason}" for reason, count in results.skips.most_common()]
    if record.not_made:
        lines += ["", "== could not be made", *record.not_made]
    if wrong:
        lines += ["", "== red", *wrong]
    return "\n".join([*lines, "", results.closing_line(sum(record.stages.values()))])


def accept(record: Record) -> None:
    """Write down the durations and the skips of a whole gate, which its next runs are compared with."""
    results = record.results
    write_durations(results.seconds)
    SKIPS.write_text(json.dumps(dict(sorted(results.skips.items())), indent=2, ensure_ascii=False) + "\n")

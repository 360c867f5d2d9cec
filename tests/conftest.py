"""What every run of the tests says at its end: how many were skipped, for which reasons."""

from __future__ import annotations

from collections import Counter

import pytest


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

"""What work costs, whatever else the machine does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def steps_in(work: Callable[[], object]) -> int:
    """Return how many lines of Python are executed and functions of C are called."""
    steps = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal steps
        steps += event == "line"
        return trace

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal steps
        steps += event == "c_call"

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    return steps

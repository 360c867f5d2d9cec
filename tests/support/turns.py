"""
Turns of tests that several processes run: what is marked `alone` has the machine for itself, since what it measures, or the patience of a
program that it watches, depends on the processors.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Run a test when no lone one runs, a lone one when nothing runs. Whoever waits holds the door, so that nobody overtakes it."""
    with ExitStack() as stack:
        with _locked(folder / "door", fcntl.LOCK_EX):
            stack.enter_context(_locked(folder / "room", fcntl.LOCK_EX if alone else fcntl.LOCK_SH))
        yield


@contextmanager
def _locked(path: Path, kind: int) -> Iterator[None]:
    """Hold the lock of a file. Blocks until it is had."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)

"""The stages of the gate and of the full run: which commands each has, and which tests it chooses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from tests.gate import caches
from tests.gate.record import results_of

PYTHON = sys.executable
WORKERS = os.environ.get("WORKERS") or "auto"
"""For tests that compute. Those that start programs wait for half of their time: three of them share two processors."""


def _parallel(workers: str) -> tuple[str, ...]:
    """The tests of a file stay together, so that they share a server; the plugin puts the longest files first."""
    return ("-n", workers, "--dist", "loadfile", "--no-loadscope-reorder")


COMPUTING = _parallel(WORKERS)
WAITING = _parallel(str((os.cpu_count() or 1) * 3 // 2) if WORKERS == "auto" else WORKERS)
NOT_STATIC = ("--ignore", "tests/test_architecture.py")


@dataclass(frozen=True, slots=True)
class Stage:
    """
    A part of a gate: `commands` run side by side, or pytest with the arguments `tests`.

    `needs_caches`: the caches have to be made before it begins.
    """

    name: str
    summary: str
    commands: tuple[tuple[tuple[str, ...], ...], ...] = ()
    tests: tuple[str, ...] = ()
    needs_caches: bool = False


def _module(*words: str) -> tuple[str, ...]:
    return (PYTHON, "-m", *words)


STATIC = Stage(
    "static",
    "lint, types, architecture",
    commands=(
        (_module("mypy"),),
        (
            _module("ruff", "check", "."),
            _module("ruff", "format", "--check", "."),
            _module("vulture"),
            _module("pytest", "-q", "tests/test_architecture.py"),
        ),
    ),
)
UNIT = Stage(
    "unit",
    "tests of up to a quarter of a second",
    tests=(*COMPUTING, *NOT_STATIC, "-m", "not slow and not interop and not alone and not full"),
)
SLOW = Stage(
    "slow",
    "tests that take longer",
    tests=(*WAITING, *NOT_STATIC, "--marked", "slow", "-m", "slow and not interop and not alone and not full"),
    needs_caches=True,
)
PEERS = Stage(
    "peers",
    "a choice of tests with the real programs",
    tests=(*WAITING, "--marked", "smoke", "-m", "interop and smoke and not alone"),
    needs_caches=True,
)
ALONE = Stage(
    "alone", "tests that need the machine for themselves", tests=("--marked", "alone", "-m", "alone and not interop and not full")
)
STAGES = {stage.name: stage for stage in (STATIC, UNIT, SLOW, PEERS, ALONE)}


def full_stages(part: str) -> list[Stage]:
    """Return the stages of one part of the full run, such as `2/4`; the first part has what is not a test of pytest."""
    every = ("--hypothesis-profile", "full", "--part", part)
    stages = [
        Stage("build", "the packages that tests try", commands=((("make", "deb"),),)),
        Stage("tests", f"all tests, part {part}", tests=(*WAITING, *every, "-m", "not alone"), needs_caches=True),
        Stage("alone", f"all tests that need the machine for themselves, part {part}", tests=(*every, "-m", "alone"), needs_caches=True),
    ]
    if part.startswith("1/"):
        stages.insert(0, STATIC)
        stages.append(Stage("release", "bill of materials, audit", commands=((("make", "sbom", "audit"),),)))
        stages.append(Stage("fuzz", "ten thousand generated questions to both", commands=((_module("tests.fuzz", "--seed", "1"),),)))
    return stages


def run_stage(stage: Stage) -> int:
    """Run a stage, its output shown as it comes, and write the results of its tests. Returns the exit code, 0 when all is green."""
    path = results_of(stage.name)
    path.unlink(missing_ok=True)
    if stage.tests:
        return run_pytest("--durations=10", *stage.tests, "--results", str(path))
    with ThreadPoolExecutor(len(stage.commands)) as pool:
        return max(pool.map(_run_in_turn, stage.commands))


@contextmanager
def prepare(names: Iterable[str]) -> Iterator[Callable[[], list[str]]]:
    """Make caches beside the block. Yields a function that waits for them and returns a line for each that could not be made."""
    making: subprocess.Popen[str] | None = None
    if names:
        argv = [PYTHON, str(caches.ROOT / "tests/gate/caches.py"), *names]
        making = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)

    def wait() -> list[str]:
        nonlocal making
        if making is None:
            return []
        said, _ = making.communicate()
        making = None
        print(said, end="", flush=True)
        return [line for line in said.splitlines() if ": not made" in line]

    try:
        yield wait
    finally:
        if making is not None:
            making.terminate()
            making.wait()


def _run_in_turn(commands: tuple[tuple[str, ...], ...]) -> int:
    for argv in commands:
        done = subprocess.run(argv, cwd=caches.ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print(f"$ {' '.join(argv[2:] if argv[0] == PYTHON else argv)}\n{done.stdout}", end="", flush=True)
        if done.returncode:
            return 1
    return 0


def run_pytest(*arguments: str) -> int:
    """Run pytest in this checkout, and return its exit code; 0 also where a part of the full run has no test of a kind."""
    argv = [*_module("pytest", "-q"), *arguments]
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # each stage reads what one wrote
    code = subprocess.run(argv, cwd=caches.ROOT, env=environ, stdin=subprocess.DEVNULL, check=False).returncode
    return 0 if code == 5 and "--part" in arguments else code

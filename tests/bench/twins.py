"""
Times the uses of modules that the twins are compared by: Debian's `puppet apply` and ours, each on a booted Debian of its own.

Runs alternate. The first one changes what the use is for, and most of its time is that of programs which both start, such as
apt-get; the others find it done.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict

from tests.bench.costs import Cost, median, verdict
from tests.conformance.booted import OURS, Booted
from tests.conformance.sandbox import CLEAN
from tests.twins.twin import PROGRAMS, RUN_SECONDS, WORDS, twin, why_not
from tests.twins.use import Use, read_uses

MUST, AIM = 1 / 1.5, 1 / 2  # of the reference's wall and processor time, in runs that find everything done
COMMANDS = {"theirs": (["/usr/bin/puppet"], {}), "ours": (list(PROGRAMS["ours"]), OURS)}
MEASURED = """\
import json, sys
from dataclasses import asdict
from tests.bench.costs import cost_of
print(json.dumps(asdict(cost_of(sys.argv[2:], json.loads(sys.argv[1])))))
"""


def run(repeat: int, names: Sequence[str] = ()) -> dict[str, object]:
    """Time the uses of these names, or all: the first run, and the median of `repeat` runs after it."""
    if why := why_not():
        print(f"uses of modules on twins are not timed: {why}")
        return {}
    print(f"uses of modules on twins, first run and median of {repeat} after it: seconds, MB; ours and puppet")
    print(f"  {'':<22}{'first: wall':>16}{'processor':>16}{'then: wall':>16}{'processor':>16}{'peak':>12}   ratios of these two")
    found: dict[str, object] = {}
    for use in read_uses(names):
        costs = timed(use, repeat)
        first = {who: runs[0] for who, runs in costs.items()}
        then = {who: _median(runs[1:]) for who, runs in costs.items()}
        ratios = [then["ours"].wall / then["theirs"].wall, then["ours"].cpu / then["theirs"].cpu]
        seconds = [_pair(runs, name) for runs in (first, then) for name in ("wall", "cpu")]
        line = "".join(f"{pair:>16}" for pair in seconds) + f"{then['ours'].peak:>6.0f}{then['theirs'].peak:>6.0f}"
        print(f"  {use.name:<22}{line}   {ratios[0]:.2f} {ratios[1]:.2f} {verdict(max(ratios), MUST, AIM)}", flush=True)
        found[use.name] = {"first": _data(first), "then": _data(then)}
    return found


def timed(use: Use, repeat: int) -> dict[str, list[Cost]]:
    """Return what each run of a use costs on each twin, the first run first."""
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(len(COMMANDS)))  # a machine ends with the thread that started it
        boots = {who: pool.submit(stack.enter_context, twin(use, who)) for who in COMMANDS}
        machines = {who: boot.result() for who, boot in boots.items()}
        costs: dict[str, list[Cost]] = {who: [cost_on(machine, who)] for who, machine in machines.items()}
        if costs["ours"][0].code != costs["theirs"][0].code:
            raise RuntimeError(f"{use.name}: ours ends with {costs['ours'][0].code}, puppet with {costs['theirs'][0].code}")
        for who, machine in machines.items():
            if use.between:
                machine.shell(use.between)
            cost_on(machine, who)  # what a first run leaves to read, such as caches, is read once
        for _ in range(repeat):
            for who, machine in machines.items():
                costs[who].append(cost_on(machine, who))
    return costs


def cost_on(machine: Booted, who: str) -> Cost:
    """Apply the use once and return what that costs."""
    program, environment = COMMANDS[who]
    argv = [sys.executable, "-c", MEASURED, json.dumps(CLEAN | environment), *program, *WORDS]
    done = machine.run(*argv, env=OURS, seconds=RUN_SECONDS)
    if done.returncode:
        raise RuntimeError(done.stdout)
    return Cost(**json.loads(done.stdout))


def _median(runs: list[Cost]) -> Cost:
    wall, cpu, peak = (median(runs, getter) for getter in (lambda cost: cost.wall, lambda cost: cost.cpu, lambda cost: cost.peak))
    return Cost(wall, cpu, peak, runs[-1].code)


def _pair(costs: dict[str, Cost], name: str) -> str:
    return f"{getattr(costs['ours'], name):.2f} / {getattr(costs['theirs'], name):.2f}"


def _data(costs: dict[str, Cost]) -> dict[str, object]:
    return {who: asdict(cost) for who, cost in costs.items()}

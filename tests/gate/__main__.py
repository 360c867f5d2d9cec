"""
Runs the stages of the gate, and of the full run, and says what they found.

    python -m tests.gate STAGE...              run these stages, and stop at the first red one
    python -m tests.gate --begin|--end STAGE... the same as the first or the last of several calls that make one gate
    python -m tests.gate --full [--part 2/4]    everything, or one of several parts that take equally long
    python -m tests.gate --accept               write down the durations and skips of the last gate, to be committed
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.gate import caches, verdict
from tests.gate.record import Record
from tests.gate.stages import STAGES, full_stages, prepare, run_stage


def main() -> int:
    """Run what the command line says. Exit code 0 when all is green, 1 when something is red."""
    options = _options()
    if options.accept:
        verdict.accept(Record.read())
        return 0
    stages = full_stages(options.part) if options.full else [STAGES[name] for name in options.stages]
    record = Record() if options.begin or options.full else Record.read()
    with prepare(caches.CACHES if options.full else caches.GATE if options.begin else ()) as caches_made:
        for stage in stages:
            if stage.needs_caches:
                record.not_made += caches_made()
            print(f"\n== {stage.name}: {stage.summary}", flush=True)
            began = time.monotonic()
            code = run_stage(stage)
            record.stages[stage.name] = time.monotonic() - began
            record.write()
            if code:
                print(verdict.closing(record, f"{stage.name} is red"))
                return 1
    if not (options.end or options.full):
        return 0
    faults = verdict.faults(record.results, is_whole=options.end)
    print(verdict.closing(record, *faults))
    return int(bool(faults))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.gate", description="Run stages of the gate, or the full run.")
    parser.add_argument("stages", nargs="*", choices=[*STAGES, []], metavar="STAGE", help=", ".join(STAGES))
    parser.add_argument("--begin", action="store_true", help="forget the stages before; make the caches that the gate needs")
    parser.add_argument("--end", action="store_true", help="judge all stages since --begin")
    parser.add_argument("--full", action="store_true", help="run everything")
    parser.add_argument("--part", metavar="K/N", default="1/1", help="the K-th of N parts of the full run")
    parser.add_argument("--accept", action="store_true", help="write down the durations and skips of the last gate")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.conformance [--diff] CASES.yaml … [--only ID …]`"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import yaml

from .runner import answer, differs, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance")
    parser.add_argument("cases", nargs="+", type=Path)
    parser.add_argument("--diff", action="store_true", help="say how each failing case differs")
    parser.add_argument("--only", nargs="*", default=None, help="ids; shows the answers in full")
    options = parser.parse_args()
    if options.only is not None:
        for path in options.cases:
            expected = json.loads(path.with_suffix(".expected.json").read_text())
            for case in yaml.safe_load(path.read_text()):
                if case["id"] in options.only:
                    got = answer(case)
                    print(case["manifest"], got.crash, differs(case, expected[case["id"]], got.data) or "as recorded", sep="\n")
        return 0
    failures = 0
    for path in options.cases:
        passed, total, failed, seconds = run(path)
        failures += len(failed)
        print(f"{path.stem}: {passed}/{total} in {seconds:.1f} s")
        for name, why in failed.items():
            print(f"  {name}: {why}" if options.diff else f"  {name}")
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())

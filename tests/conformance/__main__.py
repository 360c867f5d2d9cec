"""
`python -m tests.conformance [--diff] [CASES.yaml …] [--only ID …]`

For each file `name: passed/total` and the ids of the cases that are answered otherwise, with the reason where one is listed in
deviations.yaml or apply/deviations.txt. 0 only if every case passes or is listed there. Cases of `puppet apply` are run by root only.

`python -m tests.conformance --record CASES.yaml …` asks Debian's puppet 7.23 the cases that have no recorded answer, and writes them down.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import yaml

from tests.conformance import applying
from tests.conformance.runner import answer, deviations, differs, recorded, run
from tests.fuzz.oracle import Reference, reference_is_here

LANGUAGE = Path(__file__).parent / "language"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument(
        "cases", nargs="*", type=Path, help="files of cases, with .expected.json beside them; default: all in language/ and apply/"
    )
    parser.add_argument("--diff", action="store_true", help="say how each failing case differs")
    parser.add_argument("--only", nargs="*", default=None, help="ids of cases of the language; shows the answers in full")
    parser.add_argument("--record", action="store_true", help="ask Debian's puppet what has no recorded answer, of the language only")
    options = parser.parse_args()
    if options.record:
        return record(options.cases or sorted(LANGUAGE.glob("*.yaml")))
    apply = [path for path in sorted(applying.FOLDER.glob("*.yaml")) if os.geteuid() == 0 and applying.here(path)]
    files = options.cases or [*sorted(LANGUAGE.glob("*.yaml")), *apply]
    if options.only is not None:
        return show([path for path in files if path.resolve().parent != applying.FOLDER], set(options.only))
    listed, unknown = deviations() | applying.reasons(), 0
    for path in files:
        passed, total, failed, seconds = (applying.run if path.resolve().parent == applying.FOLDER else run)(path)
        print(f"{path.stem}: {passed}/{total} in {seconds:.1f} s")
        ids = {case["id"] for case in yaml.safe_load(path.read_text())}
        for name, why in failed.items():
            reason = listed.get(f"{path.stem}:{name}")
            unknown += reason is None
            shown = f"{name}: {why}" if options.diff else name
            print(f"  {shown} ({reason})" if reason is not None else f"  {shown}")
        for name in listed:
            file, _, case = name.partition(":")
            if file == path.stem and case in ids and case not in failed:
                print(f"  {case} is answered as recorded now: take it out of deviations.yaml")
    return min(unknown, 1)


def record(files: list[Path]) -> int:
    """Write down the answers of Debian's puppet to the cases that have none yet; 1 without that puppet."""
    if not reference_is_here():
        print("Recording needs Debian's puppet-agent 7.23")
        return 1
    for path in files:
        known = recorded(path)
        new = [case for case in yaml.safe_load(path.read_text()) if case["id"] not in known]
        if not new:
            continue
        with Reference(1, modules=None) as reference:
            known |= dict(zip((case["id"] for case in new), reference.answers(new), strict=True))
        path.with_suffix(".expected.json").write_text(json.dumps(known, indent=2, ensure_ascii=False) + "\n")
        print(f"{path.stem}: {', '.join(case['id'] for case in new)}")
    return 0


def show(files: list[Path], wanted: set[str]) -> int:
    """Print cases and how they are answered; 1 if one is not answered as recorded."""
    wrong = 0
    for path in files:
        expected = recorded(path)
        for case in yaml.safe_load(path.read_text()):
            if case["id"] in wanted:
                got = answer(case)
                why = differs(case, expected[case["id"]], got.data)
                wrong += bool(why)
                print(case["manifest"], got.crash, why or "as recorded", sep="\n")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())

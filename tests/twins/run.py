"""
Applies the uses to two identical booted Debians, one by Debian's `puppet apply` and one by ours, and compares what became of both.

    python -m tests.twins.run [USE …] [--kept FOLDER] [--write]

Each use has two machines of its own, which are gone afterwards. See `use.py` for what a use is, `image.sh` for the machines.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.twins import compare
from tests.twins.twin import answer, why_not
from tests.twins.use import Use, read_uses

SHOWN, WIDTH = 40, 600  # of a use's differences; `--kept` has the answers as they are
RESULTS = Path(__file__).parent / "results.yaml"


@dataclass(frozen=True)
class Result:
    """What became of one use: the resources that the reference applied, and all differences."""

    use: Use
    resources: int
    differences: Sequence[str]
    second: str

    @property
    def is_same(self) -> bool:
        """Whether both twins are the same, and the second run is as the use says."""
        return not self.differences


def compare_twins(use: Use, kept: Path | None = None) -> Result:
    """
    Apply a use to both twins and compare them.

    Args:
        kept: A folder of answers; the reference's is taken from it while the use is the same, and both are written there.
    """
    path = kept / f"{use.name}.theirs.json" if kept else None
    stored = json.loads(path.read_text()) if path and path.exists() else {}
    with ThreadPoolExecutor(2) as twins:
        ours = twins.submit(answer, use, "ours")
        theirs = stored if stored.get("digest") == use.digest else twins.submit(answer, use, "theirs").result() | {"digest": use.digest}
        answers = {"theirs": theirs, "ours": ours.result() | {"digest": use.digest}}
    for who, each in answers.items() if kept else ():
        (kept / f"{use.name}.{who}.json").write_text(json.dumps(each, indent=1))  # type: ignore[operator]
    return judged(use, **answers)


def judge_stored(use: Use, kept: Path) -> Result | None:
    """Compare the answers that are in a folder; None: it has none of this use as it is now."""
    paths = {who: kept / f"{use.name}.{who}.json" for who in ("theirs", "ours")}
    if not all(path.exists() for path in paths.values()):
        return None
    answers = {who: json.loads(path.read_text()) for who, path in paths.items()}
    return judged(use, **answers) if all(answer.get("digest") == use.digest for answer in answers.values()) else None


def judged(use: Use, theirs: dict[str, Any], ours: dict[str, Any]) -> Result:
    """Return the result of a use by the answers of both twins."""
    lines = compare.differences(use, theirs, ours)
    second = theirs["runs"][1]
    is_unchanged = second["exit"] == 0
    if is_unchanged != (use.second == "unchanged"):
        lines.append(f"the second run of the reference ends with {second['exit']}, the use says: {use.second}")
    return Result(use, len(theirs["runs"][0].get("resources", ())), lines, use.second)


def write_results(results: Sequence[Result]) -> None:
    """Write what `docs/modules.md` says of the twins."""
    told = {
        each.use.name: {
            "modules": list(each.use.modules),
            "resources": each.resources,
            "same": each.is_same,
            **({"differences": len(each.differences)} if each.differences else {}),
            **({"ignored": sorted(each.use.ignored.values())} if each.use.ignored else {}),
        }
        for each in results
    }
    RESULTS.write_text("# Written by `make twins`; do not edit.\n" + yaml.safe_dump(told, sort_keys=True, width=150))


def main() -> int:
    """Run the uses named, or all; return 1 when something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("uses", nargs="*", help="names of files in tests/twins/uses (default: all)")
    parser.add_argument("--kept", type=Path, help="a folder: keep the answers in it, and take the reference's from there")
    parser.add_argument("--write", action="store_true", help="write results.yaml, which docs/modules.md is made from")
    parser.add_argument("--stored", action="store_true", help="run nothing: compare the answers that are kept")
    options = parser.parse_args()
    if not options.stored and (why := why_not()):
        print(why, file=sys.stderr)
        return 1
    if options.kept:
        options.kept.mkdir(parents=True, exist_ok=True)
    results = []
    for use in read_uses(options.uses):
        began = time.monotonic()
        result = judge_stored(use, options.kept) if options.stored else compare_twins(use, options.kept)
        if result is None:
            print(f"{use.name}: no answers are kept")
            continue
        results.append(result)
        verdict = "same" if result.is_same else f"{len(result.differences)} differences"
        print(f"{use.name}: {result.resources} resources, {verdict}, {time.monotonic() - began:.0f} s", flush=True)
        for line in result.differences[:SHOWN]:
            print(f"    {line[:WIDTH]}", flush=True)
    if options.write:
        write_results(results)
    print(f"{sum(each.is_same for each in results)} of {len(results)} uses are the same on both twins")
    return 0 if all(each.is_same for each in results) else 1


if __name__ == "__main__":
    sys.exit(main())

"""
The recorded cases that change a whole system, through our `puppet apply` in a throw-away Debian (see `sandbox.py`).

`make image` builds the image once per machine, as root.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance import test_apply as recorded
from tests.gate import caches

IMAGE = caches.folder("image")
QUOTED = re.compile(r"(Execution of '\S+).*", re.DOTALL)  # the command's further words and its output need not be the same
HINT = "It needs: "
SMOKE = ("user-with-everything", "package-version-upgrade-and-downgrade", "service-running-and-enabled", "cron-created")


def cases() -> list[Any]:
    found = []
    for path in sorted(recorded.FOLDER.glob("*.yaml")):
        expected = json.loads((recorded.FOLDER / f"{path.stem}.expected.json").read_text())
        found += [
            pytest.param(case, expected[case["id"]], id=f"{path.stem}:{case['id']}", marks=[pytest.mark.smoke] * (case["id"] in SMOKE))
            for case in yaml.load(path.read_text(), yaml.CSafeLoader)
            if case.get("sandbox")
        ]
    return found


def why_not() -> str:
    """Why a sandbox cannot be made here; '' when it can."""
    if os.geteuid() != 0:
        return "mounting needs root"
    if not shutil.which("unshare"):
        return "unshare (util-linux) is missing"
    return "" if (IMAGE / "srv/repo/Packages").exists() else "there is no throw-away Debian here; `make image` builds it"


def comparable(run: dict[str, Any]) -> dict[str, Any]:
    """A run without what follows a quoted command, and without our hints."""
    kept = recorded.comparable({key: value for key, value in run.items() if key != "output"})
    kept["logs"] = [[level, source, QUOTED.sub(r"\1", message)] for level, source, message in kept["logs"] if not message.startswith(HINT)]
    for entry in kept.get("resources", {}).values():
        for event in entry.get("events", ()):
            event["message"] = QUOTED.sub(r"\1", event["message"])
    return kept


def in_sandbox(given: bytes, *words: str) -> Any:
    """What `sandbox.py` answers, from a mount namespace of its own."""
    program = ["unshare", "--mount", "--propagation", "private", sys.executable, "-m", "tests.conformance.sandbox", str(IMAGE)]
    done = subprocess.run([*program, *words], input=given, capture_output=True, cwd=Path(__file__).parents[2], timeout=900, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return json.loads(done.stdout)


def compare(case: dict[str, Any], wanted: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What we answer and what was recorded, both without what need not be the same."""
    got = in_sandbox(json.dumps(case).encode())
    runs = zip(got["runs"], wanted["runs"], strict=True)
    got["runs"] = [recorded.as_refusal(recorded.without_hints(run, other), other) for run, other in runs]
    for answer in (got, wanted):
        answer["runs"] = [comparable(run) for run in answer["runs"]]
    for run, other in zip(got["runs"], wanted["runs"], strict=True):
        if "status" not in run:  # it came to nothing: what we say beyond the reference's message is what to try
            run["logs"] = run["logs"][: len(other["logs"])]
    return got, wanted


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.parametrize(("case", "wanted"), cases())
def test_a_system_is_changed_as_recorded(case: dict[str, Any], wanted: dict[str, Any]) -> None:
    got, expected = compare(case, json.loads(json.dumps(wanted)))
    if case["id"] in recorded.DEVIATIONS:
        assert got != expected, f"{case['id']} is answered as recorded now: take it out of deviations.txt"
    else:
        assert got == expected


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.parametrize("type_name", ["package", "user", "group", "service"])
def test_what_exists_in_a_system_is_listed_as_the_real_puppet_lists_it(type_name: str) -> None:
    real, ours = (yaml.load(text, yaml.CSafeLoader)[type_name] for text in in_sandbox(b"", "resource", type_name))
    assert ours == real
    assert len(ours) > 1

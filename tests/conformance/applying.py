"""The recorded cases of `puppet apply`, run one file at a time for `python -m tests.conformance`."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.conformance import test_apply as recorded

FOLDER = recorded.FOLDER


def reasons() -> dict[str, str]:
    """Why a case (`FILE:ID`) is knowingly answered otherwise."""
    files = {case["id"]: path.stem for path in FOLDER.glob("*.yaml") for case in here(path)}
    return {f"{files[name]}:{name}": line.partition(": ")[2] for name, line in recorded.DEVIATIONS.items() if name in files}


def here(path: Path) -> list[dict[str, Any]]:
    """The cases of a file but for those that need a machine of their own, which `test_sandbox.py` runs."""
    return [each for each in yaml.load(path.read_text(), yaml.CSafeLoader) if not each.get("sandbox")]


def run(path: Path) -> tuple[int, int, dict[str, str], float]:
    """Passed, total, what differs by id, and seconds."""
    expected = json.loads(path.with_suffix(".expected.json").read_text())
    cases = here(path)
    compiler, start = recorded.Compiler(), time.perf_counter()
    failed: dict[str, str] = {}
    with _as_recorded():
        for case in cases:
            with tempfile.TemporaryDirectory() as folder:
                got = asyncio.run(recorded.record(case, recorded.Scratch(Path(folder)), compiler))
            why = differs(expected[case["id"]], got)
            if why:
                failed[case["id"]] = why
    return len(cases) - len(failed), len(cases), failed, time.perf_counter() - start


def differs(wanted: dict[str, Any], got: dict[str, Any]) -> str:
    """Where an answer is not the recorded one; '' when it is."""
    for number, (one, two) in enumerate(zip(map(recorded.comparable, wanted["runs"]), got["runs"], strict=True), 1):
        for key in sorted({*one, *two}):
            if one.get(key) != two.get(key):
                return f"run {number}, {key}\n  wanted {one.get(key)}\n  got    {two.get(key)}"
    if "state" in wanted and wanted["state"] != got.get("state"):
        return f"state\n  wanted {wanted['state']}\n  got    {got.get('state')}"
    return ""


@contextmanager
def _as_recorded() -> Iterator[None]:
    """The time zone and the mask of files that the cases were recorded with."""
    zone, mask = os.environ.get("TZ"), os.umask(0o022)
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        os.umask(mask)
        os.environ.pop("TZ") if zone is None else os.environ.update(TZ=zone)
        time.tzset()

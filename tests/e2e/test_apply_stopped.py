"""`puppet apply` that is told to end while it applies."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shared.data import plainyaml
from tests.support.processes import clean_environment

pytestmark = pytest.mark.slow
CHECKOUT = Path(__file__).parents[2]
MANIFEST = """
exec { 'first': command => ['/bin/sh', '-c', 'touch ROOT/begun; sleep 1; touch ROOT/first'] }
-> exec { 'second': command => ['/bin/touch', 'ROOT/second'] }
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_current_resource_ends_and_the_rest_is_skipped(number: signal.Signals, tmp_path: Path) -> None:
    where = [f"--confdir={tmp_path}", f"--vardir={tmp_path}/var", f"--logdir={tmp_path}/log", f"--rundir={tmp_path}/run"]
    process = subprocess.Popen(
        [sys.executable, "-m", "bunraku.puppet", "apply", *where, "-e", MANIFEST.replace("ROOT", str(tmp_path))],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=CHECKOUT,
        env=clean_environment(),
    )
    try:
        end = time.monotonic() + 60
        while not (tmp_path / "begun").exists() and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert f"Caught {number.name.removeprefix('SIG')}; exiting" in out.decode()
    assert process.returncode == 1
    assert (tmp_path / "first").exists() and not (tmp_path / "second").exists()
    summary = plainyaml.loads((tmp_path / "var/public/last_run_summary.yaml").read_bytes())
    assert summary["resources"]["changed"] == 1 and summary["resources"]["skipped"] >= 1

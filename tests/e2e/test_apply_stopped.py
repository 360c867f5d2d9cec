"""`puppet apply` that is told to end while it applies."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shared.data import plainyaml
from tests.support.processes import clean_environment
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow
CHECKOUT = Path(__file__).parents[2]
MANIFEST = """
exec { 'first': command => ['/bin/sh', '-c', 'touch ROOT/begun; until test -e ROOT/may_end; do sleep 0.1; done; touch ROOT/first'] }
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
        wait_until((tmp_path / "begun").exists)
        process.send_signal(number)
        assert process.stdout is not None
        caught = f"Caught {number.name.removeprefix('SIG')}; exiting".encode()
        assert any(caught in line for line in process.stdout)
        (tmp_path / "may_end").touch()
        process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()

    assert process.returncode == 1
    assert (tmp_path / "first").exists() and not (tmp_path / "second").exists()
    summary = plainyaml.loads((tmp_path / "var/public/last_run_summary.yaml").read_bytes())
    assert summary["resources"]["changed"] == 1 and summary["resources"]["skipped"] >= 1

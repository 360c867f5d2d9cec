"""`puppet apply` that is told to end while it applies."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shared.data import plainyaml
from tests.support.needs import needs_ruby
from tests.support.processes import clean_environment
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow
MODULES = Path(__file__).parents[1] / "bunraku" / "ruby_modules"
CHECKOUT = Path(__file__).parents[2]
MANIFEST = """
exec { 'first': command => ['/bin/sh', '-c', 'touch ROOT/begun; until test -e ROOT/may_end; do sleep 0.1; done; touch ROOT/first'] }
-> exec { 'second': command => ['/bin/touch', 'ROOT/second'] }
"""


@contextmanager
def applying(root: Path, manifest: str) -> Iterator[subprocess.Popen[bytes]]:
    """`puppet apply`, which has written the file `begun`."""
    where = [f"--confdir={root}", f"--vardir={root}/var", f"--logdir={root}/log", f"--rundir={root}/run", f"--modulepath={MODULES}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "bunraku.puppet", "apply", *where, "-e", manifest.replace("ROOT", str(root))],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=CHECKOUT,
        env=clean_environment(),
    )
    try:
        wait_until((root / "begun").exists)
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_current_resource_ends_and_the_rest_is_skipped(number: signal.Signals, tmp_path: Path) -> None:
    with applying(tmp_path, MANIFEST) as process:
        process.send_signal(number)
        assert process.stdout is not None
        caught = f"Caught {number.name.removeprefix('SIG')}; exiting".encode()
        assert any(caught in line for line in process.stdout)
        (tmp_path / "may_end").touch()
        process.communicate(timeout=60)

    assert process.returncode == 1
    assert (tmp_path / "first").exists() and not (tmp_path / "second").exists()
    summary = plainyaml.loads((tmp_path / "var/public/last_run_summary.yaml").read_bytes())
    assert summary["resources"]["changed"] == 1 and summary["resources"]["skipped"] >= 1


@needs_ruby
@pytest.mark.parametrize("place", ["create", "check"])  # the second is asked by the event loop's thread
def test_ruby_that_hangs_is_not_waited_for(place: str, tmp_path: Path) -> None:
    first = f"wild {{ 'first': how => 'begin and hang', at => '{place}' }}"
    manifest = f"Wild {{ ensure => present, folder => 'ROOT' }} {first} -> wild {{ 'second': }}"
    with applying(tmp_path, manifest) as process:
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == 1 and b"Ruby was ended while it was asked, as the run stops" in printed
    assert not (tmp_path / "second").exists()

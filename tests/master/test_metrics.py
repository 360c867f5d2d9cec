"""What is counted and measured, in the words of Prometheus."""

from __future__ import annotations

import ast
import asyncio
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ca import audit
from ca.audit import ACTIONS
from master.observability.metrics import (
    LAG_EVERY,
    WINDOW,
    LongestInWindow,
    Metrics,
    ProcessorWaits,
)
from master.observability.process_metrics import describe_process
from shared import __version__
from tests.support.waiting import advance, turns, until

DEBIAN = "/usr/bin/python3"


def test_methods_that_nobody_knows_are_one() -> None:
    metrics = Metrics()
    for method in ("BREW", "WHEN", "GET"):
        metrics.count_answer("unknown", method, 405, 0.001)
    metrics.count_answer("node", "GET", 0, 0.001)
    counted = [line for line in metrics.text().splitlines() if line.startswith("puppet_requests_total")]
    assert [line for line in counted if not line.endswith(" 0")] == [
        'puppet_requests_total{indirection="node",method="GET",status="none"} 1',
        'puppet_requests_total{indirection="unknown",method="GET",status="405"} 1',
        'puppet_requests_total{indirection="unknown",method="other",status="405"} 2',
    ]


def test_the_ca_is_counted_by_what_it_did_and_what_it_refused() -> None:
    metrics = Metrics()
    for result in ("done", "stored", "refused: no such name", "refused: weak key", "Puppet::SSL::Certificate"):
        metrics.count_decision({"action": "sign", "result": result})
    assert 'puppet_ca_actions_total{action="sign",result="done"} 3' in metrics.text()
    assert 'puppet_ca_actions_total{action="sign",result="refused"} 2' in metrics.text()


def test_a_master_begins_at_0_with_what_agents_and_alerts_ask_for() -> None:
    metrics = Metrics()
    metrics.start_ca(ACTIONS)
    lines = metrics.text().splitlines()
    for line in (
        'puppet_requests_total{indirection="catalog",method="POST",status="500"} 0',
        'puppet_request_seconds_count{indirection="report",method="PUT"} 0',
        'puppet_compile_seconds_count{outcome="failed"} 0',
        'puppet_ca_actions_total{action="sign",result="refused"} 0',
        "puppet_loop_lag_seconds_count 0",
    ):
        assert line in lines


def test_the_actions_of_the_ca_are_those_that_it_tells_of() -> None:
    calls = re.compile(r'(?:\bentry|self\.report|_report)\(\s*"([a-z-]+)"|action(?:: str)? ?= ?"([a-z-]+)"')
    told = {
        a or b
        for path in Path(audit.__file__).parent.rglob("*.py")
        if "commands" not in path.parts
        for a, b in calls.findall(path.read_text())
    }
    assert told == set(ACTIONS)


def test_the_process_is_told_of_by_the_names_that_prometheus_has_for_it() -> None:
    metrics = Metrics()
    describe_process(metrics)
    booted = int(re.findall(r"^btime (\d+)$", Path("/proc/stat").read_text(), re.MULTILINE)[0])
    started = number(metrics, "process_start_time_seconds") - booted
    assert 0 < started <= float(Path("/proc/uptime").read_text().split()[0])
    assert number(metrics, "process_cpu_seconds_total") > 0
    assert 2**20 < number(metrics, "process_resident_memory_bytes") <= number(metrics, "process_virtual_memory_bytes")
    open_before = number(metrics, "process_open_fds")
    with Path("/dev/null").open():
        assert number(metrics, "process_open_fds") == open_before + 1
    assert open_before < number(metrics, "process_max_fds")
    assert f'puppet_build_info{{version="{__version__}",python="' in metrics.text()


def number(metrics: Metrics, name: str) -> float:
    return next(float(line.split()[1]) for line in metrics.text().splitlines() if line.split()[0] == name)


LATE = ("puppet_loop_lag_longest_seconds", "puppet_loop_block_longest_seconds", "puppet_loop_busy_longest_seconds")


async def held_up(waits: Callable[[], float] | None = None, busy: float = 0.0) -> Metrics:
    """What is measured of a loop that was 0.3 s late once, in which its thread had a processor for `busy` seconds."""
    seconds, processor = [1000.0], [7.0]
    metrics = Metrics(clock=lambda: seconds[0])
    watching = asyncio.create_task(metrics.watch_loop(waits, lambda: processor[0]))
    await turns(1)
    seconds[0] += LAG_EVERY + 0.3
    processor[0] += busy
    advance(LAG_EVERY)
    await turns(3)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    return metrics


async def test_a_loop_that_was_held_up_is_late() -> None:
    metrics = await held_up(lambda: 5.0, busy=0.01)
    assert 'puppet_loop_lag_seconds_bucket{le="0.25"} 0' in metrics.text()
    assert "puppet_loop_lag_seconds_count 1" in metrics.text()
    assert [number(metrics, name) for name in LATE] == pytest.approx([0.3, 0.3, 0.01])


async def test_a_wait_for_a_processor_makes_a_loop_late_and_is_no_block() -> None:
    waits = iter((5.0, 5.2))
    metrics = await held_up(lambda: next(waits), busy=0.1)
    assert [number(metrics, name) for name in LATE] == pytest.approx([0.3, 0.1, 0.1])


async def test_without_other_clocks_the_kernel_says_how_long_a_loop_waited_and_worked() -> None:
    metrics = Metrics()
    watching = asyncio.create_task(metrics.watch_loop())
    await until(lambda: "puppet_loop_lag_seconds_count 2" in metrics.text())
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    lag, block, busy = (number(metrics, name) for name in LATE)
    assert 0 <= block <= lag
    assert 0 <= busy <= lag


def test_waits_for_a_processor_only_grow_and_where_nobody_counts_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = ProcessorWaits()
    before = waits()
    assert 0 <= before <= waits()
    waits.close()

    def no_such_file(*arguments: object) -> int:
        raise FileNotFoundError

    monkeypatch.setattr("os.open", no_such_file)
    unknown = ProcessorWaits()
    assert unknown() == 0
    unknown.close()


def test_the_longest_is_forgotten_after_a_window_or_two() -> None:
    longest = LongestInWindow()
    longest.observe(0.5, at=1000)
    longest.observe(0.1, at=1000 + WINDOW * 0.5)
    assert longest.of(1000 + WINDOW * 0.9) == 0.5
    longest.observe(0.2, at=1000 + WINDOW * 1.1)
    assert longest.of(1000 + WINDOW * 1.2) == 0.5
    assert longest.of(1000 + WINDOW * 2.2) == 0.2
    assert longest.of(1000 + WINDOW * 10) == 0


@pytest.mark.slow
def test_prometheus_own_client_reads_the_text() -> None:
    program = "import sys; from prometheus_client.parser import text_string_to_metric_families as read\n"
    program += "print(sorted((f.name, f.type, len(f.samples)) for f in read(sys.stdin.read())))"
    if subprocess.run([DEBIAN, "-c", "import prometheus_client.parser"], capture_output=True, timeout=60, check=False).returncode:
        pytest.skip("Debian's python3-prometheus-client is not installed")
    metrics = Metrics()
    metrics.count_answer("node", "GET", 200, 0.01)
    metrics.lag.observe(0.02)
    metrics.read("odd_things", "gauge", "Odd.", lambda: [(('a"b\\c\nd',), 1e9 + 0.5)], "name")
    text = metrics.text()
    done = subprocess.run([DEBIAN, "-c", program], input=text, text=True, capture_output=True, timeout=60, check=False)
    found = {name: (kind, count) for name, kind, count in ast.literal_eval(done.stdout)}
    assert found["puppet_requests"] == ("counter", text.count("\npuppet_requests_total{"))
    assert found["puppet_request_seconds"] == ("histogram", text.count("\npuppet_request_seconds_"))
    assert found["puppet_loop_lag_seconds"][0] == "histogram"
    assert found["odd_things"] == ("gauge", 1)

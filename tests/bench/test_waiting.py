"""The fleet of `make bench BENCH="--only waiting"`: what an agent that waits costs, and how many run at the same time."""

from __future__ import annotations

import pytest

from tests.bench import waiting

pytestmark = [pytest.mark.full, pytest.mark.alone]


def test_a_thousand_agents_that_wait_cost_little_and_run_so_many_at_a_time() -> None:
    found = waiting.run(1000)
    assert found["waiting_kb"] <= 8
    assert found["most"] == waiting.CONCURRENCY

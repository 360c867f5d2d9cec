"""The soak itself, for some seconds: so short that growth tells nothing, but everything is done and looked at."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.soak.standing import SLACK, grown
from tests.support.balancer import PROGRAM
from tests.support.needs import needs_git
from tests.support.postgresql import postgresql_programs
from tests.support.processes import clean_environment, run

OPTIONS = {"seconds": 24, "warmup": 4, "agents": 3, "requests": 100, "growth": 900, "restart-agents": 4, "restarts": 1}
FIRST = ("compiling processes killed", "connections cut in the middle", "HUP")  # the others need root or a C compiler


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.full
def test_a_short_soak_does_all_that_it_can_here_and_finds_nothing_lost() -> None:
    options = [part for name, value in OPTIONS.items() for part in (f"--{name}", str(value))]
    done = run([sys.executable, str(Path(__file__).parent / "run.py"), *options], clean_environment(), timeout=300)
    assert done.code == 0, done.text
    for fault in FIRST:
        assert re.search(rf"[1-9]\d* × {fault}", done.text), done.text
    for row in ("R-17", "R-21"):
        assert re.search(rf"{row} .* ok ", done.text), done.text
    assert re.search(r"every report that was taken is there and readable +ok +[1-9]", done.text), done.text
    assert "all went well" in done.text


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.full
@needs_git
@pytest.mark.skipif(not (PROGRAM and postgresql_programs()), reason="haproxy or PostgreSQL's server is not installed")
def test_a_short_soak_of_masters_on_one_database_finds_nothing_lost() -> None:
    program = str(Path(__file__).parent / "masters.py")
    # A busy machine may take longer than a second to notice a revocation.
    options = ("--seconds", "90", "--agents", "20", "--interval", "10", "--revoked-within", "5")
    done = run([sys.executable, program, *options], clean_environment(), timeout=600)
    assert done.code == 0, done.text
    for fault in ("a master killed", "a master stands still", "PostgreSQL is stopped"):
        assert re.search(rf"[1-9]\d* × {fault}", done.text), done.text
    assert re.search(r"no run of two versions, no wrong answer +ok +[1-9]\d* runs, [1-9]\d* deployments", done.text), done.text
    assert re.search(r"no revoked agent is served +ok +[1-9]", done.text), done.text
    assert "all went well" in done.text


@pytest.mark.parametrize(("before", "after", "more"), [(100, 105, False), (100, 106, True), (3, 5, False), (3, 6, True)])
def test_growth_is_more_than_a_share_and_more_than_a_few_pieces(before: float, after: float, more: bool) -> None:
    assert grown(dict.fromkeys(SLACK, 0.0) | {"tasks": before}, dict.fromkeys(SLACK, 0.0) | {"tasks": after}) == (["tasks"] if more else [])

"""`puppet apply` with the modules of tests that have types, providers and facts in Ruby."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.ruby.process import RubyProcess
from shared.ruby import RubyChild
from tests.support.command_line import Puppet, Said

MODULES = Path(__file__).parents[1] / "bunraku" / "ruby_modules"

Apply = Callable[..., Said]


def use_few_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands gather a few constant facts."""

    async def few_facts(host: object, sources: object) -> dict[str, Any]:
        return {"os": {"family": "Debian"}, "kernel": "Linux"}

    monkeypatch.setattr("bunraku.catalogs.compilation.gather", few_facts)
    monkeypatch.setattr("agent.facts.facter.gather", few_facts)


@pytest.fixture
def apply(puppet: Puppet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Apply:
    """Applies a manifest; what the modules' providers manage is below the test's folder."""
    use_few_facts(monkeypatch)
    monkeypatch.setenv("HEAPS", str(tmp_path / "heaps.yaml"))
    monkeypatch.setenv("LINES_FILE", str(tmp_path / "lines"))
    monkeypatch.setenv("GUESTS", str(tmp_path / "guests"))
    for name in ("SHELF", "CRATES", "LAMPS"):
        monkeypatch.setenv(name, str(tmp_path))
    return lambda code, *words: puppet("apply", "--color=false", "--modulepath", str(MODULES), *words, "-e", code)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[RubyChild]:
    """The processes of Ruby that were started."""
    children: list[RubyChild] = []
    start = RubyProcess._started

    def noted(process: RubyProcess) -> RubyChild:
        children.append(start(process))
        return children[-1]

    monkeypatch.setattr(RubyProcess, "_started", noted)
    return children

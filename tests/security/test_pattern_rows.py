"""Rows about patterns outside compiles: at the agent, which is root, and in what a peer searches for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.process.agent import RunOptions
from agent.providers.augeas.commands import compare_values
from agent.providers.file_line.ruby import is_in_sync
from agent.providers.service.base import parse_processes
from bunraku.commands.agent import resolver
from environments.directories import Environments, EnvironmentSettings
from environments.listings.resource_types import ResourceTypes
from shared.errors import BadRequest, EvaluationError, PuppetError
from shared.pattern_timeout import PATTERN_TIMEOUT
from shared.ral import Param, Type
from shared.ral.core import TitlePatterns
from shared.types.file_line import FileLine
from tests.support.pair import Pair

RUNAWAY = "^(a|aa)+$"
LONG = "a" * 60 + "!"


@pytest.mark.slow
async def test_PAT_02_a_deferred_pattern_that_tries_for_ever_fails_its_resource_and_the_rest_is_applied(tmp_path: Path) -> None:
    manifest = f"""
    file {{ '{tmp_path}/runaway': content => Deferred('regsubst', ['{LONG}', '{RUNAWAY}', 'x']) }}
    file {{ '{tmp_path}/lines': content => "{LONG}\\n" }}
    -> file_line {{ 'line': path => '{tmp_path}/lines', line => 'x', match => '{RUNAWAY}' }}
    file {{ '{tmp_path}/plain': content => 'plain' }}
    """
    pair = Pair(tmp_path, manifest=manifest)
    async with pair.mastered():
        ran = await pair.run(RunOptions(deferring=resolver), pattern_timeout=1, preprocess_deferred=False)
    assert ran.report is not None
    assert (tmp_path / "plain").read_text() == "plain"
    assert not (tmp_path / "runaway").exists()
    assert sorted(ref for ref, status in ran.report.resource_statuses.items() if status.failed) == [
        f"File[{tmp_path}/runaway]",
        "File_line[line]",
    ]
    lines = [line.message for line in ran.report.logs if line.level == "err"]
    assert sum("takes longer than pattern_timeout (1 seconds)" in line for line in lines) >= 2


class Zone(Type, name="zone_of_row"):
    """A type as a module's author writes it, with patterns that try for ever on some values."""

    name = Param(str, namevar=True, doc="Name.")
    word = Param(str, match=RUNAWAY, doc="A value of which the pattern has many ways.")


class Titled(Type, name="titled_of_row"):
    """A type whose title is split by a pattern that tries for ever on some titles."""

    name = Param(str, namevar=True, doc="Name.")

    @classmethod
    def title_patterns(cls) -> TitlePatterns:
        return [(RUNAWAY, ["name"])]


AT_THE_AGENT: dict[str, Callable[[], object]] = {
    "the lines of a file": lambda: is_in_sync(FileLine("x", {"path": "/x", "line": "y", "match": RUNAWAY}), [LONG]),
    "a pattern of processes": lambda: parse_processes(f"{LONG} 10", f"{RUNAWAY[:-1]} $", own=1),
    "a comparison of augeas": lambda: compare_values(LONG, "=~", RUNAWAY),
    "a value that a type checks": lambda: Zone("x", {"word": LONG}),
    "a title that a type splits": lambda: Titled(LONG, {}),
}


@pytest.mark.parametrize("what", AT_THE_AGENT)
def test_PAT_03_a_pattern_of_a_catalog_or_a_type_ends_with_its_budget(what: str) -> None:
    PATTERN_TIMEOUT.set(0.02)
    with pytest.raises(PuppetError, match="takes longer than pattern_timeout") as caught:
        AT_THE_AGENT[what]()
    assert LONG not in str(caught.value)


def test_PAT_04_a_pattern_that_a_peer_searches_for_is_its_own_fault(tmp_path: Path) -> None:
    manifest = tmp_path / "environments/production/manifests/site.pp"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(f"class {'a' * 60}_ {{ }}")
    types = ResourceTypes(Environments(EnvironmentSettings((str(tmp_path / "environments"),))), lambda level, text: None)
    PATTERN_TIMEOUT.set(0.02)
    with pytest.raises(BadRequest, match="takes longer than pattern_timeout") as caught:
        types.search("production", RUNAWAY, "")
    assert isinstance(caught.value.__cause__, EvaluationError)

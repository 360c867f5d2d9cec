"""Deferred values: resolved by our agent from what its master synced and from the functions that need no catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.process.agent import RunOptions
from bunraku.commands.agent import resolver
from tests.support.pair import Pair

pytestmark = pytest.mark.slow

FUNCTION = """
from pathlib import Path
from language.functions import Context, Sensitive, function

@function("vault::secret", "String path", "Sensitive salt")
def secret(context: Context, path: str, salt: Sensitive) -> Sensitive:
    return Sensitive(Path(path).read_text().strip() + salt.unwrap())
"""
MANIFEST = """
file { 'ROOT/secret': content => Deferred('vault::secret', ['ROOT/vault', Sensitive('-salt')]), show_diff => true }
file { 'ROOT/text': content => Deferred('inline_epp', ['<%= $x %> on <%= $facts["kernel"] %>', { 'x' => Deferred('upcase', ['a']) }]) }
file { 'ROOT/no': content => Deferred('include', ['x']) }
file { 'ROOT/neither': content => Deferred('nosuch::function', []) }
file { 'ROOT/plain': content => 'plain' }
"""


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    (tmp_path / "vault").write_text("hidden\n")
    pair = Pair(tmp_path, manifest=MANIFEST.replace("ROOT", str(tmp_path)))
    pair.write("code/environments/production/modules/vault/lib/puppet/functions/vault/secret.py", FUNCTION)
    return pair


async def test_they_are_resolved_on_the_agent_and_a_function_that_is_not_there_fails_its_resource(pair: Pair) -> None:
    async with pair.mastered():
        ran = await pair.run(RunOptions(deferring=resolver), preprocess_deferred=False)
    assert ran.report is not None
    assert (pair.root / "secret").read_text() == "hidden-salt"
    assert (pair.root / "text").read_text() == "A on Linux"
    assert (pair.root / "plain").read_text() == "plain"
    assert not any("hidden" in line.message for line in ran.report.logs)
    failed = {ref: status.events[0].message for ref, status in ran.report.resource_statuses.items() if status.failed}
    assert sorted(failed) == [f"File[{pair.root}/neither]", f"File[{pair.root}/no]"]
    assert "Unknown function: 'include'" in str(failed[f"File[{pair.root}/no]"])
    assert "Unknown function: 'nosuch::function'" in str(failed[f"File[{pair.root}/neither]"])


async def test_resolved_before_the_run_one_that_cannot_be_stops_it(pair: Pair) -> None:
    async with pair.mastered():
        ran = await pair.run(RunOptions(deferring=resolver))
    assert ran.report is not None
    assert (ran.code, ran.report.resource_statuses, (pair.root / "plain").exists()) == (1, {}, False)
    assert [line.message for line in ran.report.logs if "Failed to apply catalog: Unknown function: 'include'" in line.message]


async def test_an_agent_without_functions_says_so(pair: Pair) -> None:
    async with pair.mastered():
        ran = await pair.run()
    assert ran.report is not None
    assert (ran.code, (pair.root / "plain").exists(), (pair.root / "secret").exists()) == (1, False, False)
    (line,) = [line.message for line in ran.report.logs if line.level == "err"]
    assert "Deferred values cannot be resolved by this agent" in line
    assert "Start it as `puppet agent`" in line

"""Types and providers that modules have in Ruby: synced by our agent from our master, and applied where there is a ruby and no Puppet."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
import yaml

from agent.process.agent import Agent, RunOptions
from tests.support.needs import needs_ruby
from tests.support.pair import Pair
from tests.support.waiting import until

pytestmark = [pytest.mark.slow, needs_ruby]

SHELF = Path(__file__).parents[1] / "bunraku" / "ruby_modules" / "shelf"
MANIFEST = """
file {{ '{root}/shelf': ensure => directory }}
jar {{ '{root}/shelf:plums': content => 'plums', colour => 'red', parts => ['b', 'a'] }}
notify {{ 'after': require => Jar['{root}/shelf:plums'] }}
"""


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    shutil.copytree(SHELF, tmp_path / "master/code/environments/production/modules/shelf")
    return Pair(tmp_path, manifest=MANIFEST.format(root=tmp_path))


async def test_the_first_run_makes_what_the_second_finds(pair: Pair) -> None:
    jar = f"Jar[{pair.root}/shelf:plums]"
    async with pair.mastered():
        first = await pair.run()
        assert first.report is not None
        assert [event.message for event in first.report.resource_statuses[jar].events] == ["created"]
        assert yaml.safe_load((pair.root / "shelf" / "plums").read_text()) == {"content": "PLUMS", "colour": "red", "parts": ["b", "a"]}
        assert first.report.resource_statuses["Notify[after]"].changed

        (pair.root / "shelf" / "plums").write_text("content: pears\nparts: [a, b]\ncolour: red\n")
        second = await pair.run()
        assert second.report is not None
        messages = [event.message for event in second.report.resource_statuses[jar].events]
        assert messages == ["content changed <pears> to <PLUMS> (corrective)"]


async def test_a_value_that_a_type_in_ruby_refuses_stops_the_run_and_is_reported(pair: Pair) -> None:
    path = pair.root / "before"
    code = f"file {{ '{path}': content => 'x' }} jar {{ '{pair.root}/shelf:refused': colour => 'pink' }}"
    pair.write("code/environments/production/manifests/site.pp", code)
    async with pair.mastered():
        ran = await pair.run()
    assert ran.report is not None
    assert (ran.report.status, ran.report.resource_statuses, path.exists()) == ("failed", {}, False)
    (error,) = [entry.message for entry in ran.report.logs if entry.level == "err"]
    assert error.startswith(f"Failed to apply catalog: Parameter colour failed on Jar[{pair.root}/shelf:refused]: Invalid value")


async def test_without_a_ruby_only_resources_of_these_types_fail(pair: Pair) -> None:
    async with pair.mastered():
        ran = await pair.run(ruby="")
        assert ran.report is not None
        statuses = ran.report.resource_statuses
        assert statuses[f"Jar[{pair.root}/shelf:plums]"].failed
        assert statuses["Notify[after]"].skipped
        assert (pair.root / "shelf").is_dir()
        errors = [entry.message for entry in ran.report.logs if entry.level == "err" and entry.source == "Puppet"]
        assert len(errors) == 1
        assert "jar" in errors[0]
        assert "ruby" in errors[0]


@pytest.mark.parametrize("place", ["create", "validate"])
async def test_ruby_fetches_files_from_the_master(place: str, pair: Pair) -> None:
    how = "fetch puppet:///modules/shelf/greeting"
    code = f"wild {{ 'a': ensure => present, folder => '{pair.root}', at => '{place}', how => '{how}' }}"
    pair.write("code/environments/production/manifests/site.pp", code)
    async with pair.mastered():
        ran = await pair.run()
        assert ran.report is not None
        assert ran.report.status == "changed"
        assert [log.message for log in ran.report.logs if "fetched" in log.message] == ['fetched "hello \\xFF\\n"']


async def test_an_agent_that_stops_does_not_wait_for_a_provider_that_hangs(pair: Pair) -> None:
    wild = f"Wild {{ ensure => present, folder => '{pair.root}' }}"
    pair.write("code/environments/production/manifests/site.pp", f"{wild} wild {{ 'a': how => 'begin and hang' }} -> wild {{ 'b': }}")
    async with pair.mastered():
        agent = Agent(pair.agent_settings(), RunOptions(), tell=lambda text: None)
        running = asyncio.create_task(agent.run_once())
        await until((pair.root / "begun").exists)
        agent.stopping = True
        await running
    assert agent.report is not None
    statuses = agent.report.resource_statuses
    assert statuses["Wild[a]"].failed and statuses["Wild[b]"].skipped

"""Modules that bring termini and indirections of their own, in Python, served by a running master."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from shared.errors import ConfigError
from tests.support.pair import NAME, Pair, client_of
from tests.support.raw_master import RawAnswer

pytestmark = pytest.mark.slow

WEATHER = '''
"""What one sees from the window."""

from shared.indirector import Indirection, Model, Request, Terminus
from shared.indirector.plugins import PluginContext


class Weather(Model):
    sky: str
    seen_by: str


INDIRECTION = Indirection(name="weather", plural="weathers", model=Weather, options=frozenset({"season"}))


class Window(Terminus[Weather]):
    def __init__(self, context: PluginContext) -> None:
        self.host = context.settings["certname"]

    async def find(self, request: Request[Weather]) -> Weather | None:
        if request.key == "moon":
            return None
        return Weather(name=request.key, sky="snow" if request.option("season") == "winter" else "blue", seen_by=self.host)

    async def search(self, request: Request[Weather]) -> list[Weather]:
        return [Weather(name=name, sky="blue", seen_by=self.host) for name in ("here", "there")]
'''
NODES = '''
"""Nodes from the site's own inventory."""

from shared.indirector import Request, Terminus
from shared.indirector.plugins import PluginContext
from shared.models.node import Node


class Inventory(Terminus[Node]):
    def __init__(self, context: PluginContext) -> None:
        pass

    async def find(self, request: Request[Node]) -> Node | None:
        return Node(name=request.key, classes={"role": {"text": f"inventory knows {request.key}"}})
'''
SPOOL = '''
"""Reports for a program that runs beside the agent."""

from pathlib import Path

from shared.indirector import Request, Terminus
from shared.indirector.plugins import PluginContext
from shared.indirector.termini import Yaml
from shared.models.report import Report


class Spool(Yaml[Report]):
    def __init__(self, context: PluginContext) -> None:
        super().__init__(context.indirection, Path(context.settings["vardir"]) / "spool")
'''
ROLE = "class role ($text) { file { 'ROOT/role': content => $text } }"
MODULES = "code/environments/production/modules"


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    pair = Pair(tmp_path, manifest="")
    pair.write("auth.conf", "path /weather\nmethod find, search\nallow *\n")
    pair.write(f"{MODULES}/weather/lib/puppet/indirector/weather/window.py", WEATHER)
    pair.write(f"{MODULES}/weather/lib/puppet/indirector/weather/window.rb", "raise 'for Ruby'\n")
    pair.write(f"{MODULES}/inventory/lib/puppet/indirector/node/inventory.py", NODES)
    pair.write(f"{MODULES}/role/manifests/init.pp", ROLE.replace("ROOT", str(pair.root)))
    return pair


async def get(pair: Pair, *targets: str) -> list[RawAnswer]:
    client = await client_of(pair)
    try:
        return [await client.ask("GET", target, Accept="pson, json, yaml") for target in targets]
    finally:
        await client.close()


async def test_an_indirection_of_a_module_is_served_in_both_schemes(pair: Pair) -> None:
    async with pair.mastered():
        await pair.run()
        answers = await get(
            pair,
            "/production/weather/here?season=winter&unknown=x",
            "/puppet/v3/weather/here?environment=production",
            "/production/weathers/x",
            "/production/weather/moon",
        )
        assert [answer.status for answer in answers] == [200, 200, 200, 404]
        found, modern, listed, _ = (json.loads(answer.body) if answer.status == 200 else None for answer in answers)
        assert found == {"name": "here", "sky": "snow", "seen_by": "localhost"}
        assert modern["sky"] == "blue"
        assert [each["name"] for each in listed] == ["here", "there"]


async def test_without_a_rule_it_is_closed_as_all_others(pair: Pair) -> None:
    (pair.root / "master" / "auth.conf").unlink()
    async with pair.mastered():
        await pair.run()
        answers = await get(pair, "/production/weather/here", "/puppet/v3/weather/here?environment=production")
        assert [answer.status for answer in answers] == [403, 403]


@pytest.mark.parametrize("chosen", ["setting", "routes"])
async def test_a_node_terminus_of_a_module_classifies(pair: Pair, chosen: str) -> None:
    if chosen == "routes":
        pair.write("routes.yaml", "master:\n  node:\n    terminus: inventory\n")
    async with pair.mastered(**({"node_terminus": "inventory"} if chosen == "setting" else {})):
        ran = await pair.run()
    assert ran.code == 2
    assert (pair.root / "role").read_text() == f"inventory knows {NAME}"


async def test_without_either_the_module_has_no_say(pair: Pair) -> None:
    async with pair.mastered():
        ran = await pair.run()
    assert ran.code == 0
    assert not (pair.root / "role").exists()


async def test_an_agent_uses_a_terminus_that_came_with_the_plugins(pair: Pair) -> None:
    pair.write(f"{MODULES}/spool/lib/puppet/indirector/report/spool.py", SPOOL)
    async with pair.mastered():
        assert (await pair.run()).code == 0
        (pair.root / "agent" / "routes.yaml").write_text("agent:\n  report:\n    cache: spool\n")
        assert (await pair.run()).code == 0
        assert len(pair.reports()) == 2
    spooled = pair.root / "agent" / "var" / "spool" / f"{NAME}.yaml"
    assert "Puppet::Transaction::Report" in spooled.read_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "\nimport nonsense_that_is_not_there",
            r"Could not load the terminus inventory of node: ModuleNotFoundError: .*inventory\.py, line: 2",
        ),
        ("x = 1", "must define one subclass of Terminus, not 0"),
        (None, "There is no terminus inventory for node"),
    ],
)
async def test_a_terminus_that_cannot_be_made_stops_the_start_with_its_name(pair: Pair, text: str | None, words: str) -> None:
    path = pair.root / "master" / MODULES / "inventory/lib/puppet/indirector/node/inventory.py"
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        async with pair.mastered(node_terminus="inventory"):
            pass
    assert re.search(words, str(caught.value))
    assert not (path.parent / "__pycache__").exists()

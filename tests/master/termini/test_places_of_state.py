"""Facts and nodes: the same from files and from the masters' database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from master.bindings import facts_factories, facts_place, node_factories
from master.termini.registry import built_in_terminus
from master.termini.state import StateTermini
from shared.errors import BadName, ConfigError
from shared.indirector import Binding, Request
from shared.models.facts import FACTS, Facts
from shared.models.node import NODE, Node
from shared.settings import MasterSettings, load
from shared.state.masters import SharedState

PLACES = [pytest.param("files", id="files"), pytest.param("postgresql", id="postgresql")]


@pytest.fixture(params=PLACES)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> MasterSettings:
    """The settings of a master whose state is in files, or in PostgreSQL."""
    place = "files" if request.param == "files" else request.getfixturevalue("state_url")
    return load(MasterSettings, section="master", flags={"confdir": str(tmp_path), "vardir": str(tmp_path), "state": place})


@pytest.fixture
async def state(settings: MasterSettings) -> AsyncIterator[SharedState | None]:
    """What a master shares with others; None with files."""
    shared = SharedState.at(settings.state)
    yield shared
    if shared is not None:
        await shared.database.close()


@pytest.fixture
def facts(settings: MasterSettings, state: SharedState | None) -> Binding[Facts]:
    return Binding(FACTS, built_in_terminus("facts", facts_factories(settings, state=StateTermini(settings, state)), facts_place(settings)))


@pytest.fixture
def nodes(settings: MasterSettings, state: SharedState | None) -> Binding[Node]:
    return Binding(
        NODE, built_in_terminus("node", node_factories(settings, state=StateTermini(settings, state)), settings.place_of_state("yaml"))
    )


VALUES: list[dict[str, Any]] = [
    {},
    {"a": {"b": [1, 2.5, None, True]}, "ä €": "\u0000 \U0001f600"},
    {"large": ["x" * 1000] * 200},
    {"number": 2**70},
]


@pytest.mark.parametrize("values", VALUES, ids=["none", "of all kinds", "large", "a large number"])
async def test_facts_are_found_as_they_were_saved(facts: Binding[Facts], values: dict[str, Any]) -> None:
    await facts.save(Facts(name="n", values=values, timestamp="2026-11-28T06:00:00+00:00"))
    found = await facts.find("n")
    assert found is not None and (found.values, found.timestamp) == (values, "2026-11-28T06:00:00+00:00")
    assert await facts.head("n") and not await facts.head("other") and await facts.find("other") is None


async def test_the_last_facts_of_a_node_count(facts: Binding[Facts]) -> None:
    for number in (1, 2, 1):
        await facts.save(Facts(name="n", values={"a": number}))
        found = await facts.find("n")
        assert found is not None and found.values == {"a": number}


async def test_facts_are_searched_by_conditions(facts: Binding[Facts]) -> None:
    for name, uptime in (("b", "20"), ("a", "30"), ("c", "1")):
        await facts.save(Facts(name=name, values={"uptime": uptime}))
    found = await facts.search("x", options={"facts.uptime.gt": "5"})
    assert [node.name for node in found or ()] == ["a", "b"]


async def test_facts_that_are_destroyed_are_gone_and_say_whether_they_were_there(facts: Binding[Facts]) -> None:
    await facts.save(Facts(name="n", values={"a": 1}))
    assert [await facts.destroy("n"), await facts.destroy("n")] == [1, None]
    assert await facts.find("n") is None


async def test_no_name_leads_elsewhere(facts: Binding[Facts]) -> None:
    with pytest.raises(BadName):
        await facts.save(Facts(name="../n", values={}))
    with pytest.raises(BadName):
        await facts.find("../n")


async def test_a_node_is_found_as_it_was_saved(nodes: Binding[Node]) -> None:
    node = Node(name="n", environment="test", classes={"a": None, "b": {"x": [1]}}, parameters={"p": "1"})
    await nodes.save(node)
    found = await nodes.find("n")
    assert found is not None and found.model_copy(update={"expiration": None}) == node
    assert await nodes.head("n") and await nodes.destroy("n") and await nodes.find("n") is None


async def test_a_record_of_nodes_is_no_cache(settings: MasterSettings, state: SharedState | None) -> None:
    record: Any = node_factories(settings, state=StateTermini(settings, state))[f"write_only_{settings.place_of_state('yaml')}"]()
    await record.save(Request("n", body=Node(name="n", environment="test")))
    last = await record.last("n")
    assert last is not None and last.environment == "test"
    assert await record.find(Request("n")) is None


async def test_a_terminus_on_a_database_needs_one(tmp_path: Path) -> None:
    settings = load(MasterSettings, section="master", flags={"confdir": str(tmp_path)})
    with pytest.raises(ConfigError, match="the setting state names none"):
        facts_factories(settings)["postgresql"]()


@pytest.mark.parametrize("settings", PLACES[1:], indirect=True)
async def test_facts_that_are_as_they_were_write_nothing(facts: Binding[Facts], state: SharedState | None) -> None:
    assert state is not None
    same = Facts(name="n", values={"a": 1}, timestamp="2026-11-28T06:00:00+00:00")
    await facts.save(same)
    statements: list[int] = []
    event.listen(state.database._engine, "after_cursor_execute", lambda *args: statements.append(args[1].rowcount))
    await facts.save(same)
    assert statements == [0]
    await facts.save(same.model_copy(update={"values": {"a": 2}}))
    assert statements == [0, 1]

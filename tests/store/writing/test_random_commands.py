"""Random commands in random batches leave what a model of dictionaries says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, update

from store.commands.commands import Command, ConfigureExpiration, DeactivateNode, Json
from store.database.engine import Database
from store.database.tables import metadata, nodes
from store.writing.writer import DatabaseWriter
from tests.support.examples import examples
from tests.support.store_commands import catalog_command, facts_command, inputs_command, received, report_command
from tests.support.store_model import StoreModel, in_order, stored_nodes

NODES = st.sampled_from(["a.example.com", "b.example.com"])
TIMES = st.integers(1, 6)
ENVIRONMENTS = st.sampled_from(["production", "dev", None])
LEAVES = st.sampled_from([None, True, 1, 1.5, "", 'quo"te', "ü", 2**53 + 1])
VALUES: st.SearchStrategy[Json] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["k", 'a"b', "c.d"]), inner, max_size=2),
    max_leaves=4,
)
TITLES = ["/a", "/b", "/c"]
PACKAGES = [("nginx", "1", "apt"), ("nginx", "2", "apt"), ("rake", "1", "gem")]


@st.composite
def catalogs(draw: st.DrawFn) -> Command:
    files = draw(st.dictionaries(st.sampled_from(TITLES), st.dictionaries(st.sampled_from(["mode", "owner"]), LEAVES, max_size=2)))
    pairs = [(source, target) for source in files for target in files]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return catalog_command(draw(TIMES), files, node=draw(NODES), environment=draw(ENVIRONMENTS), edges=edges)


COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(
        facts_command,
        TIMES,
        st.dictionaries(st.sampled_from(["kernel", "os", "disks"]), VALUES),
        node=NODES,
        environment=ENVIRONMENTS,
        packages=st.lists(st.sampled_from(PACKAGES), unique=True).map(lambda them: tuple(sorted(them))),
    ),
    catalogs(),
    st.builds(inputs_command, TIMES, st.sampled_from(TITLES), node=NODES),
    st.builds(
        report_command, TIMES, st.sampled_from(TITLES), node=NODES, type=st.sampled_from(["agent", "plan"]), environment=ENVIRONMENTS
    ),
    st.builds(DeactivateNode, NODES, TIMES),
    st.builds(ConfigureExpiration, NODES, TIMES, st.booleans()),
)
EXPIRIES = st.tuples(NODES, TIMES)
"""A node that expires, and when."""


def empty(connection: Connection) -> None:
    for table in reversed(metadata.sorted_tables):
        connection.execute(delete(table))


async def check(url: str, steps: Sequence[Sequence[Command] | tuple[str, int]]) -> None:
    """Carry out the batches and expiries, and compare what is stored after each of them with the model."""
    model = StoreModel()
    database = Database.open(url)
    try:
        await database.write(empty)
        writer = DatabaseWriter(database)
        for step in steps:
            if isinstance(step, tuple):
                certname, at = step
                expiry = update(nodes).where(nodes.c.certname == certname).values(expired=at)
                await database.write(lambda connection, expiry=expiry: connection.execute(expiry))
                if certname in model.nodes:
                    model.nodes[certname].expired = at
            else:
                await writer.write(received(*step))
                for command in step:
                    model.carry_out(command)
            assert await database.write(stored_nodes) == in_order(model)
    finally:
        await database.close()


@pytest.mark.slow
@given(steps=st.lists(st.lists(COMMANDS, min_size=1, max_size=5) | EXPIRIES, min_size=1, max_size=8))
@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
def test_random_commands_leave_what_the_model_says(database_url: str, steps: list[list[Command] | tuple[str, int]]) -> None:
    asyncio.run(check(database_url, steps))

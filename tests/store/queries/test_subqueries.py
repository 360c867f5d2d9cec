"""A question that may reach its own entity only is refused when it asks any other one."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from shared.errors import Denied
from store.database.engine import Database
from store.jsontext import Json
from store.queries.questions import Question
from store.queries.service import QueryService

SECRETS: Json = ["and", ["=", "certname", "web2.example.com"], ["~", "value", "^SECRET"]]
SUBQUERIES: list[Json] = [
    ["in", "certname", ["from", "facts", ["extract", "certname", SECRETS]]],
    ["in", ["certname"], ["extract", ["certname"], ["select_facts", SECRETS]]],
    ["subquery", "facts", SECRETS],
    ["subquery", "facts"],
    ["not", ["or", ["=", "certname", "x"], ["in", "certname", ["from", "facts", ["extract", "certname"]]]]],
    ["extract", "certname", ["subquery", "resources", ["=", "title", "x"]]],
    ["extract", [["function", "count"]], ["and", ["in", "certname", ["from", "nodes", ["extract", "certname"]]]], ["group_by", "certname"]],
    ["in", "certname", ["from", "nosuch"]],
]


@pytest.mark.parametrize("entity", ["nodes", "facts", "factsets", "inventory", "resources", "reports", "events"])
@pytest.mark.parametrize("query", SUBQUERIES, ids=str)
async def test_PDB_13_no_subquery_leaves_the_entity(recorded: Database, entity: str, query: Json) -> None:
    with pytest.raises(Denied, match="Permission denied: a client without a rule for /pdb/query/v4 may ask no subqueries"):
        QueryService(recorded).ast(Question(entity, query, subqueries=False))


async def test_PDB_13_all_else_may_be_asked(recorded: Database) -> None:
    query: Json = ["and", ["in", "certname", ["array", ["web1.example.com"]]], ["~", ["fact", "kernel"], "."], ["=", "node_state", "any"]]
    answer = await QueryService(recorded).answer(Question("nodes", query, subqueries=False))
    async with aclosing(answer.batches) as batches:
        assert len([row async for batch in batches for row in batch]) == 1

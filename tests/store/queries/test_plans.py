"""How a database goes about a question, which `explain=analyze` asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from store.database.engine import Database
from store.queries.questions import Paging, QueryLimits, QueryRefused, Question
from store.queries.service import QueryService

QUESTIONS: tuple[Question, ...] = (
    Question("nodes"),
    Question("nodes", ["=", "certname", "web1.example.com"], Paging(limit=1, order_by=(("certname", True),))),
    Question(None, 'inventory[certname] { facts.os.family = "Debian" and resources { type = "Class" and title ~ "^N" } }'),
    Question("reports", ["extract", [["function", "count"], "status"], ["group_by", "status"]]),
    Question("fact_contents", ["~>", "path", ["networking", ".*"]]),
    Question("catalogs"),
)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: str(question.entity))
async def test_a_plan_names_the_tables_and_has_no_rows_of_the_answer(service: QueryService, recorded: Database, question: Question) -> None:
    (plan,) = await service.plans(question)
    assert isinstance(plan, dict) and list(plan) == ["query plan"]
    steps: Any = plan["query plan"]
    text = json.dumps(steps)
    if recorded.dialect == "postgresql":
        assert "Actual Total Time" in steps[0]["Plan"] and "Relation Name" in text
    else:
        assert steps and "Detail" in steps[0] and ("SCAN" in text or "SEARCH" in text)


async def test_what_is_no_query_has_no_plan(service: QueryService) -> None:
    with pytest.raises(QueryRefused, match="'nope' is not a queryable object"):
        await service.plans(Question("nodes", ["=", "nope", 1]))


async def test_a_question_that_takes_too_long_has_no_plan_on_postgresql(recorded: Database) -> None:
    query: Any = ["~", "value", "x"]
    for _ in range(3):
        query = ["and", ["~", "value", "a|e"], ["in", "name", ["extract", "name", ["select_fact_contents", query]]]]
    slow = Question("fact_contents", ["in", "name", ["extract", "name", ["select_facts", ["not", query]]]])
    if recorded.dialect == "sqlite":  # which plans it only
        assert await QueryService(recorded, QueryLimits(timeout=0.001)).plans(slow)
    else:
        with pytest.raises(QueryRefused, match="takes longer than"):
            await QueryService(recorded, QueryLimits(timeout=0.001)).plans(slow)

"""What is sent to break the store is refused, or answered like any other question."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from shared.errors import BadRequest
from store.commands.commands import ReceivedCommand
from store.commands.payloads import parse_payload
from store.database import functions
from store.database.engine import Database
from store.database.functions import MatchBudget
from store.queries.questions import Paging, QueryLimits, Question
from store.queries.service import QueryService
from store.writing.writer import DatabaseWriter

INJECTIONS = (
    "'", "''", "';--", "' OR '1'='1", "\" OR \"\"=\"", "'; DROP TABLE nodes; --", "\\'; DROP TABLE nodes; --", "%27", "$1", ":name", "%s",
    "%(name)s", "?", "??", "{}", "{0}", "a' UNION SELECT sql FROM sqlite_master --", "$$; SELECT pg_sleep(9); $$", "E'\\x00'", "\\", "\\\\",
    "/* */", "--", "`", "[certname]", "]", "certname\" --", "'||(SELECT version())||'", "::jsonb", "@>", "\n", "\x1a", "\ufeff", "𝕊",
)  # fmt: skip
"""Texts that would mean something if they were pasted into a statement."""

PLACES: tuple[tuple[str, Any], ...] = (
    ("nodes", lambda text: ["=", "certname", text]),
    ("nodes", lambda text: ["=", text, "x"]),
    ("nodes", lambda text: ["~", "certname", text]),
    ("nodes", lambda text: ["in", "certname", ["array", [text, "b"]]]),
    ("nodes", lambda text: ["=", ["fact", text], "x"]),
    ("nodes", lambda text: ["=", ["fact", "kernel"], text]),
    ("nodes", lambda text: [text, "certname", "x"]),
    ("nodes", lambda text: ["extract", [text]]),
    ("nodes", lambda text: ["extract", [["function", text, "certname"]]]),
    ("nodes", lambda text: ["extract", [["function", "count", text]]]),
    ("nodes", lambda text: ["extract", [["function", "to_string", "report_timestamp", text]]]),
    ("nodes", lambda text: ["extract", ["certname", ["function", "count"]], ["group_by", text]]),
    ("nodes", lambda text: ["subquery", text, ["=", "certname", "x"]]),
    ("nodes", lambda text: ["in", "certname", ["extract", text, ["select_facts", ["=", "name", "x"]]]]),
    ("nodes", lambda text: ["=", "report_timestamp", text]),
    ("facts", lambda text: ["=", "value", text]),
    ("facts", lambda text: ["=", "value", {text: [text]}]),
    ("fact_contents", lambda text: ["=", "path", [text, 0]]),
    ("fact_contents", lambda text: ["~>", "path", [text, 0]]),
    ("inventory", lambda text: ["=", f'facts."{text}".a', 1]),
    ("inventory", lambda text: ["extract", [f'facts."{text}"', f'facts.os."{text}"']]),
    ("inventory", lambda text: ["~", f'facts.match("{text}").a', "x"]),
    ("resources", lambda text: ["=", ["parameter", text], "x"]),
    ("resources", lambda text: ["~", ["parameter", "ensure"], text]),
    ("resources", lambda text: ["=", f'parameters."{text}"', "x"]),
    ("resources", lambda text: ["=", "tag", text]),
    ("events", lambda text: ["=", "containment_path", text]),
    ("events", lambda text: ["=", "new_value", text]),
)  # fmt: skip


async def outcome(service: QueryService, question: Question) -> list[Any] | str:
    """Return the rows of an answer, or the text with which it is refused."""
    try:
        answer = await service.answer(question)
        return [row async for batch in answer.batches for row in batch]
    except BadRequest as err:
        return err.message


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(PLACES)))
async def test_PDB_01_texts_are_never_part_of_a_statement(service: QueryService, place: int) -> None:
    entity, query_with = PLACES[place]
    for text in INJECTIONS:
        answer = await outcome(service, Question(entity, query_with(text)))
        assert answer != "The database cannot answer this query", text
        if isinstance(answer, str):
            assert "syntax" not in answer.lower()
            assert "SELECT" not in answer.replace(text, "")
    assert len(await outcome(service, Question("nodes"))) == 12


@pytest.mark.parametrize("name", ["'; DROP TABLE nodes; --", "certname desc", "1", "c0", 'certname" --'])
async def test_PDB_01_names_of_orders_are_looked_up_among_the_fields(service: QueryService, name: str) -> None:
    answer = await outcome(service, Question("nodes", None, Paging(order_by=((name, False),))))
    assert str(answer).startswith("Unrecognized column")


def nested(operator: str, depth: int) -> Any:
    query: Any = ["=", "certname", "a"]
    for _ in range(depth):
        query = [operator, query, ["=", "certname", "b"]] if operator != "not" else ["not", query]
    return query


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["and", "or", "not"])
@pytest.mark.parametrize("depth", [50, 95, 200, 5_000])
async def test_PDB_02_deep_queries_are_answered_or_refused(service: QueryService, operator: str, depth: int) -> None:
    answer = await outcome(service, Question("nodes", nested(operator, depth)))
    assert isinstance(answer, list) == (depth < 99)


@pytest.mark.slow
async def test_PDB_02_queries_within_queries_are_answered_to_some_depth(service: QueryService) -> None:
    query: Any = ["=", "certname", "web1.example.com"]
    for _ in range(8):
        query = ["in", "certname", ["from", "nodes", ["extract", "certname", query]]]
    assert len(await outcome(service, Question("nodes", query))) == 1
    for _ in range(30):
        query = ["in", "certname", ["from", "nodes", ["extract", "certname", query]]]
    assert isinstance(await outcome(service, Question("nodes", query)), str)


async def test_a_text_of_many_names_is_answered(service: QueryService) -> None:
    names = [f"node{number}.example.com" for number in range(2000)]
    query = f"nodes[certname] {{ certname in {json.dumps([*names, 'web1.example.com'])} }}"
    answer = await service.answer(Question(None, query))
    assert [row async for batch in answer.batches for row in batch] == [{"certname": "web1.example.com"}]


@pytest.mark.slow
async def test_PDB_03_queries_with_many_criteria_are_answered_or_refused(service: QueryService) -> None:
    names = [["=", "certname", f"node{number}"] for number in range(20_000)]
    assert await outcome(service, Question("nodes", ["or", *names])) == []
    different = [["=", "latest_report_hash", "a"], ["~", "certname", "a"]] * 900
    assert len(await outcome(service, Question("nodes", ["or", *different]))) > 0
    assert "criteria" in await outcome(service, Question("nodes", ["or", *different, *different]))
    values = await outcome(service, Question("nodes", ["in", "certname", ["array", ["a"] * 100_001]]))
    assert values == "The lists of a query have at most 100000 values"


@pytest.mark.slow
@pytest.mark.parametrize("number", [2**31, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**30, 10**400, 1e308, -1e308, 5e-324])
async def test_PDB_03_numbers_of_any_size_are_compared(service: QueryService, number: float) -> None:
    for operator in ("=", "<", ">="):
        for entity, place in (
            ("facts", "value"),
            ("resources", "line"),
            ("inventory", "facts.uptime_seconds"),
            ("nodes", ["fact", "uptime_seconds"]),
            ("fact_paths", "depth"),
        ):
            rows = await outcome(service, Question(entity, [operator, place, number]))
            assert isinstance(rows, list), rows
            if operator == ">=" and number > 10**16:
                assert rows == []
    assert isinstance(await outcome(service, Question("resources", ["=", ["parameter", "port"], number])), list)
    assert isinstance(await outcome(service, Question("facts", ["in", "value", ["array", [number, 1]]])), list)


async def test_numbers_that_no_page_has_are_refused(service: QueryService) -> None:
    answer = await outcome(service, Question(None, ["from", "nodes", ["limit", 2**63]]))
    assert answer == f"Illegal value '{2**63}' for :limit; expected a positive non-zero integer."


RUNAWAYS = ["(a+)+$", "(a|a)*$", "(a|aa)+$", "(.*a){25}$", "(x?){60}x{60}", "^((a+)+b?)+$"]
LONG = "a" * 60 + "!"
"""What these patterns do not match, which takes some matchers longer than anybody lives."""


@pytest.fixture
async def runaway_values(database: Database) -> Database:
    """A database in which many nodes have a fact that patterns run away on, as its name, in its path and as its value."""
    commands = []
    for number in range(40):
        facts = {"certname": f"n{number}", "environment": "e", "producer": "m", "producer_timestamp": "2026-01-01T00:00:00Z"}
        payload = json.dumps({**facts, "values": {LONG: LONG, "tree": {LONG: {"deeper": number}}}}).encode()
        command = parse_payload("replace facts", 5, payload, 1_767_225_600_000_000)
        assert command is not None
        commands.append(ReceivedCommand(command, 1_767_225_600_000_000))
    await DatabaseWriter(database).write(commands)
    return database


@pytest.mark.slow
@pytest.mark.parametrize("pattern", RUNAWAYS)
async def test_PDB_04_regular_expressions_that_run_away_are_stopped(
    runaway_values: Database, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions, "MATCH_TIMEOUT", 0.1)
    service = QueryService(runaway_values, QueryLimits(timeout=0.5))
    places: list[tuple[str, Any]] = [
        ("facts", ["~", "value", pattern]),
        ("facts", ["~", "name", pattern]),
        ("fact_contents", ["~>", "path", ["tree", pattern, "deeper"]]),
        ("inventory", ["=", f'facts.tree.match("{pattern}").deeper', 1]),
    ]
    for entity, query in places:
        async with asyncio.timeout(60):
            rows = await outcome(service, Question(entity, query))
        assert isinstance(rows, list) or "too long" in rows or "takes longer than 0.5 seconds" in rows, rows


RUNAWAY = ("(a|aa)+$", LONG)


def test_PDB_04_the_slow_matches_of_a_transaction_have_a_budget_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MATCH_TIMEOUT", 0.05)
    monkeypatch.setattr(functions, "MATCHES_TIMEOUT", 0.2)
    budget = MatchBudget()
    for _ in range(10):  # the first of them shows only that the processor's time has to be looked at
        with pytest.raises(TimeoutError):
            budget.regexp(*RUNAWAY)
    with pytest.raises(TimeoutError):
        budget.regexp("b", "abc")
    budget.renew(600)
    assert [budget.regexp("b", "abc"), budget.regexp("x", "abc"), budget.regexp(None, "abc"), budget.regexp("x", None)] == [
        1,
        0,
        None,
        None,
    ]
    budget.renew(0.01)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            budget.regexp(*RUNAWAY)
    with pytest.raises(TimeoutError):
        budget.regexp("b", "abc")


@pytest.mark.parametrize(
    "query", [["=", "certname", "a\0b"], ["~", "certname", "\0"], ["=", ["fact", "a"], ["\0"]], ["=", "certname", "\ud800"]]
)
async def test_characters_that_no_database_takes_are_refused(service: QueryService, query: Any) -> None:
    assert str(await outcome(service, Question("nodes", query))).startswith("A query must not contain")


@pytest.mark.parametrize(
    "query",
    [
        "text",
        5,
        True,
        {"a": 1},
        [[]],
        [None],
        [["="]],
        ["=", ["certname"], "a"],
        ["=", {}, "a"],
        ["not"],
        ["in", "certname"],
        ["in", [], ["array", []]],
        ["extract"],
        ["extract", {}],
        ["extract", [["function"]]],
        ["extract", [[]]],
        ["subquery"],
        ["~", "certname", 5],
        ["=", "certname", 5],
        ["=", ["fact", 5], 1],
        ["group_by", "a"],
        ["from", "nodes"],
        ["in", "certname", ["extract", [], ["select_facts"]]],
        ["in", "certname", ["from", "facts"]],
        ["null?", ["fact"], True],
    ],
)
async def test_what_is_no_query_is_refused(service: QueryService, query: Any) -> None:
    assert isinstance(await outcome(service, Question("nodes", query)), str)


@pytest.mark.parametrize("entity", ["facts", "resources", "reports"])
async def test_PDB_03_long_lists_of_values_are_answered_soon(service: QueryService, entity: str) -> None:
    field = {"facts": "value", "resources": "line", "reports": "noop"}[entity]
    values: list[Any] = [True, False] if field == "noop" else [*range(1, 20_000), 2**70]
    async with asyncio.timeout(30):
        answer = await outcome(service, Question(entity, ["extract", [["function", "count"]], ["in", field, ["array", values]]]))
    assert isinstance(answer, list), answer


async def test_PDB_03_rows_are_sorted_by_a_bounded_number_of_fields(service: QueryService) -> None:
    question = Question("facts", None, Paging(order_by=(("certname", False),) * 10_000))
    assert await outcome(service, question) == "Rows are sorted by at most 200 fields"


async def test_numbers_beyond_a_float_are_equal_only_to_themselves(database: Database) -> None:
    facts = {"certname": "a", "environment": "e", "producer": "m", "producer_timestamp": "2026-01-01T00:00:00Z"}
    values = {"big": 10**400, "odd": 2**53 + 1, "float": 1e308, "one": 1}
    command = parse_payload("replace facts", 5, json.dumps({**facts, "values": values}).encode(), 1_767_225_600_000_000)
    assert command is not None
    await DatabaseWriter(database).write([ReceivedCommand(command, 1_767_225_600_000_000)])
    service = QueryService(database)

    async def names(*condition: Any) -> list[Any]:
        return sorted(row["name"] for row in await outcome(service, Question("facts", list(condition))))

    for number, name in ((10**400, "big"), (2**53 + 1, "odd"), (10**308, "float"), (1.0, "one")):
        assert await names("=", "value", number) == await names("in", "value", ["array", [number]]) == [name]
    for number in (10**399, 2**53, -(10**400)):
        assert await names("=", "value", number) == await names("in", "value", ["array", [number]]) == []


async def test_numbers_are_answered_as_jsonb_keeps_them(database: Database) -> None:
    facts = {"certname": "a", "environment": "e", "producer": "m", "producer_timestamp": "2026-01-01T00:00:00Z"}
    values = {"zero": -0.0, "large": 1e308, "list": [1e16, {"a": -1.5e22}, -0.0, 0.5, -7.0], "small": 5e-324, "text": "1e16,-0.0"}
    command = parse_payload("replace facts", 5, json.dumps({**facts, "values": values}).encode(), 1_767_225_600_000_000)
    assert command is not None
    for received in range(2):
        await DatabaseWriter(database).write([ReceivedCommand(command, received)])
    rows = await outcome(QueryService(database), Question("facts"))
    assert repr({row["name"]: row["value"] for row in rows}) == repr(
        {"large": 10**308, "list": [10**16, {"a": -15 * 10**21}, 0.0, 0.5, -7.0], "small": 5e-324, "text": "1e16,-0.0", "zero": 0.0}
    )


async def test_an_answer_has_no_more_rows_than_the_limit(recorded: Database) -> None:
    service = QueryService(recorded, QueryLimits(rows=5, batch=2))
    assert await outcome(service, Question("nodes")) == "The answer has more than 5 rows; ask for fewer with limit and offset"
    assert len(await outcome(service, Question("nodes", None, Paging(limit=5)))) == 5


async def test_PDB_05_an_answer_that_takes_too_long_is_refused(recorded: Database) -> None:
    service = QueryService(recorded, QueryLimits(timeout=0.05))
    query: Any = ["~", "value", "x"]
    for _ in range(3):
        query = ["and", ["~", "value", "a|e"], ["in", "name", ["extract", "name", ["select_fact_contents", query]]]]
    slow = ["extract", [["function", "count"]], ["in", "name", ["extract", "name", ["select_facts", ["not", query]]]]]
    answer = await outcome(service, Question("fact_contents", slow))

    assert isinstance(answer, list) or answer == "The query takes longer than 0.05 seconds"


async def test_PDB_05_an_answer_that_is_not_read_gives_back_its_connection(recorded: Database) -> None:
    service = QueryService(recorded, QueryLimits(batch=1))
    for _ in range(12):
        answer = await service.answer(Question("facts"))
        await answer.batches.aclose()
    assert len(await outcome(service, Question("nodes"))) == 12

"""SQLite and PostgreSQL answer the same questions alike."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from store.database.engine import Database
from store.queries.questions import Paging, Question
from store.queries.schema.entities import ENTITIES
from store.queries.service import QueryService
from tests.support.examples import examples
from tests.support.generated_queries import VALUES, orders, questions


class BothDatabases:
    """The recorded data set on both databases, asked from outside an event loop."""

    def __init__(self, urls: list[str]) -> None:
        self._runner = asyncio.Runner()
        self._databases = [Database.open(url) for url in urls]
        self._services = [QueryService(database) for database in self._databases]

    def rows(self, question: Question) -> list[list[Any]]:
        """Return the rows of both answers."""
        return [self._runner.run(self._rows(service, question)) for service in self._services]

    async def _rows(self, service: QueryService, question: Question) -> list[Any]:
        answer = await service.answer(question)
        return [row async for batch in answer.batches for row in batch]

    def close(self) -> None:
        """Close the databases."""
        for database in self._databases:
            self._runner.run(database.close())
        self._runner.close()


@pytest.fixture(scope="module")
def both(recorded_sqlite_url: str, recorded_postgresql_url: str) -> Iterator[BothDatabases]:
    databases = BothDatabases([recorded_sqlite_url, recorded_postgresql_url])
    yield databases
    databases.close()


def canonical(value: Any) -> Any:
    """Return a value without the order of lists that have none, and with numbers by their values: 7 is 7.0."""
    if isinstance(value, dict):
        return {name: canonical(member) for name, member in value.items()}
    if isinstance(value, list):
        items = [canonical(item) for item in value]
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(Decimal(repr(value)).normalize())
    return value


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(question=questions())
def test_generated_questions_have_the_same_answer(both: BothDatabases, question: tuple[str, Any]) -> None:
    entity, query = question
    on_sqlite, on_postgresql = both.rows(Question(entity, query))
    assert canonical(on_sqlite) == canonical(on_postgresql)


@pytest.mark.slow
@pytest.mark.parametrize("entity", sorted(ENTITIES))
def test_rows_are_sorted_alike(both: BothDatabases, entity: str) -> None:
    @settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(order_by=orders(ENTITIES[entity]))
    def check(order_by: tuple[tuple[str, bool], ...]) -> None:
        query = ["extract", [name for name, _ in order_by if (field := ENTITIES[entity].field(name)) and field.is_projectable] or []]
        on_sqlite, on_postgresql = both.rows(Question(entity, query, Paging(order_by=order_by)))
        assert [canonical(row) for row in on_sqlite] == [canonical(row) for row in on_postgresql]

    check()


@pytest.mark.slow
@pytest.mark.parametrize("operator", [">", "<", ">=", "<="])
def test_json_values_of_all_types_are_compared_alike(both: BothDatabases, operator: str) -> None:
    for value in (*VALUES, None, [1, 2], [[]], {"a": 1, "b": 2}, "", "é", 1e300, -1e-300, 2**70, -(2**63)):
        for name in ("facts.mixed", "facts.processors.models", "facts.os", "facts.load_averages.1m", "facts.uptime_seconds"):
            on_sqlite, on_postgresql = both.rows(Question("inventory", ["extract", "certname", [operator, name, value]]))
            assert canonical(on_sqlite) == canonical(on_postgresql), (operator, name, value)


FORMATS = (
    "YYYY-MM-DD", "YYYY-MM-DD HH24:MI:SS.MS", "HH12:MI AM", "HH:MI p.m.", "Mon DD YY", "Month DDD", "MONTH", "month", "Day", "DAY", "dy",
    "Dy D", "IYYY-IW-ID", "Q", "WW W", "US", "J", "SSSS", "CC", "Y,YYY", '"at" HH24"h"', "YYY Y", "no pattern: x", "", "'; --", "é",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
def test_times_are_written_alike(both: BothDatabases, form: str) -> None:
    text = ["function", "to_string", "producer_timestamp", form]
    on_sqlite, on_postgresql = both.rows(Question("reports", ["extract", [text, ["function", "count"]], ["group_by", text]]))
    assert canonical(on_sqlite) == canonical(on_postgresql)

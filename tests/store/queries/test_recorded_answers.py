"""The store answers as PuppetDB did, on both of its databases."""

from __future__ import annotations

from typing import Any

import pytest

from shared.errors import BadRequest
from store.queries.questions import Paging, Question
from store.queries.service import QueryService
from tests.support.recorded_pairs import HASH, Pair, comparable, deviations, groups, pairs, question_of

pytestmark = pytest.mark.works_with("The built-in store", "recorded answers of PuppetDB 7.12.1, on SQLite and PostgreSQL")


async def rows_of(service: QueryService, question: Question) -> tuple[list[Any], str | None]:
    """Return all rows of an answer and the total, as the header has it."""
    answer = await service.answer(question)
    rows = [row async for batch in answer.batches for row in batch]
    return rows, None if answer.total is None else str(answer.total)


async def hashes_for(service: QueryService, group: str) -> dict[tuple[str, int], str]:
    """Return the hashes of reports that the requests of a group speak of."""
    certnames = {match[1] for pair in pairs(group) for match in HASH.finditer(str(pair.request))}
    hashes = {}
    for certname in certnames:
        question = Question("reports", ["extract", ["hash"], ["=", "certname", certname]], Paging(order_by=(("producer_timestamp", True),)))
        rows, _ = await rows_of(service, question)
        hashes |= {(certname, number): row["hash"] for number, row in enumerate(rows)}
    return hashes


async def ask(service: QueryService, pair: Pair, question: Question) -> tuple[int, str | None, Any]:
    """Return the status, the total and the body of the answer to a recorded request."""
    try:
        if question.parameters.get("ast_only"):
            return 200, None, service.ast(question)
        rows, total = await rows_of(service, question)
    except BadRequest as err:
        return 400, None, err.message
    if isinstance(pair.answer["body"], dict):  # the path names one thing
        return (200, None, rows[0]) if rows else (404, None, pair.answer["body"])
    return 200, total, rows


@pytest.mark.slow
@pytest.mark.parametrize("group", groups())
async def test_recorded_questions_have_the_recorded_answers(service: QueryService, group: str) -> None:
    hashes = await hashes_for(service, group)
    differences = {}
    for pair in pairs(group):
        question = question_of(pair, hashes)
        if question is None:
            continue
        status, total, body = await ask(service, pair, question)
        if pair.is_bug:
            continue
        expected = (pair.answer["status"], pair.answer["x_records"], comparable(pair.answer["body"], pair))
        if (status, total, comparable(body, pair)) != expected:
            differences[pair.id] = (status, total, body)
    assert differences == {}


def test_every_deviation_is_one_of_a_recorded_pair() -> None:
    assert set(deviations()) <= {pair.id for group in groups() for pair in pairs(group)}

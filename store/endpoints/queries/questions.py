"""Who answers questions."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Protocol

from ...jsontext import Json
from ...queries.questions import Question


class RowBatches(AsyncIterable[list[Json]], Protocol):
    """The rows of an answer, some at a time; who does not read all of them closes them."""

    async def aclose(self) -> None: ...


class AnswerInBatches(Protocol):
    """The rows, and how many there are without paging, where that was asked for."""

    @property
    def batches(self) -> RowBatches: ...

    @property
    def total(self) -> int | None: ...


class Queries(Protocol):
    """Who answers questions, and checks them."""

    async def answer(self, question: Question) -> AnswerInBatches:
        """Return the answer; raise PuppetError or DatabaseUnavailable, also while further rows are read."""
        ...

    async def plans(self, question: Question) -> list[Json]:
        """Return the plans of a database for a question, an object for each statement; raise as `answer`."""
        ...

    def ast(self, question: Question) -> Json:
        """Return the query as AST, checked, without asking the database; raise PuppetError."""
        ...

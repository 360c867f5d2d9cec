"""A store's endpoints at a Unix socket, over fakes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from httpd.connections.plain import PlainListener
from httpd.dispatch.admission import Admission
from httpd.dispatch.dispatcher import Dispatcher
from httpd.limits import ServerLimits
from httpd.options import ServerOptions
from shared.errors import BadData
from store.commands.submission import Submission
from store.endpoints.admin import AdminEndpoint
from store.endpoints.application import AccessRules, StoreApplication, StoreEndpoints
from store.endpoints.commands import CommandEndpoint
from store.endpoints.jolokia import MetricsEndpoint
from store.endpoints.metrics import StoreMetrics
from store.endpoints.queries.endpoint import QueryEndpoint
from store.endpoints.sealed import SealedEndpoint
from store.jsontext import Json
from store.queries.questions import QueryRefused, Question
from store.retention.retention import CleaningInProgress, Step
from tests.support.raw_master import RawClient

UUID = "7b0ec2ef-6d19-46be-8a4f-0e1a4a4ff4a7"
NOW = 1_700_000_000_123_456  # microseconds


@dataclass
class FakeAnswer:
    """Rows, and how many there are without paging."""

    batches: AsyncGenerator[list[Json], None]
    total: int | None


@dataclass
class FakeQueries:
    """Answers with the rows of an entity, whatever is asked beside; `questions` are what was asked."""

    rows: dict[str | None, list[Json]] = field(default_factory=dict)
    total: int | None = None
    refusal: QueryRefused | None = None
    late_refusal: QueryRefused | None = None  # after all rows
    questions: list[Question] = field(default_factory=list)
    open_answers: int = 0
    all_closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, question: Question) -> FakeAnswer:
        self.questions.append(question)
        if self.refusal is not None:
            raise self.refusal
        return FakeAnswer(self._batches(self.rows.get(question.entity, [])), self.total)

    async def _batches(self, rows: list[Json]) -> AsyncGenerator[list[Json], None]:
        self.open_answers += 1
        self.all_closed.clear()
        try:
            yield []
            for start in range(0, len(rows), 2):
                yield rows[start : start + 2]
            if self.late_refusal is not None:
                raise self.late_refusal
        finally:
            self.open_answers -= 1
            if not self.open_answers:
                self.all_closed.set()

    async def plans(self, question: Question) -> list[Json]:
        self.questions.append(question)
        return [{"query plan": []}]

    def ast(self, question: Question) -> Json:
        self.questions.append(question)
        return ["from", "nodes", ["extract", ["certname"]]]


@dataclass
class FakeReceipt:
    """What became of a command."""

    uuid: str = UUID
    has_waited: bool = True
    is_processed: bool = True
    error: str | None = None


@dataclass
class FakeIntake:
    """Takes every command; `receipt` is what those hear that wait."""

    receipt: FakeReceipt = field(default_factory=FakeReceipt)
    submissions: list[Submission] = field(default_factory=list)

    async def submit(self, submission: Submission) -> FakeReceipt:
        self.submissions.append(submission)
        return self.receipt if submission.seconds_to_wait else FakeReceipt(has_waited=False)


@dataclass
class FakeAdministration:
    """Does nothing and remembers it."""

    is_busy: bool = False
    done: list[object] = field(default_factory=list)

    async def clean(self, steps: Sequence[Step], purge_limit: int | None) -> None:
        if self.is_busy:
            raise CleaningInProgress
        self.done.append((list(steps), purge_limit))

    async def delete(self, certname: str) -> None:
        self.done.append(certname)

    async def summary(self) -> Mapping[str, Json]:
        return {"reports": 3}

    async def export(self) -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    async def load(self, archive: AsyncIterator[bytes]) -> None:
        data = b"".join([chunk async for chunk in archive])
        if data.startswith(b"bad"):
            raise BadData("This is no archive")
        self.done.append(data)


@dataclass
class FakeStore:
    """A store's endpoints over fakes. `is_open`: whether the database has been opened; `is_up`: whether it can be reached."""

    queries: FakeQueries = field(default_factory=FakeQueries)
    intake: FakeIntake = field(default_factory=FakeIntake)
    administration: FakeAdministration = field(default_factory=FakeAdministration)
    counts: dict[str, int] = field(default_factory=lambda: {"seen": 3, "processed": 2, "depth": 1})
    is_open: bool = True
    is_up: bool = True
    max_body: int = 10_000
    sealed: dict[str, Json] = field(default_factory=dict)

    async def find(self, hashes: Sequence[str]) -> dict[str, Json]:
        return {digest: self.sealed[digest] for digest in hashes if digest in self.sealed}

    async def _population(self) -> dict[str, float]:
        return {"num-nodes": 7, "num-resources": 40}

    async def _is_up(self) -> bool:
        return self.is_up

    def application(self, access: AccessRules | None = None) -> StoreApplication:
        rules = access or AccessRules("master1")
        admission = Admission(4, 4, 8, 60, lambda most: most)
        application = StoreApplication(admission, rules, lambda: NOW)
        application.state = "running"
        metrics = StoreMetrics(self._population, lambda: self.counts)
        if self.is_open:
            application.commands = CommandEndpoint(self.intake, self.max_body)
            application.endpoints = StoreEndpoints(
                QueryEndpoint(self.queries, self.max_body),
                AdminEndpoint(self.administration, self.max_body, self.max_body),
                MetricsEndpoint(metrics, lambda: NOW / 1e6),
                SealedEndpoint(self, self.max_body),
                lambda: 0,
                self._is_up,
            )
        return application

    @asynccontextmanager
    async def serving(self, folder: Path) -> AsyncIterator[RawClient]:
        """Yield a client of the store at a Unix socket in `folder`."""
        listener = PlainListener(Dispatcher(self.application(), None, ServerOptions()).handle, ServerLimits(), 8)
        path = await listener.start(folder / "s")
        client = RawClient(*await asyncio.open_unix_connection(path))
        try:
            yield client
        finally:
            await client.close()
            await listener.stop(0)


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
async def client(store: FakeStore, tmp_path: Path) -> AsyncIterator[RawClient]:
    """A client of the fake store at a Unix socket."""
    async with store.serving(tmp_path) as client:
        yield client

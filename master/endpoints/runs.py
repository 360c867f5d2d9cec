"""
Runs on demand (docs/run.md): agents wait at `/puppet/v1/orders` for an order to run, and `POST /puppet/v1/runs` orders runs.

An agent waits for itself only: its name is that of its certificate.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

from ca.audit import Audit, entry
from httpd.connections.connection import HttpRequest
from httpd.messages import bodies
from httpd.messages.responses import Response
from shared.data import plainjson
from shared.errors import BadRequest, PuppetError, Unavailable
from shared.names import quoted_for_log
from shared.orders import LONGEST_WAIT, ORDERS, RunLines
from shared.process.log import NOTICE
from shared.process.supervision import Supervisor
from shared.state.masters import SharedState

from ..authorization.defaults import ADMINISTRATOR, EVERYBODY, THIS_MASTER, rule
from ..authorization.rules import Exactly
from ..observability.longtasks import SEND_ORDERS
from ..orders.run import FollowedRuns, OrderedRuns, RunQuestion
from ..orders.waiting import WaitingAgents
from .routes import EndpointCall, EndpointRoute, json_response

log = logging.getLogger("puppet.run")

RUNS: Final = "/puppet/v1/runs"
MAX_BODY: Final = 4 << 20  # bytes: the names of 100,000 nodes
MAX_LINES_BODY: Final = 1 << 20  # bytes
_MOST_AUDITED: Final = 1000  # names of nodes in an entry


NodesOf = Callable[[RunQuestion], Awaitable[list[str]]]


@dataclass(frozen=True, slots=True)
class RunEndpoint:
    """
    The endpoints.

    Args:
        select: Returns the certnames of a question; raises PuppetError.
        report: Writes an entry into the audit log, and blocks.
        runs: Returns the runs of a question, which are followed until nobody does, which the second argument says.
    """

    agents: WaitingAgents
    select: NodesOf
    report: Audit
    runs: Callable[[RunQuestion, Callable[[], bool]], FollowedRuns]

    @classmethod
    def of(cls, agents: WaitingAgents, select: NodesOf, report: Audit, state: SharedState | None, supervisor: Supervisor) -> Self:
        """Return the endpoints of a master, or of one that shares its state with others, whose orders it sends from now on."""
        if state is None:
            return cls(agents, select, report, partial(OrderedRuns, agents))
        from ..orders.rows import TOPIC
        from ..orders.shared import SharedOrders, SharedRuns

        shared = SharedOrders(state.database, agents)
        state.notices.on(TOPIC, shared.hear)
        supervisor.start(SEND_ORDERS, shared.keep_sending)
        return cls(agents, select, report, partial(SharedRuns, shared))

    async def wait(self, call: EndpointCall) -> Response:
        """Return the next order of the agent that asks, or 204 after a while; take its lines of a POST. Raise BadRequest, Conflict."""
        if call.request.method == "POST":
            return await self.take_lines(call.request)
        last, seconds = call.options.get("last", ""), call.options.get("seconds", "")
        if not isinstance(last, str) or len(last) > 64 or not isinstance(seconds, str) or not seconds.isdecimal() or len(seconds) > 4:
            raise BadRequest("last is the id of an order, seconds a number of seconds")
        request = call.request
        client, connection = request.client, request.connection
        try:
            order = await self.agents.wait(client.name, last, min(float(seconds), LONGEST_WAIT), lambda: connection.has_ended)
        except Unavailable as err:  # no error of this master's: it is not logged
            return Response(503, headers={"Retry-After": str(1 + secrets.randbelow(err.retry_after))})
        return json_response(order.to_data()) if order is not None else Response(204)

    async def take_lines(self, request: HttpRequest) -> Response:
        """Take what an ordered run of the client has logged; 410 says that nobody wants to know. Raise BadData."""
        body = await bodies.read_body(request, MAX_LINES_BODY)
        lines = await asyncio.to_thread(lambda: RunLines.of(plainjson.loads(body)))
        return Response(204 if self.agents.logged(request.client.name, lines) else 410)

    async def order(self, call: EndpointCall) -> Response:
        """Return the response, whose lines are made as the runs end; raise BadRequest."""
        body = await bodies.read_body(call.request, MAX_BODY)
        question = await asyncio.to_thread(lambda: RunQuestion.of(plainjson.loads(body), str(uuid.uuid4())))
        nodes = await self.select(question)
        if question.all:  # also those that have not run yet
            nodes = sorted({*nodes, *self.agents.nodes})
        client, order = call.request.client, question.order
        await asyncio.to_thread(self.report, audited(question, nodes, client.name))
        log.log(NOTICE, "%s at %s orders a run of %s (%d), order %s", client.name, client.address, _subject(question), len(nodes), order.id)
        return Response(200, content_type="application/x-ndjson", chunks=partial(self._lines, question, nodes, call.request))

    async def _lines(self, question: RunQuestion, nodes: list[str], request: HttpRequest) -> AsyncIterator[bytes]:
        connection = request.connection
        yield _line({"id": question.order.id, "nodes": len(nodes)})
        runs = self.runs(question, lambda: connection.has_ended)
        try:
            async with aclosing(runs.events(nodes)) as events:
                async for event in events:
                    yield _line(event)
        except PuppetError as err:
            yield _line({"error": {"message": err.message, "hint": err.hint}})
            return
        yield _line({"done": True})


def audited(question: RunQuestion, nodes: list[str], client: str) -> dict[str, object]:
    """Return the entry of an order in the audit log."""
    order = question.order
    details: dict[str, Any] = {"order": order.id, "nodes": nodes[:_MOST_AUDITED], "number": len(nodes)}
    details |= {name: value for name, value in order.to_data().items() if value and name != "id"}
    return entry("order-run", _subject(question), by=client, **details)


def _subject(question: RunQuestion) -> str:
    """Return whom a question is about, as it names them."""
    if question.all:
        return "all nodes"
    if question.query is not None:
        return f"the nodes of {quoted_for_log(question.query, 500)}"
    return ", ".join(question.names[:10]) + (", …" if len(question.names) > 10 else "")


def _line(data: dict[str, Any]) -> bytes:
    return plainjson.dumps(data) + b"\n"


_WAIT = "An agent waits here for an order to run, for some seconds at most: 204 when there is none. A POST has what its run logs."
_ORDER = "Orders runs of agents that wait: a line for each event, such as the result of a run."
_route = partial(EndpointRoute, part=RunEndpoint, lane=None)  # such requests last long
ROUTES = (
    _route(
        ORDERS,
        {"GET": "", "POST": "json"},
        "application/json",
        _WAIT,
        ("last", "seconds"),
        respond=RunEndpoint.wait,
        rule=rule(ORDERS, Exactly(ORDERS), "find save", EVERYBODY),
    ),
    _route(
        RUNS,
        {"POST": "json"},
        "application/x-ndjson",
        _ORDER,
        respond=RunEndpoint.order,
        rule=rule(RUNS, Exactly(RUNS), "save", ADMINISTRATOR, THIS_MASTER),
    ),
)

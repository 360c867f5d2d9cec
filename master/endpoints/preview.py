"""
Previews for users without a shell on the master: `POST /puppet/v1/preview`, answered line by line (docs/preview.md).

A preview shows the contents of catalogs and files, so no client may request one until a rule of auth.conf allows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Self

from httpd.messages import bodies
from httpd.messages.responses import Response
from shared.data import plainjson
from shared.errors import BadRequest, Unavailable
from shared.names import valid_certname, valid_environment

from .routes import EndpointCall, EndpointRoute

MAX_BODY: Final = 4 << 20  # bytes: the names of 100,000 nodes
RETRY: Final = 60  # seconds after which to ask again while other previews run

STORED: Final = "stored"
CLASSIFICATIONS: Final = (STORED, "current")

_MEMBERS: Final = frozenset({"from", "to", "environment", "classification", "nodes", "query", "all"})


@dataclass(frozen=True, slots=True)
class PreviewQuestion:
    """
    The request for a preview.

    Attributes:
        before, after: The names of two environments; never folders, which callers must not read.
        environment: The environment's name in both compilations.
        names, query, all: Which nodes; one of them is set.
        classification: See `PreviewNodes`.
    """

    before: str
    after: str
    environment: str
    names: tuple[str, ...] = ()
    query: str | None = None
    all: bool = False
    classification: str = STORED

    @classmethod
    def of(cls, data: Any) -> Self:
        """Return the request in a body; raise BadRequest for an invalid one, BadName for an invalid name."""
        if not isinstance(data, dict) or not data.keys() <= _MEMBERS:
            raise BadRequest(f"The body is an object with these members: {', '.join(sorted(_MEMBERS))}")
        texts = [data.get(name, "") for name in ("from", "to", "environment")]
        names, query, is_all = data.get("nodes"), data.get("query"), data.get("all", False)
        if not all(isinstance(text, str) for text in texts) or not isinstance(is_all, bool) or not isinstance(query, str | None):
            raise BadRequest("from, to, environment and query are texts, all is true or false")
        if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
            raise BadRequest("nodes is a list of certnames")
        if sum((bool(names), query is not None, is_all)) != 1:
            raise BadRequest("Say which nodes: one of nodes, query and all")
        classification = data.get("classification", STORED)
        if classification not in CLASSIFICATIONS:
            raise BadRequest(f"classification is {' or '.join(CLASSIFICATIONS)}")
        before, after = (valid_environment(text) for text in texts[:2])
        certnames = tuple(dict.fromkeys(valid_certname(name) for name in names or ()))
        return cls(before, after, valid_environment(texts[2]) if texts[2] else before, certnames, query, is_all, classification)


@dataclass(eq=False, repr=False)
class PreviewEndpoint:
    """
    The endpoint.

    Args:
        lines: Yields the lines of the answer; raises PuppetError before the first.
        most: How many previews may run at the same time.
    """

    lines: Callable[[PreviewQuestion], AsyncIterator[bytes]]
    most: int
    _running: int = field(default=0, init=False)

    async def respond(self, call: EndpointCall) -> Response:
        """Return the response, whose lines are made as they are sent; raise BadRequest, Unavailable."""
        body = await bodies.read_body(call.request, MAX_BODY)
        question = await asyncio.to_thread(lambda: PreviewQuestion.of(plainjson.loads(body)))
        return Response(200, content_type="application/x-ndjson", chunks=self._one_of_few(question))

    def _one_of_few(self, question: PreviewQuestion) -> Callable[[], AsyncIterator[bytes]]:
        async def lines() -> AsyncIterator[bytes]:
            if self._running >= self.most:
                raise Unavailable("Other previews are running", retry_after=RETRY)
            self._running += 1
            try:
                async with aclosing(self.lines(question)) as made:  # type: ignore[type-var]  # a generator, which can be closed
                    async for line in made:
                        yield line
            finally:
                self._running -= 1

        return lines


_SUMMARY = "What another environment changes in the catalogs of nodes: a line for each node, then the result."
_route = partial(EndpointRoute, respond=PreviewEndpoint.respond, part=PreviewEndpoint)
# It would hold a slot for long, and few run at the same time.
ROUTES = (_route("/puppet/v1/preview", {"POST": "json"}, "application/x-ndjson", _SUMMARY, lane=None),)

"""The endpoints below /pdb/query/v4: a request becomes a question, and the rows of its answer a stream of JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from httpd.connections.connection import HttpRequest
from httpd.messages.bodies import read_body
from httpd.messages.responses import Response
from shared.client import NO_SUBQUERIES
from shared.data import plainjson
from shared.errors import BadData, BadRequest

from ...jsontext import Json
from ...queries.batches import QueryAnswer, first_row
from ...queries.questions import Question, is_set
from ...queries.service import QueryService
from ..answers import array_response, compact_response, dashboard_redirect, error_response, json_response, text_response
from ..negotiation import require_body_of, require_json_accepted, url_parameters
from .paging import COUNTING, DISTINCT, check_names, paging_of
from .paths import QueryTarget, Subject, restrict, target_of
from .querytext import read_query

_LARGE = 64 * 1024  # bytes of JSON that take a millisecond to parse
_NEVER_EXPLAINED = ("event_counts", "aggregate_event_counts")  # as in the reference
_OPTIONS = DISTINCT | COUNTING | {"include_facts_expiration", "include_package_inventory"}


class QueryEndpoint:
    """
    Answers queries.

    Args:
        max_body: Bytes of the body of a query.
    """

    def __init__(self, queries: QueryService, max_body: int) -> None:
        self._queries = queries
        self._max_body = max_body

    async def respond(self, request: HttpRequest, segments: Sequence[str]) -> Response:
        """Return the response to a request; `segments` are the decoded segments after /pdb/query."""
        match segments:
            case ["v1" | "v2" | "v3" as version, *_]:
                return text_response(404, f"The {version} API has been retired; please use v4")
            case ["v4", *rest]:
                target = target_of(rest)
            case _:
                target = None
        if target is None:
            return dashboard_redirect()
        if request.method not in ("GET", "POST"):
            raise BadRequest("PuppetDB queries must be made via GET/POST")
        require_json_accepted(request)
        parameters = await self._parameters(request)
        check_names(parameters, target.parameters)
        if (value := parameters.get("explain")) not in (None, "analyze"):
            raise BadRequest(f"Illegal value '{value}' for :explain; expected `analyze`.")
        return await self._answer(target, parameters, subqueries=NO_SUBQUERIES not in request.headers)

    async def _parameters(self, request: HttpRequest) -> dict[str, Json]:
        """Return the parameters of the target, and of the body where there is one; those of the body win."""
        parameters: dict[str, Json] = dict(url_parameters(request))
        if request.method == "POST":
            require_body_of(request, "application/json")
            body = await read_body(request, self._max_body)
            if body.strip():
                try:
                    value = plainjson.loads(body) if len(body) < _LARGE else await asyncio.to_thread(plainjson.loads, body)
                except BadData as err:
                    raise BadRequest(f"Malformed JSON for query: {err.message}") from err
                if not isinstance(value, dict):
                    raise BadRequest("Malformed JSON for query: the body must be an object with the key 'query'")
                parameters |= value
        return parameters

    async def _answer(self, target: QueryTarget, parameters: dict[str, Json], *, subqueries: bool) -> Response:
        if target.entity is None:
            query = _root_query(parameters)
        else:
            value = parameters.get("query")
            query = restrict(read_query(value) if isinstance(value, str) else value, target.conditions)
        options = {name: value for name, value in parameters.items() if name in _OPTIONS}
        question = Question(target.entity, query, paging_of(parameters), options, subqueries)
        if is_set(parameters.get("ast_only")):
            return json_response(self._queries.ast(question))
        if target.subject is not None and not target.is_single and not await self._exists(target.subject):
            return _unknown(target.subject)
        pretty = is_set(parameters.get("pretty"))
        if parameters.get("explain") is not None and target.entity not in _NEVER_EXPLAINED:
            plans = await self._queries.plans(question)
            return json_response(plans[0]) if target.is_single else json_response(plans) if pretty else compact_response(plans)
        answer = await self._queries.answer(question)
        if target.is_single or target.column:
            assert target.subject is not None
            return await _first_row_response(answer, target.subject, target.column)
        headers = {} if answer.total is None else {"X-Records": str(answer.total)}
        return await array_response(answer.batches, pretty=pretty, headers=headers)

    async def _exists(self, subject: Subject) -> bool:
        field = subject.conditions[0][1]
        question = Question(subject.entity, ["extract", [field], restrict(None, subject.conditions)])
        return await first_row(await self._queries.answer(question)) is not None


def _root_query(parameters: dict[str, Json]) -> Json:
    """Return the query of the root: AST, or a text in PQL."""
    if "query" not in parameters:
        raise BadRequest("Missing required query parameter 'query'")
    query = parameters["query"]
    return read_query(query) if isinstance(query, str) and query.lstrip().startswith("[") else query


def _unknown(subject: Subject) -> Response:
    return error_response(404, f"No information is known about {subject.kind} {subject.name}")


async def _first_row_response(answer: QueryAnswer, subject: Subject, column: str) -> Response:
    """Return the response with the only row of an answer, or with the list in one of its columns."""
    row = await first_row(answer)
    if row is None:
        return _unknown(subject)
    if not column:
        return json_response(row)
    value = row.get(column)
    return compact_response((value.get("data") if isinstance(value, dict) else value) or [])

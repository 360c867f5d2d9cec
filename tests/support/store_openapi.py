"""
The store's HTTP interface as an OpenAPI document, built from the tables that it answers by.

    python -m tests.support.store_openapi > docs/api/store.yaml

A test compares it with a running store: each path that it has is answered, and it has each path that is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shared import __version__
from shared.client import Client
from shared.data import plainyaml
from store.commands.payloads import VERSIONS
from store.commands.submission import PARAMETERS
from store.endpoints.answers import DASHBOARD
from store.endpoints.application import AccessRules
from store.endpoints.queries.paths import BELOW, ENTITIES, LEVELS, target_of

_RULES = AccessRules("store.example.com")
_CALLERS: tuple[tuple[str, Client], ...] = (
    ("anybody", Client("192.0.2.1", "192.0.2.1", False)),
    ("any certificate", Client("other.example.com", "192.0.2.1", True)),
    ("this host's certificate", Client(_RULES.own, "192.0.2.1", True)),
)

_NUMBER = {"type": "integer", "minimum": 0}
_FLAG = {"type": "boolean"}
_TEXT = {"type": "string"}
_PARAMETERS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "query": (_TEXT, "The condition, a syntax tree in JSON; at the root the whole query, also in PQL."),
    "pretty": (_FLAG, "Whether JSON is indented."),
    "explain": ({"enum": ["analyze"]}, "The plan of the database is the answer; counts of events have none."),
    "optimize_drop_unused_joins": (_FLAG, "Ignored."),
    "include_facts_expiration": (_FLAG, "Nodes have the time at which their facts expire."),
    "include_package_inventory": (_FLAG, "Ignored."),
    "origin": (_TEXT, "Who asks, for logs; ignored."),
    "ast_only": (_FLAG, "The syntax tree is the answer; nothing is asked."),
    "limit": ({"type": "integer", "minimum": 1}, "Rows at most."),
    "offset": (_NUMBER, "Rows that are passed over."),
    "order_by": (_TEXT, 'Fields in JSON: [{"field": "certname", "order": "desc"}].'),
    "include_total": (_FLAG, "The header X-Records has the number of rows without paging."),
    "distinct_resources": (_FLAG, "Of each resource only the latest event."),
    "distinct_start_time": (_TEXT, "The time from which such events count."),
    "distinct_end_time": (_TEXT, "The time until which such events count."),
    "summarize_by": ({"enum": ["certname", "resource", "containing_class"]}, "What events are counted for."),
    "count_by": ({"enum": ["resource", "certname"]}, "What is counted."),
    "counts_filter": (_TEXT, "A condition for counts, a syntax tree in JSON."),
    "command": ({"enum": sorted(name.replace(" ", "_") for name in VERSIONS)}, "The command."),
    "version": (_NUMBER, "The version of the command's payload."),
    "certname": (_TEXT, "The node that it is about."),
    "producer-timestamp": ({"type": "string", "format": "date-time"}, "When it was made; of several for a node the latest counts."),
    "checksum": (_TEXT, "Ignored."),
    "secondsToWaitForCompletion": ({"type": "number", "minimum": 0}, "Seconds for which the answer waits for the command to be stored."),
    "level": ({"enum": ["critical", "info", "debug"]}, "How much is said."),
}
_JSON = "application/json"
_PLAIN = "text/plain"
_ARCHIVE = "application/octet-stream"
_PAGE = "text/html"
_ANSWERS = {_JSON: "json", _PLAIN: "text", _ARCHIVE: "archive", _PAGE: "page"}


@dataclass(frozen=True, slots=True)
class StoreEndpoint:
    """
    A path and a method. Parameters of the path are in braces.

    Attributes:
        answers: The type of a successful answer.
        accepts: The types of the body; () where there is none.
    """

    path: str
    method: str
    doc: str
    answers: str = _JSON
    accepts: tuple[str, ...] = ()
    parameters: frozenset[str] = frozenset()


_FIXED = (
    StoreEndpoint("/pdb/cmd/v1", "POST", "Take a command, its payload as the body.", accepts=(_JSON,), parameters=PARAMETERS),
    StoreEndpoint("/pdb/meta/v1/version", "GET", "The version of PuppetDB whose interface this is."),
    StoreEndpoint("/pdb/meta/v1/server-time", "GET", "The time."),
    StoreEndpoint("/pdb/admin/v1/cmd", "POST", "Clean up, or delete a node.", accepts=(_JSON,)),
    StoreEndpoint("/pdb/admin/v1/archive", "GET", "An archive of all that is stored.", _ARCHIVE),
    StoreEndpoint("/pdb/admin/v1/archive", "POST", "Store the contents of an archive.", accepts=("multipart/form-data", _ARCHIVE)),
    StoreEndpoint("/pdb/admin/v1/summary-stats", "GET", "The rows of each table."),
    StoreEndpoint(DASHBOARD, "GET", "A page that links to the rest.", _PAGE),
    StoreEndpoint("/status/v1/simple", "GET", "Whether the store runs.", _PLAIN),
    StoreEndpoint("/status/v1/services", "GET", "Its services.", parameters=frozenset({"level"})),
    StoreEndpoint("/status/v1/services/{service}", "GET", "One of them.", parameters=frozenset({"level"})),
    StoreEndpoint("/metrics", "GET", "All that is counted, for Prometheus.", _PLAIN),
    StoreEndpoint("/metrics/v2", "GET", "The version of Jolokia whose interface the metrics have."),
    StoreEndpoint("/metrics/v2/version", "GET", "The same."),
    StoreEndpoint("/metrics/v2/list", "GET", "The names of all metrics."),
    StoreEndpoint("/metrics/v2/list/{domain}", "GET", "Those of a domain."),
    StoreEndpoint("/metrics/v2/search/{pattern}", "GET", "The names that match a pattern."),
    StoreEndpoint("/metrics/v2/read/{metric}", "GET", "The attributes of a metric."),
    StoreEndpoint("/metrics/v2/read/{metric}/{attribute}", "GET", "One of them."),
)


def query_paths() -> Iterator[str]:
    """Yield the paths below /pdb/query/v4 as segments with slashes between them, parameters in braces; '' is the root."""
    yield ""
    for entity in ENTITIES:
        yield entity
        yield from _deeper(entity, entity)
    yield "package-inventory/{certname}"
    for part in ("events", "logs", "metrics"):
        yield f"reports/{{hash}}/{part}"
    for collection, (field, below) in BELOW.items():
        yield f"{collection}/{{{field}}}"
        for entity in sorted(below):
            path = f"{collection}/{{{field}}}/{entity}"
            yield path
            if collection != "factsets":
                yield from _deeper(path, entity)


def _deeper(path: str, entity: str) -> Iterator[str]:
    for level in LEVELS.get(entity, ()):
        path = f"{path}/{{{level}}}"
        yield path


def endpoints() -> Iterator[StoreEndpoint]:
    """Yield all paths with their methods."""
    for path in query_paths():
        segments = path.split("/") if path else []
        target = target_of(segments)
        assert target is not None, path
        entity = (target.entity or "any entity, which the query names").replace("_", " ")
        doc = f"One of the {entity}." if target.is_single else f"The {target.column} of one of the {entity}." if target.column else entity
        for method in ("GET", "POST"):
            accepts = (_JSON,) if method == "POST" else ()
            url = "/".join(["/pdb/query/v4", *segments])
            yield StoreEndpoint(url, method, f"Ask for {doc}", accepts=accepts, parameters=target.parameters)
    yield from _FIXED


def allowed_caller(path: str) -> str:
    """Return the clients that may use a path over TLS without a store_allowlist."""
    if path.startswith("/pdb/"):
        part = path.split("/")[2]
        return next(name for name, client in _CALLERS if not _RULES.denial(client, part))
    return "any certificate" if path.startswith("/metrics") else "anybody"


def document() -> dict[str, Any]:
    """Return the whole document, as plain data."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints():
        operations = paths.setdefault(endpoint.path, {"parameters": _parameters(endpoint)})
        operations[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Bunraku's store",
            "version": __version__,
            "description": "The interface of PuppetDB 7. A master also serves /pdb, to the clients that its auth.conf allows. "
            "x-allowed names the clients that may use a path over TLS without a store_allowlist; with one, only the clients in it may use "
            "the paths below /pdb.",
        },
        "paths": {path: paths[path] for path in sorted(paths)},
        "components": {
            "parameters": {
                name: {"in": "query", "name": name, "description": doc, "schema": dict(schema)}
                for name, (schema, doc) in sorted(_PARAMETERS.items())
            },
            "requestBodies": {"json": {"required": True, "content": {_JSON: {}}}},
            "responses": {
                **{name: {"description": "Done.", "content": {kind: {}}} for kind, name in _ANSWERS.items()},
                "wrong": {
                    "description": "What is wrong with the request.",
                    "content": {_PLAIN: {"schema": {"type": "string"}}, _JSON: {"schema": {"type": "object"}}},
                },
                "busy": {"description": "The store is starting or overloaded; retry after the time in Retry-After."},
            },
        },
    }


def _parameters(endpoint: StoreEndpoint) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in endpoint.path.split("/") if part.startswith("{")]
    return [
        *({"in": "path", "name": name, "required": True, "schema": {"type": "string", "minLength": 1}} for name in names),
        *({"$ref": f"#/components/parameters/{name}"} for name in sorted(endpoint.parameters)),
    ]


def _operation(endpoint: StoreEndpoint) -> dict[str, Any]:
    plain = endpoint.path.strip("/").replace("/", "-").replace("{", "by-").replace("}", "")
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.method.lower()}-{plain}",
        "summary": endpoint.doc,
        "x-allowed": allowed_caller(endpoint.path),
        "responses": {
            "2XX": {"$ref": f"#/components/responses/{_ANSWERS[endpoint.answers]}"},
            "4XX": {"$ref": "#/components/responses/wrong"},
            "503": {"$ref": "#/components/responses/busy"},
        },
    }
    if endpoint.accepts == (_JSON,):
        operation["requestBody"] = {"$ref": "#/components/requestBodies/json"}
    elif endpoint.accepts:
        operation["requestBody"] = {"required": True, "content": {kind: {} for kind in endpoint.accepts}}
    return operation


def text() -> str:
    """Return the document as YAML."""
    return plainyaml.dumps(document()).decode()


if __name__ == "__main__":
    sys.stdout.write(text())

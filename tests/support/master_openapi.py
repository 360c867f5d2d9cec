"""
The HTTP interface as an OpenAPI document, built from the tables that route and authorize.

    python -m tests.support.master_openapi > docs/api/openapi.yaml

The calls of both schemes come from the indirections, METHODS and the default rules; the endpoints that are not indirections from the
routes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from master.authorization.defaults import LEGACY_RULES
from master.authorization.rules import AccessRequest, Rule, decide
from master.endpoints.ca import rule_paths, rule_verb
from master.endpoints.routes import Body, EndpointRoute, RequestTarget, default_rules, find_routes
from shared import __version__
from shared.client import Client
from shared.data import plainyaml
from shared.indirector.core import Indirection
from shared.indirector.paths import METHODS
from shared.models.catalog import CATALOG
from shared.models.facts import FACTS
from shared.models.file_bucket_file import FILE_BUCKET_FILE
from shared.models.file_content import FILE_CONTENT
from shared.models.file_metadata import FILE_METADATA
from shared.models.node import NODE
from shared.models.report import REPORT
from shared.models.resource import RESOURCE
from shared.models.resource_type import RESOURCE_TYPE
from shared.models.static_file_content import STATIC_FILE_CONTENT
from shared.models.status import STATUS
from shared.wire.dialects import LEGACY, MODERN, Dialect

SERVED: tuple[Indirection[Any], ...] = (
    *(CATALOG, FACTS, FILE_BUCKET_FILE, FILE_CONTENT, FILE_METADATA, NODE, REPORT),
    *(RESOURCE, RESOURCE_TYPE, STATIC_FILE_CONTENT, STATUS),
)
MODERN_ONLY = frozenset({"static_file_content"})
BY_CERTNAME = frozenset({"catalog", "facts", "node", "report"})

# The kinds of clients; the first that the default rules allow is shown.
CALLERS: tuple[tuple[str, Client], ...] = (
    ("anybody", Client("192.0.2.1", "192.0.2.1", False)),
    ("any certificate", Client("other.example.com", "192.0.2.1", True)),
    ("the node itself", Client("node.example.com", "192.0.2.1", True)),
    ("administrators", Client("admin.example.com", "192.0.2.1", True, {"pp_cli_auth": "true"})),
)
NOBODY = "nobody, unless the site's auth.conf allows it"

JSON_KINDS = ("application/json", "text/pson")
_BODIES: Mapping[Body, Sequence[str]] = {"json": JSON_KINDS, "pem": ("text/plain",), "ocsp": ("application/ocsp-request",)}


def allowed_caller(rules: Sequence[Rule], paths: Iterable[str], verb: str) -> str:
    """Return the clients that the default rules allow; paths name the node as node.example.com."""
    access_paths = tuple(paths)
    return next(
        (name for name, client in CALLERS if decide(rules, AccessRequest(access_paths, verb, "production", client)).allowed), NOBODY
    )


def documented_routes() -> dict[str, EndpointRoute]:
    """Return the routes of the document by their paths, without an ignored part at their end."""
    return {route.path.partition("/{")[0] if route.path.endswith("*}") else route.path: route for route in find_routes() if route.summary}


def document() -> dict[str, Any]:
    """Return the whole document, as plain data."""
    paths: dict[str, Any] = {}
    for indirection in SERVED:
        for scheme in ("modern", "legacy"):
            for path, method, operation in _calls(indirection, scheme):
                paths.setdefault(path, {})[method.lower()] = operation
    for path, route in documented_routes().items():
        paths[path] = {method.lower(): _operation_of(route, path, method, body) for method, body in route.methods.items()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Bunraku's master",
            "version": __version__,
            "description": "The calls of Puppet 3.x and of 4 to 8. x-allowed names the clients that the default rules allow. If "
            "the master has a store, it also serves the calls below /pdb in store.yaml, to the clients that the site's auth.conf allows.",
        },
        "paths": {path: paths[path] for path in sorted(paths)},
        "components": {"schemas": _SCHEMAS, "parameters": _PARAMETERS, "responses": _RESPONSES},
    }


_SCHEMAS: Mapping[str, Any] = {
    "Certname": {"type": "string", "pattern": "^[a-z0-9_][a-z0-9_.-]{0,63}$", "maxLength": 64},
    "Environment": {"type": "string", "pattern": "^[A-Za-z0-9_]+$"},
    "Error": {
        "type": "object",
        "properties": {"message": {"type": "string"}, "issue_kind": {"type": "string"}, "hint": {"type": "string"}},
        "required": ["message"],
    },
}

_PARAMETERS: Mapping[str, Any] = {
    "certname": {"in": "path", "name": "certname", "required": True, "schema": {"$ref": "#/components/schemas/Certname"}},
    "key": {"in": "path", "name": "key", "required": True, "schema": {"type": "string", "minLength": 1}},
    **{
        f"environment-in-{place}": {
            "in": place,
            "name": "environment",
            "required": True,
            "schema": {"$ref": "#/components/schemas/Environment"},
        }
        for place in ("path", "query")
    },
}
_RESPONSES: Mapping[str, Any] = {
    "wrong": {
        "description": "What is wrong with the request, in a sentence.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}, "text/plain": {"schema": {"type": "string"}}},
    },
    "busy": {"description": "The master is overloaded; retry after the time in Retry-After."},
}


def _calls(indirection: Indirection[Any], scheme: str) -> Iterable[tuple[str, str, dict[str, Any]]]:
    """Yield (path, method, operation) of an indirection in one scheme."""
    modern = scheme == "modern"
    if not modern and indirection.name in MODERN_ONLY:
        return
    for (method, number), verb in METHODS.items():
        if method == "DELETE" and modern:
            continue  # the newer scheme has none
        name = indirection.name if number == "singular" else indirection.search_name
        key = "certname" if indirection.name in BY_CERTNAME and number == "singular" else "key"
        path = f"/puppet/v3/{name}/{{{key}}}" if modern else f"/{{environment}}/{name}/{{{key}}}"
        access_paths = [f"/{indirection.name}/node.example.com", *([f"/puppet/v3/{name}/node.example.com"] if modern else [])]
        access = allowed_caller(default_rules().modern if modern else LEGACY_RULES, access_paths, "find" if verb == "head" else verb)
        yield path, method, _operation(indirection, MODERN if modern else LEGACY, method, verb, key, access)


def _operation(indirection: Indirection[Any], dialect: Dialect, method: str, verb: str, key: str, access: str) -> dict[str, Any]:
    options = sorted(name for name in indirection.options if "*" not in name)
    operation: dict[str, Any] = {
        "operationId": f"{dialect.name}-{verb}-{indirection.name}" + ("-by-post" if method == "POST" else ""),
        "summary": f"{verb}: {indirection.doc}",
        "x-allowed": access,
        "parameters": [
            {"$ref": f"#/components/parameters/{key}"},
            {"$ref": f"#/components/parameters/environment-in-{'query' if dialect is MODERN else 'path'}"},
            *({"in": "query", "name": name, "schema": {"type": "string"}} for name in options),
        ],
    }
    if method == "PUT":
        operation["requestBody"] = _content(form.mime for form in dialect.formats_read(indirection))
    if method == "POST":
        operation["requestBody"] = _content(["application/x-www-form-urlencoded"])
    answers = [] if method == "HEAD" else [form.mime for form in dialect.formats_of(indirection)]
    return operation | {"responses": _responses(answers)}


def _operation_of(route: EndpointRoute, shown: str, method: str, body: Body) -> dict[str, Any]:
    names = [part[1:-1] for part in shown.split("/") if part.startswith("{")]
    path = shown.replace("{certname}", "node.example.com").replace("{", "").replace("}", "")
    target = RequestTarget.of(method, path, "")
    name, *rest = target.segments[2:] or ("",)
    paths, verb = (rule_paths(name, rest), rule_verb(name, target)) if target.segments[0] == "puppet-ca" else ((), target.verb)
    operation: dict[str, Any] = {
        "operationId": f"{method.lower()}-{shown.strip('/').replace('/', '-').replace('{', '').replace('}', '')}",
        "summary": route.summary,
        "x-allowed": allowed_caller(default_rules().modern, (*paths, path), verb),
        "parameters": [
            *(
                {"$ref": "#/components/parameters/certname"} if name == "certname" else {**_PARAMETERS["key"], "name": name}
                for name in names
            ),
            *({"in": "query", "name": name, "schema": {"type": "string"}} for name in route.query),
        ],
        "responses": _responses([route.answer] if route.answer else []),
    }
    return operation | ({"requestBody": _content(_BODIES[body])} if body else {})


def _content(kinds: Iterable[str]) -> dict[str, Any]:
    return {"required": True, "content": {kind: {} for kind in kinds}}


def _responses(kinds: Iterable[str]) -> dict[str, Any]:
    """Return the possible responses: success, the caller's mistake, and of the 5xx only the one with Retry-After."""
    content: dict[str, Any] = {kind: {} for kind in kinds}
    done = {"description": "Done."} | ({"content": content} if content else {})
    return {"2XX": done, "4XX": {"$ref": "#/components/responses/wrong"}, "503": {"$ref": "#/components/responses/busy"}}


def text() -> str:
    """Return the document as YAML."""
    return plainyaml.dumps(document()).decode()


if __name__ == "__main__":
    sys.stdout.write(text())

"""
The HTTP interface as an OpenAPI document, built from the tables that route and authorize: `python -m master.endpoints.openapi` prints it.

The calls of both schemes come from the indirections, METHODS and the default rules; the endpoints that are no indirections are listed in
ENDPOINTS, which a test compares with a running master.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

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

from ..authorization.defaults import LEGACY_RULES, MODERN_RULES
from ..authorization.rules import AccessRequest, Rule, decide

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
NOBODY = "nobody, unless the site's auth.conf says so"

JSON_KINDS = ("application/json", "text/pson")
Body = Literal["", "json", "pem", "ocsp"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint that is no indirection; `methods` maps each method to the kind of body it takes. Parameters stand in braces."""

    path: str
    methods: Mapping[str, Body]
    answer: str
    doc: str
    query: Sequence[str] = ()


_CA = "/puppet-ca/v1"
ENDPOINTS = (
    Endpoint(f"{_CA}/certificate/{{certname}}", {"GET": ""}, "text/plain", "A certificate, or the CA's own as `ca`."),
    Endpoint(f"{_CA}/certificate_request/{{certname}}", {"GET": "", "PUT": "pem", "DELETE": ""}, "text/plain", "A pending request."),
    Endpoint(f"{_CA}/certificate_revocation_list/ca", {"GET": ""}, "text/plain", "The revocation lists."),
    Endpoint(f"{_CA}/certificate_revocation_list", {"PUT": "pem"}, "text/plain", "Replace revocation lists of the chain above."),
    Endpoint(f"{_CA}/certificate_status/{{certname}}", {"GET": "", "PUT": "json", "DELETE": ""}, "application/json", "Sign or revoke."),
    Endpoint(f"{_CA}/certificate_statuses/{{any}}", {"GET": ""}, "application/json", "All certificates and requests.", ("state", "for")),
    Endpoint(f"{_CA}/expirations", {"GET": ""}, "application/json", "When certificates and lists of the CA end."),
    Endpoint(f"{_CA}/clean", {"PUT": "json"}, "text/plain", "Revoke and remove several."),
    Endpoint(f"{_CA}/sign", {"POST": "json"}, "application/json", "Sign several."),
    Endpoint(f"{_CA}/sign/all", {"POST": ""}, "application/json", "Sign all that may be signed."),
    Endpoint(f"{_CA}/certificate_renewal", {"POST": ""}, "text/plain", "A new certificate for the one that is presented."),
    Endpoint(f"{_CA}/ocsp", {"POST": "ocsp"}, "application/ocsp-response", "The state of certificates, RFC 6960."),
    Endpoint(f"{_CA}/ocsp/{{request}}", {"GET": ""}, "application/ocsp-response", "The same, with the request in base64."),
    Endpoint("/status/v1/simple", {"GET": ""}, "text/plain", "Whether the master runs."),
    Endpoint("/status/v1/simple/{service}", {"GET": ""}, "text/plain", "Whether one of its services runs."),
    Endpoint("/status/v1/services", {"GET": ""}, "application/json", "The services.", ("level",)),
    Endpoint("/status/v1/services/{service}", {"GET": ""}, "application/json", "One of them.", ("level",)),
    Endpoint("/metrics", {"GET": ""}, "text/plain", "What the master counts, for Prometheus."),
    Endpoint("/puppet/v3/environments", {"GET": ""}, "application/json", "The environments and their settings."),
    Endpoint("/v2.0/environments", {"GET": ""}, "application/json", "The same, for Puppet 3.5 to 3.8."),
    Endpoint(
        "/puppet/v3/environment_classes", {"GET": ""}, "application/json", "The classes of an environment, by file.", ("environment",)
    ),
    Endpoint(
        "/puppet/v3/environment_modules", {"GET": ""}, "application/json", "The modules of an environment, or of all.", ("environment",)
    ),
    Endpoint("/puppet/v3/tasks", {"GET": ""}, "application/json", "The tasks of an environment.", ("environment",)),
    Endpoint("/puppet/v3/tasks/{module}/{task}", {"GET": ""}, "application/json", "A task and its files.", ("environment",)),
    Endpoint("/puppet/v3/plans", {"GET": ""}, "application/json", "The plans of an environment.", ("environment",)),
    Endpoint("/puppet/v3/plans/{module}/{plan}", {"GET": ""}, "application/json", "A plan.", ("environment",)),
    Endpoint("/puppet/v4/catalog", {"POST": "json"}, "application/json", "A catalog compiled with facts that are given."),
    Endpoint(
        "/puppet/v1/preview",
        {"POST": "json"},
        "application/x-ndjson",
        "What another environment changes in the catalogs of nodes: a line for each node, then the result.",
    ),
    Endpoint("/puppet-admin-api/v1/environment-cache", {"DELETE": ""}, "", "Read code again.", ("environment",)),
    Endpoint(
        "/puppet-admin-api/v1/deploy",
        {"POST": "json"},
        "application/json",
        "The web hook of the control repository, for who knows its secret (deploy_hook_secret); 404 without one.",
    ),
)
_BODIES: Mapping[Body, Sequence[str]] = {"json": JSON_KINDS, "pem": ("text/plain",), "ocsp": ("application/ocsp-request",)}
_VERBS = {"GET": "find", "PUT": "save", "POST": "save", "DELETE": "destroy"}


def allowed_caller(rules: Sequence[Rule], paths: Iterable[str], verb: str) -> str:
    """Return who has access by the default rules; paths name the node as node.example.com."""
    access_paths = tuple(paths)
    return next(
        (name for name, client in CALLERS if decide(rules, AccessRequest(access_paths, verb, "production", client)).allowed), NOBODY
    )


def document() -> dict[str, Any]:
    """Return the whole document, as plain data."""
    paths: dict[str, Any] = {}
    for indirection in SERVED:
        for scheme in ("modern", "legacy"):
            for path, method, operation in _calls(indirection, scheme):
                paths.setdefault(path, {})[method.lower()] = operation
    for endpoint in ENDPOINTS:
        for method, body in endpoint.methods.items():
            paths.setdefault(endpoint.path, {})[method.lower()] = _operation_of(endpoint, method, body)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Bunraku's master",
            "version": __version__,
            "description": "The calls of Puppet 3.x and of 4 to 8. x-allowed says whom the default rules let in. Where the master has a "
            "store, the calls below /pdb in store.yaml are here, too, for whom the site's auth.conf names.",
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
    "busy": {"description": "Too much to do; Retry-After says when to come again."},
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
        access = allowed_caller(MODERN_RULES if modern else LEGACY_RULES, access_paths, "find" if verb == "head" else verb)
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


def _operation_of(endpoint: Endpoint, method: str, body: Body) -> dict[str, Any]:
    names = [part[1:-1] for part in endpoint.path.split("/") if part.startswith("{")]
    path = endpoint.path.replace("{certname}", "node.example.com").replace("{", "").replace("}", "")
    segments = path.split("/")[3:]
    rule_paths = [path]
    if path.startswith(f"{_CA}/certificate") and len(segments) == 2:
        rule_paths.insert(0, f"/{segments[0].replace('statuses', 'status')}/{segments[1]}")
    search = segments[:1] == ["certificate_statuses"]
    operation: dict[str, Any] = {
        "operationId": f"{method.lower()}-{endpoint.path.strip('/').replace('/', '-').replace('{', '').replace('}', '')}",
        "summary": endpoint.doc,
        "x-allowed": allowed_caller(MODERN_RULES, rule_paths, "search" if search else _VERBS[method]),
        "parameters": [
            *({"$ref": "#/components/parameters/certname"} if name == "certname" else _path_parameter(name) for name in names),
            *({"in": "query", "name": name, "schema": {"type": "string"}} for name in endpoint.query),
        ],
        "responses": _responses([endpoint.answer] if endpoint.answer else []),
    }
    return operation | ({"requestBody": _content(_BODIES[body])} if body else {})


def _path_parameter(name: str) -> dict[str, Any]:
    return {**_PARAMETERS["key"], "name": name}


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

"""
/puppet-ca/v1: puppetserver's CA endpoints over the CA service, with its texts and codes. Source: protocol reference 3.8 to 3.12.

Text in, text out: errors here are plain sentences, not the JSON of /puppet/v3.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from ca.service import CaService
from certs.ocsp import MAX_REQUEST_BYTES, REQUEST_MIME, RESPONSE_MIME
from httpd.connections.connection import HttpRequest
from httpd.messages import bodies
from httpd.messages.conditional import Validators
from httpd.messages.responses import Response, error_response, text_response
from shared.client import Client
from shared.data import plainjson
from shared.errors import BadData, BadRequest, MethodNotAllowed, NotAcceptable, NotFound, PuppetError, UnsupportedMediaType
from shared.indirector.paths import parameters, single
from shared.models.ocsp import request_of
from shared.names import valid_certname
from shared.wire.dialects import MODERN

from ..authorization.defaults import ADMINISTRATOR, EVERYBODY, rule
from ..authorization.rules import Below, Exactly, OneOf
from .limits import MasterLimits
from .routes import EndpointCall, EndpointRoute, RequestTarget, denial_for
from .schemes import is_internal

log = logging.getLogger("puppet.http")

T = TypeVar("T")

_TEXT, _JSON = "text/plain", "application/json"
_JSON_KINDS = ("application/json", "text/pson", "pson")
_MAX_NAMES = 10_000  # in one clean or sign
_DONE = Response(204, content_type="text/plain")  # 5.x clients give up on an answer without a type
_MISSPELT = "certificate_statuss"  # the plural as 5.x clients build it


class CaEndpoints:
    """The endpoints below /puppet-ca/v1."""

    def __init__(self, ca: CaService, limits: MasterLimits) -> None:
        self.ca = ca
        self.limits = limits

    async def respond(self, call: EndpointCall) -> Response:
        """Return the response, also to errors, which are plain text here; raise those that a stranger must not read."""
        client, target = call.request.client, _corrected_spelling(call.target)
        try:
            return await self._answer(call, target)
        except PuppetError as err:
            if is_internal(err) and not client.authenticated:
                raise
            if err.status >= 500:
                log.error("%s %s: %s", client.address, client.name, err)
            return error_response(err)

    async def _answer(self, call: EndpointCall, target: RequestTarget) -> Response:
        name, *rest = target.segments[2:] or ("",)
        endpoint = _HANDLERS.get(name)
        if endpoint is not None:
            call.request.endpoint = name
        denied = denial_for(target, call, *rule_paths(name, rest), verb=rule_verb(name, target))
        if denied is not None:
            return denied
        if endpoint is None:
            raise NotFound("Not Found")
        return await endpoint(self, call.request, target, call.request.client, rest)

    async def _certificate(self, request: HttpRequest, target: RequestTarget, client: Client, rest: Sequence[str]) -> Response:
        name = _single_segment(rest)
        _require_method(target, "GET")
        if name == "ca":
            return await self._unless_unchanged(request, self.ca.store.certificates_written, asyncio.to_thread(self.ca.authority_pem))
        pem = await self.ca.certificate(valid_certname(name))
        return _pem(_require(pem, f"Could not find certificate {name}"))

    async def _certificate_request(self, request: HttpRequest, target: RequestTarget, client: Client, rest: Sequence[str]) -> Response:
        name = valid_certname(_single_segment(rest))
        _require_method(target, "GET", "PUT", "DELETE")
        missing = f"Could not find certificate_request {name}"
        if target.method == "PUT":
            body = await bodies.read_body(request, self.limits.max_request_body)
            await self.ca.submit_request(name, body, client=client)
            return text_response(200, "")
        if target.method == "DELETE":
            if not await self.ca.delete_request(name, client=client):
                raise NotFound(missing)
            return _DONE
        return _pem(_require(await self.ca.request(name), missing))

    async def _crl(self, request: HttpRequest, target: RequestTarget, client: Client, rest: Sequence[str]) -> Response:
        if target.method == "PUT" and not rest:
            body = await bodies.read_body(request, self.limits.max_crl_body)
            await self.ca.upload_crls(body, client=client)
            return text_response(200, "Successfully updated CRLs.")
        _single_segment(rest)
        _require_method(target, "GET")
        return await self._unless_unchanged(request, self.ca.store.crls_written, self.ca.crl())

    async def _unless_unchanged(self, request: HttpRequest, written: Callable[[], float], pem: Awaitable[bytes]) -> Response:
        """Return the text, or 304 when the client certainly has it already. The time is read before the text."""
        when = await asyncio.to_thread(written)
        body, now = await pem, time.time()
        validators = Validators.of(body, when, now)
        if validators.match(request.headers, now):
            return Response(304, headers=validators.headers)
        return replace(_pem(body), headers=validators.headers)

    async def _status(self, request: HttpRequest, target: RequestTarget, client: Client, rest: Sequence[str]) -> Response:
        name = valid_certname(_single_segment(rest))
        _require_method(target, "GET", "PUT", "DELETE")
        if target.method == "PUT":
            body = await self._json_body(request)
            if "desired_state" not in body:
                raise BadRequest('Missing required parameter "desired_state"')
            await self.ca.set_state(name, body["desired_state"], body.get("cert_ttl"), client=client)
            return _DONE
        if target.method == "DELETE":
            if not await self.ca.delete(name, client=client):
                raise NotFound("Resource not found.")
            return _DONE
        status = _require(await self.ca.status(name), "Resource not found.")
        return _json(status.to_data(MODERN), _status_content_type(request))

    async def _statuses(self, request: HttpRequest, target: RequestTarget, client: Client, rest: Sequence[str]) -> Response:
        _require_method(target, "GET")
        if len(rest) != 1 or not rest[0]:
            raise BadRequest("Missing URL Segment")
        options = parameters(target.raw_query)
        state, kinds = single("state", options.get("state")), options.get("for", [])
        statuses = await self.ca.statuses(state or "", [kinds] if isinstance(kinds, str) else kinds)
        return _json([status.to_data(MODERN) for status in statuses], _status_content_type(request))

    async def _expirations(self, request: HttpRequest, target: RequestTarget, client: Client, rest: Sequence[str]) -> Response:
        _require_no_segments(rest)
        _require_method(target, "GET")
        return _json(await self.ca.expirations(), "application/json")

    async def _clean(self, request: HttpRequest, target: RequestTarget, client: Client, rest: Sequence[str]) -> Response:
        _require_no_segments(rest)
        _require_method(target, "PUT")
        names = _certnames(await self._json_body(request))
        if names is None:
            raise BadRequest('Invalid request body: expected {"certnames": [names]}')
        missing = await self.ca.clean(names, client=client)
        if not missing:
            return text_response(200, "Successfully cleaned all certs.")
        return text_response(200, f"The following certs do not exist and cannot be revoked: {json.dumps(missing)}")

    async def _sign(self, request: HttpRequest, target: RequestTarget, client: Client, rest: Sequence[str]) -> Response:
        _require_method(target, "POST")
        if list(rest) == ["all"]:
            return _json(await self.ca.sign_all(client=client), "application/json")
        _require_no_segments(rest)
        body = await self._json_body(request)
        names = _certnames(body)
        if names is None:
            error = {"kind": "schema-violation", "submitted": body, "error": 'expected {"certnames": [names]}'}
            return replace(_json(error, "application/json"), status=422)
        return _json(await self.ca.sign(names, client=client), "application/json")

    async def _renewal(self, request: HttpRequest, target: RequestTarget, client: Client, rest: Sequence[str]) -> Response:
        _require_no_segments(rest)
        _require_method(target, "POST")
        return _pem(await self.ca.renew(client.certificate, client=client))

    async def _ocsp(self, request: HttpRequest, target: RequestTarget, client: Client, rest: Sequence[str]) -> Response:
        """Return an OCSP response. RFC 6960 A.1: the request is the body of a POST, or follows a GET's path in base64."""
        _require_method(target, "GET", "POST")
        if target.method == "POST":
            _require_no_segments(rest)
            if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != REQUEST_MIME:
                raise UnsupportedMediaType(f"An OCSP request has the Content-Type {REQUEST_MIME}")
            ocsp_request = await bodies.read_body(request, MAX_REQUEST_BYTES)
        else:
            ocsp_request = request_of(_single_segment(rest))
        for_rest_terminus = request.headers.get("Accept", "").strip() == "application/octet-stream"  # a peer's rest terminus
        return Response(200, await self.ca.ocsp(ocsp_request), "application/octet-stream" if for_rest_terminus else RESPONSE_MIME)

    async def _json_body(self, request: HttpRequest) -> dict[str, Any]:
        kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind and kind not in _JSON_KINDS:
            raise UnsupportedMediaType("Unsupported media type.")
        body = await bodies.read_body(request, self.limits.max_request_body)
        if not body.strip():
            raise BadRequest("Empty request body.")
        try:
            data = plainjson.loads(body)
        except BadData as err:
            raise BadRequest("Request body is not JSON.") from err
        if not isinstance(data, dict):
            raise BadRequest("Request body is not JSON.")
        return data


def _corrected_spelling(target: RequestTarget) -> RequestTarget:
    """Return the target with the spelling that rules use."""
    if target.segments[2:3] != (_MISSPELT,):
        return target
    segments = (*target.segments[:2], "certificate_statuses", *target.segments[3:])
    return replace(target, segments=segments, path="/" + "/".join(segments))


def rule_paths(name: str, rest: Sequence[str]) -> tuple[str, ...]:
    """Return the path that rules of 3.8's form use: the singular indirection and the key."""
    if not rest or not name.startswith("certificate") or name == "certificate_renewal":
        return ()
    return (f"/{'certificate_status' if name == 'certificate_statuses' else name}/{'/'.join(rest)}",)


def rule_verb(name: str, target: RequestTarget) -> str:
    """Return the verb that rules of 3.8's form use."""
    return "search" if name == "certificate_statuses" and target.method == "GET" else target.verb


def _single_segment(rest: Sequence[str]) -> str:
    if len(rest) != 1 or not rest[0]:
        raise NotFound("Not Found")
    return rest[0]


def _require_no_segments(rest: Sequence[str]) -> None:
    if rest:
        raise NotFound("Not Found")


def _require_method(target: RequestTarget, *methods: str) -> None:
    if target.method not in methods and not (target.method == "HEAD" and "GET" in methods):
        raise MethodNotAllowed("Method not allowed.")


def _require(value: T | None, message: str) -> T:
    if value is None:
        raise NotFound(message)
    return value


def _pem(pem: bytes) -> Response:
    return Response(200, pem, "text/plain")


def _json(data: object, kind: str) -> Response:
    return Response(200, plainjson.dumps(data), kind)


def _status_content_type(request: HttpRequest) -> str:
    """Return the content type of a status: the first that the client accepts among those that are JSON; raise NotAcceptable."""
    accept = [item.split(";")[0].strip() for item in request.headers.get("Accept", "*/*").split(",")]
    for item in accept:
        if item in _JSON_KINDS:
            return item
        if item in ("*/*", "application/*", ""):
            return "application/json"
    raise NotAcceptable("No acceptable resource available.")


def _certnames(body: dict[str, Any]) -> list[str] | None:
    names = body.get("certnames")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len(names) > _MAX_NAMES:
        return None
    return [valid_certname(name) for name in names]


async def _nothing(part: object, call: EndpointCall) -> Response:
    return text_response(404, "Not Found")


_CA = "/puppet-ca/v1"
_CERTIFICATE = rule(f"{_CA}/certificate", Below("/certificate"), "find", EVERYBODY, authenticated=False)
_REQUEST = rule(f"{_CA}/certificate_request", Below("/certificate_request"), "find save", EVERYBODY, authenticated=False)
_CRL = rule(f"{_CA}/crl", Exactly("/certificate_revocation_list/ca"), "find", EVERYBODY, authenticated=False)
_UPLOAD = rule(f"{_CA}/crl upload", Exactly(f"{_CA}/certificate_revocation_list"), "save", ADMINISTRATOR)
_STATUSES = OneOf((Below("/certificate_status"), Below(f"{_CA}/certificate_statuses")))
_STATUS = rule(f"{_CA}/certificate_status", _STATUSES, "find search save destroy", ADMINISTRATOR)
_EXPIRATIONS = rule(f"{_CA}/expirations", Exactly(f"{_CA}/expirations"), "find", EVERYBODY)
_CLEAN = rule(f"{_CA}/clean", Exactly(f"{_CA}/clean"), "save", ADMINISTRATOR)
_SIGN = rule(f"{_CA}/sign", Below(f"{_CA}/sign"), "save", ADMINISTRATOR)
_RENEWAL = rule(f"{_CA}/certificate_renewal", Exactly(f"{_CA}/certificate_renewal"), "save", EVERYBODY)
# A signed answer costs a signature of the CA, so that strangers get none; a rule of the site may allow it.
_OCSP = rule(f"{_CA}/ocsp", OneOf((Below(f"{_CA}/ocsp"), Below("/ocsp"))), "find save", EVERYBODY)

_HANDLERS = {
    "certificate": CaEndpoints._certificate,
    "certificate_request": CaEndpoints._certificate_request,
    "certificate_revocation_list": CaEndpoints._crl,
    "certificate_status": CaEndpoints._status,
    "certificate_statuses": CaEndpoints._statuses,
    "expirations": CaEndpoints._expirations,
    "clean": CaEndpoints._clean,
    "sign": CaEndpoints._sign,
    "certificate_renewal": CaEndpoints._renewal,
    "ocsp": CaEndpoints._ocsp,
}
_route = partial(EndpointRoute, respond=CaEndpoints.respond, part=CaEndpoints, lane=None, is_guarded=False)

ROUTES = (
    _route(f"{_CA}/certificate/{{certname}}", {"GET": ""}, _TEXT, "A certificate, or the CA's own as `ca`.", rule=_CERTIFICATE),
    _route(f"{_CA}/certificate_request/{{certname}}", {"GET": "", "PUT": "pem", "DELETE": ""}, _TEXT, "A pending request.", rule=_REQUEST),
    _route(f"{_CA}/certificate_revocation_list/ca", {"GET": ""}, _TEXT, "The revocation lists.", rule=_CRL),
    _route(f"{_CA}/certificate_revocation_list", {"PUT": "pem"}, _TEXT, "Replace revocation lists of the chain above.", rule=_UPLOAD),
    _route(f"{_CA}/certificate_status/{{certname}}", {"GET": "", "PUT": "json", "DELETE": ""}, _JSON, "Sign or revoke.", rule=_STATUS),
    _route(f"{_CA}/certificate_statuses/{{any}}", {"GET": ""}, _JSON, "All certificates and requests.", ("state", "for"), rule=_STATUS),
    _route(f"{_CA}/expirations", {"GET": ""}, _JSON, "When the CA's certificates and revocation lists expire.", rule=_EXPIRATIONS),
    _route(f"{_CA}/clean", {"PUT": "json"}, _TEXT, "Revoke and remove several.", rule=_CLEAN),
    _route(f"{_CA}/sign", {"POST": "json"}, _JSON, "Sign several.", rule=_SIGN),
    _route(f"{_CA}/sign/all", {"POST": ""}, _JSON, "Sign all that may be signed.", rule=_SIGN),
    _route(f"{_CA}/certificate_renewal", {"POST": ""}, _TEXT, "A new certificate for the one that is presented.", rule=_RENEWAL),
    _route(f"{_CA}/ocsp", {"POST": "ocsp"}, RESPONSE_MIME, "The state of certificates, RFC 6960.", rule=_OCSP),
    _route(f"{_CA}/ocsp/{{request}}", {"GET": ""}, RESPONSE_MIME, "The same, with the request in base64.", rule=_OCSP),
    _route(f"{_CA}/{{path*}}", {}, name="unknown"),
    EndpointRoute("/puppet-ca/{path*}", {}, respond=_nothing, name="unknown", lane=None, is_guarded=False),
)

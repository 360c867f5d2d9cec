"""
The answers of each URL scheme to errors, denials and unknown paths.

A scheme is chosen with the call's dialect; handlers call it without knowing which one it is. Source: protocol reference 2.1, 2.2, 2.7.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import replace

from httpd.messages.bodies import TooSlow
from httpd.messages.responses import Response, error_headers, incident_response, one_line, text_response
from shared.client import Client
from shared.errors import (
    BadRequest,
    CompileError,
    Denied,
    MethodNotAllowed,
    MissingHeader,
    NoEnvironment,
    NotAcceptable,
    NotFound,
    OutOfSpace,
    PuppetError,
    TooLarge,
    Unavailable,
    UnsupportedMediaType,
)
from shared.indirector.core import NotAuthorizedByTerminus
from shared.indirector.paths import IndirectorCall
from shared.wire.dialects import LEGACY, MODERN, Dialect

from ..authorization.rules import AccessDecision, Rule

_PREFIXES: tuple[tuple[type[PuppetError], str], ...] = (
    (NotFound, "Not Found: "),
    (Denied, "Not Authorized: "),
    (NotAcceptable, "Not Acceptable: "),
    (MethodNotAllowed, "Method Not Allowed: "),
    (UnsupportedMediaType, "Unsupported Media Type: "),
)
PLAIN = "text/plain;charset=utf-8"
_HINTS_FOR_PEERS = (CompileError, NoEnvironment)  # about a site's own code; other hints are for the master's administrator alone
_SAME_STATUS_IN_ALL = (TooLarge, Unavailable, OutOfSpace, TooSlow)


def is_internal(error: PuppetError) -> bool:
    """
    Return whether the fault is the master's, such as a broken file of the CA.

    Such an error may name paths of the master: clients without a certificate get the number of the request instead. An error in the
    code of a catalog is not an internal one: whoever may ask for catalogs may read it.
    """
    return error.status >= 500 and not isinstance(error, CompileError | Unavailable | OutOfSpace)


class Scheme(ABC):
    """The responses of one URL scheme."""

    dialect: Dialect

    @abstractmethod
    def error(self, error: PuppetError) -> Response:
        """Return the response to a foreseen error."""

    @abstractmethod
    def forbidden(self, call: IndirectorCall, client: Client, decision: AccessDecision) -> Response:
        """Return the response to a call that the rules deny."""

    @abstractmethod
    def incident(self, number: str) -> Response:
        """Return the response to an unforeseen error: nothing but a number to look for in the log."""

    @abstractmethod
    def no_accept(self) -> PuppetError:
        """Return the error for a find that names no format."""


class LegacyScheme(Scheme):
    """Puppet 3.x: the message as text; 400 for all errors without a status of their own, compile errors included."""

    dialect = LEGACY

    def error(self, error: PuppetError) -> Response:
        status, message = 400, error.legacy or str(error)
        if isinstance(error, NotAuthorizedByTerminus | UnsupportedMediaType):
            pass
        elif isinstance(error, NotFound | NotAcceptable) and not error.legacy:  # with words of its own, 3.8 has a bad request
            status, message = error.status, _message_prefix(error) + message
        elif isinstance(error, (Denied, *_SAME_STATUS_IN_ALL)):
            status = error.status
        return replace(text_response(status, one_line(message)), headers=error_headers(error))

    def forbidden(self, call: IndirectorCall, client: Client, decision: AccessDecision) -> Response:
        who = f"{client.name}({client.address})"
        where = _rule_place(decision.rule)
        authenticated = " authenticated " if client.authenticated else ""
        return text_response(
            403, one_line(f"Forbidden request: {who} access to /{call.indirection}/{call.key} [{call.verb}]{authenticated}{where}")
        )

    def incident(self, number: str) -> Response:
        return incident_response(number)

    def no_accept(self) -> PuppetError:
        return NotAcceptable("Missing required Accept header")


def _rule_place(rule: Rule | None) -> str:
    # The reference prints an empty file name; agents' logs of many sites are searched for this form.
    return f" at :{rule.line or ''}" if rule is not None else ""


class ModernScheme(Scheme):
    """Puppet 4 and later: JSON with `message` and `issue_kind`."""

    dialect = MODERN

    def error(self, error: PuppetError) -> Response:
        status = error.status
        if isinstance(error, NotAuthorizedByTerminus):
            status = 400  # the reference says 500; a bad request of a peer is never our error
        return self._json(status, _message_prefix(error) + str(error), error.issue_kind, error)

    def _json(self, status: int, message: str, kind: str, error: PuppetError | None = None) -> Response:
        # Puppet's own agents read message and issue_kind alone; ours show the hint as well.
        hint = {"hint": one_line(error.hint)} if isinstance(error, _HINTS_FOR_PEERS) and error.hint else {}
        body = json.dumps({"message": one_line(message), "issue_kind": kind, **hint}).encode("ascii")
        headers = error_headers(error) if error else {}
        return Response(status, body, "application/json;charset=utf-8", headers)

    def forbidden(self, call: IndirectorCall, client: Client, decision: AccessDecision) -> Response:
        return forbidden_path(call.path, call.method)

    def incident(self, number: str) -> Response:
        return replace(self._json(500, f"Server Error: incident {number}", "RUNTIME_ERROR"), close=True)

    def no_accept(self) -> PuppetError:
        return MissingHeader("Missing required Accept header")


class PlainScheme(ModernScheme):
    """puppetserver's own endpoints: the message as text, without a Content-Type when a thing is missing."""

    def error(self, error: PuppetError) -> Response:
        message = f"Internal Server Error: {error}" if error.status == 500 else str(error)
        kind = None if isinstance(error, NotFound) else PLAIN
        return replace(text_response(error.status, one_line(message), kind), headers=error_headers(error))

    def incident(self, number: str) -> Response:
        return replace(text_response(500, f"Internal Server Error: incident {number}", PLAIN), close=True)


def _message_prefix(error: PuppetError) -> str:
    if isinstance(error, NotAuthorizedByTerminus):
        return "Server Error: "
    for cls, prefix in _PREFIXES:
        if isinstance(error, cls):
            return prefix
    if isinstance(error, BadRequest):
        return "Bad Request: "
    return "Server Error: " if isinstance(error, CompileError) or error.status == 500 else ""


def forbidden_path(path: str, method: str) -> Response:
    """Return puppetserver's denial: text without a Content-Type."""
    return text_response(
        403, one_line(f"Forbidden request: {path} (method :{method.lower()}). Please see the server logs for details."), None
    )


def not_routed(path: str, accept: str) -> Response:
    """Return the web server's own 404: a page, or JSON for clients that ask for it."""
    if "json" in accept:
        return Response(
            404, json.dumps({"message": "Not Found", "url": one_line(path), "status": "404"}).encode("ascii"), "application/json"
        )
    page = b"<html>\n<head><title>Error 404 Not Found</title></head>\n<body><h2>HTTP ERROR 404 Not Found</h2></body>\n</html>\n"
    return Response(404, page, "text/html;charset=utf-8")


LEGACY_SCHEME = LegacyScheme()
MODERN_SCHEME = ModernScheme()
PLAIN_SCHEME = PlainScheme()


def scheme_of(dialect: Dialect) -> Scheme:
    """Return the scheme that goes with a dialect."""
    return LEGACY_SCHEME if dialect is LEGACY else MODERN_SCHEME

"""The indirected calls of both schemes: each is authorized, carried out by its binding, and its result turned into a response."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from environments.directories import Environments
from httpd.connections.connection import HttpRequest
from httpd.messages import bodies
from httpd.messages.responses import Response
from shared.client import Client
from shared.errors import BadData, BadRequest, MethodNotAllowed, NoEnvironment, NoHandler, NotAcceptable, NotFound, PuppetError
from shared.indirector.core import Binding, Indirection, Indirector, Model, Request, Stream
from shared.indirector.paths import IndirectorCall
from shared.names import quoted_for_log, valid_certname
from shared.wire.formats import Format, accepted_formats, of_content_type

from ..authorization.auth_conf import Rules
from ..authorization.rules import AccessDecision, AccessRequest, decide
from ..pools.body_parser import BodyParser
from .limits import MasterLimits
from .schemes import not_routed, scheme_of

log = logging.getLogger("puppet.http")

_MAX_IN_MEMORY = 16 * 1024 * 1024  # bytes of a stream in a format without a raw form, which has to be held
_MAX_KEY = 4096

# Their keys are certnames, which are validated before the caller's access is decided.
_KEYED_BY_CERTNAME = frozenset({"catalog", "node", "facts", "report", "certificate", "certificate_request", "certificate_status"})


# Served below /puppet-ca/v1, and in scheme A; never below /puppet/v3.
OF_THE_CA = frozenset({"certificate", "certificate_request", "certificate_revocation_list", "certificate_status", "ocsp"})

_PLURALS = {"facts": "facts_search", "status": "statuses", "certificate_status": "certificate_statuses"}


def access_request_for(call: IndirectorCall, client: Client) -> AccessRequest:
    """Return the access request for a call: its singular indirection and key, and in scheme B also the URL's path."""
    path = f"/{call.indirection}/{call.key}"
    paths = (path, call.path) if call.prefix else (path,)
    query = call.options if call.environment is None else {**call.options, "environment": call.environment}
    return AccessRequest(paths, call.verb, call.environment, client, _modern_url(call), call.method.lower(), query)


def _modern_url(call: IndirectorCall) -> str:
    """Return scheme B's path for the thing, built from the parsed call, so that no spelling of a URL evades a rule."""
    plural = _PLURALS.get(call.indirection, f"{call.indirection}s")
    api = "/puppet-ca/v1" if call.indirection in OF_THE_CA else "/puppet/v3"
    return f"{api}/{plural if call.verb == 'search' else call.indirection}/{call.key}"


def check_key(call: IndirectorCall) -> None:
    """Raise BadRequest for keys that no thing can have: with control characters, far too long, or no certname where it must be one."""
    if len(call.key) > _MAX_KEY or any(ord(c) < 32 or ord(c) == 127 for c in call.key):
        raise BadRequest(f"The key {quoted_for_log(call.key)} is not valid")
    if call.indirection in _KEYED_BY_CERTNAME and call.verb != "search":
        valid_certname(call.key)


@dataclass(frozen=True, slots=True)
class Handlers:
    """Carries out calls by the bindings of this process."""

    indirector: Indirector
    environments: Environments
    limits: MasterLimits
    parser: BodyParser = field(default_factory=BodyParser)

    async def respond(self, request: HttpRequest, call: IndirectorCall, client: Client, rules: Rules) -> Response:
        """
        Return the response to an indirected call, which is checked in the order of its scheme.

        Raises:
            PuppetError: The scheme puts it into words.
        """
        return await (self._modern(request, call, client, rules) if call.prefix else self._legacy(request, call, client, rules))

    async def _legacy(self, request: HttpRequest, call: IndirectorCall, client: Client, rules: Rules) -> Response:
        assert call.environment is not None
        await self._check_environment(call.environment)
        self._check_key_present(call)
        check_key(call)
        decision = decide(rules.legacy, access_request_for(call, client))
        if not decision.allowed:
            return self._denied(call, client, decision)
        if call.indirection not in self.indirector:
            if call.indirection in ("key", "data_binding"):
                raise NoHandler(f"No handler for {call.indirection}")
            raise BadRequest(f"Could not find indirection '{call.indirection}'")
        return await self._run(request, call, client)

    async def _modern(self, request: HttpRequest, call: IndirectorCall, client: Client, rules: Rules) -> Response:
        binding = self.indirector.get(call.indirection)
        if binding is None or not binding.indirection.remote or call.indirection in OF_THE_CA:
            return not_routed(call.path, request.headers.get("Accept", ""))
        if call.method == "DELETE":
            raise MethodNotAllowed(f"DELETE is not supported for {call.indirection}")
        if call.key:
            check_key(call)
        decision = decide(rules.modern, access_request_for(call, client))
        if not decision.allowed:
            return self._denied(call, client, decision)
        call = await self._with_form(request, call)
        if call.environment is None:
            raise BadRequest("An environment parameter must be specified")
        if self.indirector[call.indirection].indirection.needs_environment:
            await self._check_environment(call.environment)
        self._check_key_present(call)
        return await self._run(request, call, client)

    def _denied(self, call: IndirectorCall, client: Client, decision: AccessDecision) -> Response:
        path = quoted_for_log(f"/{call.indirection}/{call.key}", 200)
        rule = decision.rule.name if decision.rule else "none"
        log.warning("Denied: %s(%s) access to %s [%s]; the rule that decided: %s", client.name, client.address, path, call.verb, rule)
        return scheme_of(call.dialect).forbidden(call, client, decision)

    async def _check_environment(self, name: str) -> None:
        if not await self.environments.exists(name):
            raise NoEnvironment(name)

    def _check_key_present(self, call: IndirectorCall) -> None:
        if not call.key:
            raise BadRequest(f"No request key specified in {quoted_for_log(call.path)[1:-1]}")

    async def _with_form(self, request: HttpRequest, call: IndirectorCall) -> IndirectorCall:
        """Return a find by POST with its form's parameters; the form's environment counts when the URL has none."""
        if call.method != "POST":
            return call
        limit = self.limits.body(self.indirector[call.indirection].indirection.limit)
        kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        body = await bodies.read_body(request, limit)
        if body and kind != "application/x-www-form-urlencoded":
            raise BadRequest(f"A find by POST takes a form, not {quoted_for_log(kind)}")
        return await self.parser.parse(lambda: call.with_form(body), len(body))

    async def _run(self, request: HttpRequest, call: IndirectorCall, client: Client) -> Response:
        binding = self.indirector[call.indirection]
        if not binding.indirection.remote:
            raise NoHandler(f"No handler for {call.indirection}")
        if call.method == "POST" and not call.prefix:
            call = await self._with_form(request, call)
        indirected: Request[Any] = Request(
            key=call.key,
            environment=call.environment or "",
            client=client,
            options=binding.indirection.allowed(call.options),
            dialect=call.dialect,
        )
        accept = request.headers.get("Accept")
        match call.verb:
            case "find":
                return await self._find(binding, indirected, call, accept)
            case "search":
                return await self._search(binding, indirected, call, accept)
            case "head":
                if not await binding.head(indirected):
                    raise _missing(call)
                return Response()
            case "save":
                return await self._save(request, binding, indirected, call, accept)
            case "destroy":
                form = _result_formats(call, binding.indirection, accept)[0]
                return _result_response(await binding.destroy(indirected), form)

    async def _find(self, binding: Binding[Any], indirected: Request[Any], call: IndirectorCall, accept: str | None) -> Response:
        formats = _formats(call, binding.indirection, accept)
        instance = await binding.find(indirected)
        if instance is None:
            raise _missing(call)
        if isinstance(instance, Stream):
            return await _stream_response(instance, formats[0])
        if not formats[0].raw and (body := instance.encoded(call.dialect, formats[0])) is not None:
            return Response(200, body, formats[0].content_type)
        return await _render(formats, lambda form: call.dialect.dump(binding.indirection, instance, form))

    async def _search(self, binding: Binding[Any], indirected: Request[Any], call: IndirectorCall, accept: str | None) -> Response:
        formats = _formats(call, binding.indirection, accept)
        instances = await binding.search(indirected)
        if instances is None:
            raise NotFound(f"Could not find instances in {call.indirection} with '{quoted_for_log(call.key)[1:-1]}'")
        return await _render(formats, lambda form: call.dialect.dump_all(binding.indirection, instances, form))

    async def _save(
        self, request: HttpRequest, binding: Binding[Any], indirected: Request[Any], call: IndirectorCall, accept: str | None
    ) -> Response:
        indirection = binding.indirection
        answer_format = _result_formats(call, indirection, accept)[0]
        form = of_content_type(request.headers.get("Content-Type"), call.dialect.formats_read(indirection))
        instance = await self._instance(request, indirection, call, form)
        return _result_response(await binding.save(replace(indirected, body=instance)), answer_format)

    async def _instance(self, request: HttpRequest, indirection: Indirection[Any], call: IndirectorCall, form: Format) -> Model:
        limit = self.limits.body(indirection.limit)
        if not issubclass(indirection.model, Stream):
            body = await bodies.read_body(request, limit)
            instance: Model = await self.parser.load(indirection, body, call.dialect, form)
            return instance
        if form.raw:
            size = request.content_length if not bodies.coding_of(request) else None
            if size is not None and size > limit:
                raise bodies.too_large(limit)
            return indirection.model.from_chunks(call.key, lambda: bodies.body_chunks(request, limit), size)
        body = await bodies.read_body(request, min(limit, _MAX_IN_MEMORY))
        data = await self.parser.parse(lambda: form.load(body), len(body), in_thread="yaml" in form.name)
        contents = data.get("contents") if isinstance(data, dict) else None
        if not isinstance(contents, str):
            raise BadData(f"Expected an object with the text 'contents' to make a {indirection.model.__name__} of")
        content = contents.encode("utf-8", "surrogateescape")
        return indirection.model.from_chunks(call.key, lambda: _one_chunk(content), len(content))


async def _one_chunk(data: bytes) -> Any:
    yield data


def _missing(call: IndirectorCall) -> NotFound:
    return NotFound(f"Could not find {call.indirection} {quoted_for_log(call.key, 400)[1:-1]}")


def _formats(call: IndirectorCall, indirection: Indirection[Any], accept: str | None) -> list[Format]:
    if accept is None:
        raise scheme_of(call.dialect).no_accept()
    return accepted_formats(accept, call.dialect.formats_of(indirection))


def _result_formats(call: IndirectorCall, indirection: Indirection[Any], accept: str | None) -> list[Format]:
    """Return the formats for the result of a save or destroy; without Accept the scheme's own."""
    formats = call.dialect.formats_of(indirection)
    if accept is not None:
        return accepted_formats(accept, formats)
    default = call.dialect.formats.get("json") or call.dialect.formats["yaml"]
    return [default]


async def _render(formats: list[Format], dump: Callable[[Format], bytes]) -> Response:
    """Return a response in the first of `formats` that can be written; `dump` is called in a thread."""
    failure: PuppetError | None = None
    for form in formats:
        try:
            return Response(200, await asyncio.to_thread(dump, form), form.content_type)
        except PuppetError as err:
            failure = failure or err
    raise failure or NotAcceptable("No supported formats are acceptable")


async def _stream_response(stream: Stream, form: Format) -> Response:
    if form.raw:
        return Response(200, content_type=form.content_type, chunks=stream.chunks, size=stream.size)
    content = bytearray()
    async for chunk in stream.chunks():
        content += chunk
        if len(content) > _MAX_IN_MEMORY:
            raise BadRequest(f"The contents are too long for the format {form.name}; ask for them as they are")
    return Response(200, form.dump({"contents": content.decode("utf-8", "surrogateescape")}), form.content_type)


def _result_response(result: object, form: Format) -> Response:
    """Return a response with the result of a save or destroy. Even an empty one has a Content-Type, without which 3.x clients fail."""
    if not form.raw:
        return Response(200, form.dump(result), form.content_type)
    if result is None or isinstance(result, bytes):
        return Response(200, result or b"", form.content_type)
    return Response(200, str(result).encode(), form.content_type)

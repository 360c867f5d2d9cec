"""
The store's API below /pdb under the master's own port: requests are passed on to its Unix socket.

Of a command, auth.conf is asked about the payload's certname and producer. A client that may not ask /pdb/query/v4 itself, which reaches
everything that is stored, may not reach it by subqueries either.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from httpd.connections.connection import HttpRequest
from httpd.messages.bodies import packed_chunks, read_body
from httpd.messages.responses import Response
from shared.client import NO_SUBQUERIES
from shared.data import plainjson
from shared.errors import BadName, BadRequest, PuppetError, Unavailable
from shared.indirector.paths import decode_path, parameters, single

from .routes import EndpointCall, EndpointRoute, RequestTarget, decision_for, denial_for
from .schemes import not_routed

_REQUEST_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "Content-Encoding", "X-Uncompressed-Length", "User-Agent")
_RESPONSE_HEADERS = ("Content-Encoding", "Content-Disposition", "Location", "Retry-After", "Vary", "X-Records", "X-Deprecation")
_EVERYTHING = "/pdb/query/v4"
_CHUNK = 64 * 1024
_DOWN = "The store cannot be reached"


def store_target(request: HttpRequest) -> RequestTarget:
    """
    Return the target of a request as rules see it: a slash that is a part of a segment stays escaped.

    Raises:
        BadName: The path has broken escapes, or segments that a reader of paths may resolve.
    """
    segments = tuple(decode_path(part).replace("/", "%2F") for part in request.sent_path.split("/")[1:])
    if any(part in (".", "..") or any(ord(c) < 32 or ord(c) == 127 for c in part) for part in segments):
        raise BadName("The path is not valid")
    return RequestTarget(request.method, request.sent_query, "/" + "/".join(segments), segments)


class StoreProxy:
    """
    Passes requests on to a store at a Unix socket. To be used with `async with`.

    Args:
        max_body: Bytes of a request's body, as it is sent.
        max_command: Bytes of a command, unpacked.
        silence: Seconds in which the store has to begin its answer, and to go on with it.
    """

    def __init__(self, socket: Path, max_body: int, max_command: int, silence: float) -> None:
        self._socket = socket
        self._max_body = max_body
        self._max_command = max_command
        self._silence = silence
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> StoreProxy:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=self._silence)
        connector = aiohttp.UnixConnector(str(self._socket), limit=0)
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=("User-Agent", "Content-Type", "Accept", "Accept-Encoding"),
        )
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._session is not None:
            await self._session.close()

    async def respond(self, call: EndpointCall) -> Response:
        """Return the store's response, if a rule lets the client have it; raise Unavailable when the store does not answer."""
        request, target = call.request, store_target(call.request)
        if denied := denial_for(target, call):
            return denied
        assert self._session is not None
        headers = {name: value for name in _REQUEST_HEADERS if (value := request.headers.get(name)) is not None}
        body: AsyncIterator[bytes] | bytes | None = packed_chunks(request, self._max_body) if request.body_exists else None
        if target.segments[:2] == ("pdb", "cmd") and request.method == "POST":
            if target.segments[2:] != ("v1",):  # of the master itself
                return not_routed(target.path, request.headers.get("Accept", ""))
            body = await read_body(request, self._max_command)
            headers.pop("Content-Encoding", None)
            if denied := denial_for(await asyncio.to_thread(_command_target, target, body), call):
                return denied
        elif not decision_for(replace(target, path=_EVERYTHING), call).allowed:
            headers[NO_SUBQUERIES] = "true"
        url = URL(f"http://store{request.raw_path}", encoded=True)
        async with AsyncExitStack() as stack:
            try:
                answer = await stack.enter_async_context(
                    self._session.request(request.method, url, headers=headers, data=body, allow_redirects=False)
                )
            except (aiohttp.ClientError, TimeoutError, OSError) as err:
                if isinstance(err.__cause__, PuppetError):  # what is wrong with the body of our own client
                    raise err.__cause__ from err
                raise Unavailable(_DOWN, retry_after=5, hint=f"{type(err).__name__}: {err}") from err
            passed_on = {name: value for name in _RESPONSE_HEADERS if (value := answer.headers.get(name)) is not None}
            content_type, size = answer.headers.get("Content-Type"), answer.content_length
            if size == 0 or request.method == "HEAD":
                return Response(answer.status, b"", content_type, passed_on)
            kept = stack.pop_all()
        return Response(answer.status, b"", content_type, passed_on, chunks=lambda: _chunks(answer, kept), size=size)


def _command_target(target: RequestTarget, body: bytes) -> RequestTarget:
    """Return the target with the parameters of a command's body. Raise BadRequest when the body is ambiguous or invalid."""
    sent = parameters(target.raw_query)
    single("certname", sent.get("certname"))
    command, payload = single("command", sent.get("command")), plainjson.loads(body)
    if command is None and isinstance(payload, dict):  # an old client's
        command, payload = payload.get("command"), payload.get("payload")
    if not isinstance(command, str) or not isinstance(payload, dict) or not isinstance(payload.get("certname"), str):
        raise BadRequest("The body is no command whose payload has a certname")
    named = {"certname": payload["certname"], "command": command.replace(" ", "_"), "producer": payload.get("producer") or ""}
    return replace(target, raw_query=urlencode(sent | named, doseq=True, errors="replace"))


async def _chunks(answer: aiohttp.ClientResponse, stack: AsyncExitStack) -> AsyncIterator[bytes]:
    """Yield the body of an answer, as it was sent, and let go of it."""
    async with stack:
        try:
            async for chunk in answer.content.iter_chunked(_CHUNK):
                yield chunk
        except (aiohttp.ClientError, TimeoutError) as err:
            raise ConnectionError("The store broke off its answer") from err


_route = partial(EndpointRoute, respond=StoreProxy.respond, part=StoreProxy)
ROUTES = (_route("/pdb/{api}/{path*}", {}, name="store", lane="store", is_guarded=False, as_sent=True),)

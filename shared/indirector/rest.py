"""The REST terminus: the same indirection, asked of a peer. It needs no code for a new indirection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol

from ..data.plainjson import loads
from ..errors import NotFound, PeerAnswered
from ..wire.dialects import Dialect
from ..wire.formats import Format, of_content_type
from . import paths
from .core import Indirection, M, Request, Stream, Terminus
from .paths import Outgoing, Verb


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer; header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class OpenAnswer(Protocol):
    """An answer whose body is still on its way."""

    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncIterator[bytes]:
        """Return the body; the connection is given back when it ends or is closed."""

    async def read(self) -> bytes:
        """Return the whole body, bounded, for an error's text."""


class Transport(Protocol):
    """
    The interface that sends a request to a peer and returns the response: connections, trust, time-outs, limits, redirects, retries.

    Raises (each method): PeerUnreachable, PeerNotTrusted, TooLarge.
    """

    async def dialect(self) -> Dialect:
        """Return the peer's dialect; ask the peer the first time when it is not known."""

    async def send(self, outgoing: Outgoing, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
        """Return one exchange, the answer held in memory."""

    async def open(self, outgoing: Outgoing, headers: Mapping[str, str], body: AsyncIterator[bytes] | None = None) -> OpenAnswer:
        """Return one exchange, bodies streamed both ways."""


@dataclass(eq=False)
class Rest(Terminus[M]):
    """
    Instances at a peer. 404 is None (or [] becomes None); every other error status raises.

    Args:
        prefix: the API in scheme B.
        post: every find is a POST, as catalogs of 6 and later are asked for.
        required: a find that is answered with 404 raises, with the peer's own words, as other error statuses do.
    """

    indirection: Indirection[M]
    transport: Transport
    _: KW_ONLY
    prefix: str = "puppet"
    post: bool = False
    required: bool = False

    async def find(self, request: Request[M]) -> M | None:
        dialect = await self.transport.dialect()
        outgoing = self._outgoing("find", request, dialect)
        if issubclass(self.indirection.model, Stream):
            return await self._find_stream(outgoing, request, dialect)
        answer = await self._send(outgoing, dialect)
        # An agent must tell "no such catalog" from an error, while most other things may be missing.
        if answer.status == 404 and not self.required and not request.flag("fail_on_404"):
            return None
        _check(answer.status, answer.headers, answer.body, dialect, outgoing)
        return dialect.load(self.indirection, answer.body, self._format(answer.headers, dialect))

    async def search(self, request: Request[M]) -> list[M] | None:
        dialect, outgoing, answer = await self._exchange("search", request)
        if answer.status == 404:
            return None
        _check(answer.status, answer.headers, answer.body, dialect, outgoing)
        return dialect.load_all(self.indirection, answer.body, self._format(answer.headers, dialect))

    async def save(self, request: Request[M]) -> object:
        dialect = await self.transport.dialect()
        outgoing = self._outgoing("save", request, dialect)
        format = next(f for f in dialect.formats_of(self.indirection) if f.raw or not issubclass(self.indirection.model, Stream))
        headers = self._headers(dialect) | {"Content-Type": format.mime}
        instance: Any = request.instance
        if isinstance(instance, Stream):
            if instance.size is not None:  # not every server in front of an old master takes chunks
                headers["Content-Length"] = str(instance.size)
            opened = await self.transport.open(outgoing, headers, instance.chunks())
            answer = Answer(opened.status, opened.headers, await opened.read())
        else:
            answer = await self.transport.send(outgoing, headers, dialect.dump(self.indirection, instance, format))
        _check(answer.status, answer.headers, answer.body, dialect, outgoing)
        return self._plain(answer, dialect)

    async def destroy(self, request: Request[M]) -> object:
        dialect, outgoing, answer = await self._exchange("destroy", request)
        if answer.status == 404:
            text, hint = _words(answer.headers, answer.body)
            raise NotFound(text or f"Could not find {self.indirection.name} {request.key}", hint=hint)
        _check(answer.status, answer.headers, answer.body, dialect, outgoing)
        return self._plain(answer, dialect)

    async def head(self, request: Request[M]) -> bool:
        dialect, outgoing, answer = await self._exchange("head", request)
        if answer.status == 404:
            return False
        _check(answer.status, answer.headers, answer.body, dialect, outgoing)
        return True

    async def _find_stream(self, outgoing: Outgoing, request: Request[M], dialect: Dialect) -> M | None:
        opened = await self.transport.open(outgoing, self._headers(dialect))
        if opened.status == 404:
            await opened.read()
            return None
        if opened.status >= 300:
            _check(opened.status, opened.headers, await opened.read(), dialect, outgoing)
        length = opened.headers.get("content-length", "")
        # A compressed body's length says nothing about what it expands to.
        size = int(length) if length.isdigit() and "content-encoding" not in opened.headers else None
        model: Any = self.indirection.model
        return model.from_chunks(request.key, opened.chunks, size)  # type: ignore[no-any-return]

    def _outgoing(self, verb: Verb, request: Request[M], dialect: Dialect) -> Outgoing:
        return paths.build(verb, self.indirection, request, dialect, prefix=self.prefix, post=self.post)  # type: ignore[arg-type]

    async def _exchange(self, verb: Verb, request: Request[M]) -> tuple[Dialect, Outgoing, Answer]:
        dialect = await self.transport.dialect()
        outgoing = self._outgoing(verb, request, dialect)
        return dialect, outgoing, await self._send(outgoing, dialect)

    async def _send(self, outgoing: Outgoing, dialect: Dialect) -> Answer:
        headers = self._headers(dialect)
        if outgoing.form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        return await self.transport.send(outgoing, headers, outgoing.form)

    def _headers(self, dialect: Dialect) -> dict[str, str]:
        """3.x servers are asked by format name, later ones by MIME type. YAML is only offered where it is still spoken."""
        formats = [f for f in dialect.formats_of(self.indirection) if f.raw or f.name in dialect.readable]
        return {"Accept": ", ".join(f.name if dialect.wraps else f.mime for f in sorted(formats, key=lambda f: -f.weight))}

    def _format(self, headers: Mapping[str, str], dialect: Dialect) -> Format:
        return of_content_type(headers.get("content-type"), dialect.formats_read(self.indirection))

    def _plain(self, answer: Answer, dialect: Dialect) -> object:
        kind = answer.headers.get("content-type", "").split(";")[0]
        for format in dialect.formats.values():
            if not format.raw and format.mime == kind and format.name in dialect.readable and answer.body:
                return format.load(answer.body)
        return None


def _words(headers: Mapping[str, str], body: bytes) -> tuple[str, str]:
    """
    Return the error message of a peer, and its remedy ('' without one), both of limited length.

    The first is the JSON `message` of 4 and later, else the whole text; the second the `hint` that our own masters add.
    """
    hint, text = "", body.decode("utf-8", "replace").strip()
    if headers.get("content-type", "").startswith("application/json"):
        try:
            data = loads(body)
        except Exception:  # noqa: BLE001  # an error's text that does not parse is shown as it came
            data = None
        if isinstance(data, dict) and isinstance(data.get("message"), str):
            text = data["message"]
            hint = data["hint"] if isinstance(data.get("hint"), str) else ""
    # A server's error page must not fill the agent's log.
    return text[:2000], hint[:1000]


def _check(status: int, headers: Mapping[str, str], body: bytes, dialect: Dialect, outgoing: Outgoing) -> None:
    if 200 <= status < 300:
        return
    text, hint = _words(headers, body)
    if status == 404:
        uri = outgoing.target if len(outgoing.target) <= 100 else outgoing.target[:97] + "..."
        raise PeerAnswered(f"Find {uri} resulted in 404 with the message: {text}", code=404, body=text, hint=hint)
    raise PeerAnswered(f"Error {status} on SERVER: {text}", code=status, body=text, hint=hint)

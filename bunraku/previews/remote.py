"""A preview that another master makes: its answer comes line by line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from shared.data import plainjson
from shared.errors import BadData, PeerAnswered, PuppetError, TooLarge
from shared.names import quoted_for_log
from shared.settings import AgentSettings

from ..peer import open_server

TARGET = "/puppet/v1/preview"
MAX_LINE = 1 << 30
"""Bytes of the line with the result."""
_SHOWN = 500  # characters of an error's text


async def remote_preview(settings: AgentSettings, question: Mapping[str, Any], on_node: Callable[[str], None]) -> dict[str, Any]:
    """
    Return the result of a preview (docs/preview.md) that the server of the settings makes.

    Args:
        question: the body of the request. on_node: is called with the state of each node that is done.
    Raises:
        PeerNotTrusted, PeerError: the server cannot be asked. PuppetError: it refuses, or the preview fails.
    """
    async with open_server(settings) as server:
        headers = {"Accept": "application/x-ndjson, application/json", "Content-Type": "application/json"}
        body = plainjson.dumps(dict(question))
        answer = await server.client.request(server.site, "POST", TARGET, headers, body, compressed=False)
        if answer.status != 200:
            text = (await answer.read()).decode("utf-8", "replace")
            raise PeerAnswered(
                f"{server.site} answered the request for a preview with {answer.status}: {quoted_for_log(text, _SHOWN)}", code=answer.status
            )
        async for line in _lines(answer.chunks()):
            match plainjson.loads(line):
                case {"node": str(), "state": str(state)}:
                    on_node(state)
                case {"result": dict(result)}:
                    return result
                case {"error": {"message": str(message), "hint": str(hint)}}:
                    raise PuppetError(message, hint=hint)
                case _:
                    raise BadData(f"{server.site} sent a line that belongs to no preview")
    raise BadData(f"The answer of {server.site} ends before the result")


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest: list[bytes] = []
    size = 0
    async for chunk in chunks:
        *whole, last = chunk.split(b"\n")
        for part in whole:
            yield b"".join([*rest, part])
            rest, size = [], 0
        rest.append(last)
        size += len(last)
        if size > MAX_LINE:
            raise TooLarge(f"A line of a preview is longer than {MAX_LINE} bytes")

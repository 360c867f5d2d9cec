"""A preview that another master makes: its answer comes line by line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any

from shared.errors import BadData
from shared.settings import AgentSettings

from ..peer import answered_lines

TARGET = "/puppet/v1/preview"


async def remote_preview(settings: AgentSettings, question: Mapping[str, Any], on_node: Callable[[str], None]) -> dict[str, Any]:
    """
    Return the result of a preview (docs/preview.md) that the server of the settings makes.

    Args:
        question: the body of the request. on_node: is called with the state of each node that is done.
    Raises:
        PeerNotTrusted, PeerError: the server cannot be asked. PuppetError: it refuses, or the preview fails.
    """
    async with aclosing(answered_lines(settings, TARGET, question, "a preview")) as lines:
        async for line in lines:
            match line:
                case {"node": str(), "state": str(state)}:
                    on_node(state)
                case {"result": dict(result)}:
                    return result
                case _:
                    raise BadData("The server sent a line that belongs to no preview")
    raise BadData("The server's answer ends before the result")

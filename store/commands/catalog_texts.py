"""Takes the text of a catalog apart into its resources and edges, which seldom differ from run to run, and the rest, which always does."""

from __future__ import annotations

from typing import NamedTuple

_BEGIN = b'"resources":['


class CatalogText(NamedTuple):
    """
    A JSON object in two parts.

    If both are JSON, with braces around `content`, so was the whole text, and it had the members of both.

    Attributes:
        content: The members from `resources` to the last list, without braces around them.
        rest: An object with the other members, none of which is a list or an object.
    """

    content: bytes
    rest: bytes


def split_catalog(payload: bytes) -> CatalogText | None:
    """Return the parts of a catalog in the form that our masters send; None where it has another form, or may have one."""
    begin = payload.find(_BEGIN)
    end = payload.rfind(b"]") + 1
    head, tail = payload[: max(begin, 0)], payload[end:]
    # Both cuts are between members of the outermost object: no other one begins before them or ends behind them, and no text is open.
    if (
        head[:1] == b"{"
        and head[-1:] == b","
        and (tail == b"}" or tail[:1] == b",")
        and tail[-1:] == b"}"
        and b"\\" not in head
        and not head.count(b'"') % 2
        and head.count(b"{") == tail.count(b"}") == 1
        and not any(bracket in head for bracket in (b"}", b"[", b"]"))
        and not any(bracket in tail for bracket in (b"{", b"["))
    ):
        return CatalogText(payload[begin:end], head[:-1] + tail)
    return None

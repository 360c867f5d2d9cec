"""Requests for PEM and the CA's answers to them."""

from __future__ import annotations

from shared.errors import PeerAnswered
from shared.indirector.rest import Answer
from shared.wire.dialects import LEGACY, Dialect


def accept_header(dialect: Dialect) -> str:
    """Return the Accept header by which a CA of that dialect answers with PEM."""
    return "s" if dialect is LEGACY else "text/plain"


def one_line(answer: Answer) -> str:
    """Return the text of an answer as one line, for messages."""
    return " ".join(answer.body[:2000].decode("utf-8", "replace").split())


def unexpected_answer(what: str, answer: Answer) -> PeerAnswered:
    """Return the error for an answer with an unexpected status; `what` was requested."""
    return PeerAnswered(f"Could not request {what}: Error {answer.status} on SERVER: {one_line(answer)}", code=answer.status)

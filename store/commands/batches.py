"""
Reads many commands in one request, as a master sends them to its own store: one acknowledgement, one file of the queue.

Each command is a line in JSON, `["replace facts", 5, "web1.example.com", "2026-01-01T00:00:00.000Z", 4711]`, and a payload of that many
bytes. The line of a catalog may end with `"packed"`: then the payload is a packed catalog.
"""

from __future__ import annotations

from typing import NoReturn

from ..jsontext import Json, load_json
from .payloads import PACKED_COMMAND, Coding
from .submission import Submission, SubmissionRefused, checked_command, producer_timestamp_of

MAX_COMMANDS = 1000
MAX_HEAD = 4096  # bytes of a line


def read_batch(body: bytes) -> list[Submission]:
    """Return the commands of a request, in their order. Raise SubmissionRefused when one of them is none; then none is accepted."""
    submissions: list[Submission] = []
    position = 0
    while position < len(body):
        if len(submissions) == MAX_COMMANDS:
            raise SubmissionRefused(413, f"A batch has {MAX_COMMANDS} commands at most")
        end = body.find(b"\n", position, position + MAX_HEAD)
        if end < 0:
            _refuse(position)
        submission, length, coding = _read_head(body[position:end], position)
        position = end + 1 + length
        if position > len(body):
            _refuse(end + 1, f"the payload has less than {length} bytes")
        submissions.append(Submission(*submission, payload=body[end + 1 : position], coding=coding))
    return submissions


def _read_head(line: bytes, position: int) -> tuple[tuple[str, int, str, int | None, None], int, Coding]:
    try:
        name, version, certname, time, length, *rest = _elements(load_json(line))
    except ValueError:
        _refuse(position)
    is_packed = name == PACKED_COMMAND and rest == ["packed"]
    if not isinstance(time, str) or not isinstance(length, int) or length < 0 or (rest and not is_packed):
        _refuse(position)
    return (
        (*checked_command(name, version, certname), producer_timestamp_of(time), None),
        length,
        "packed" if is_packed else "identity",
    )


def _elements(head: Json) -> list[Json]:
    if not isinstance(head, list):
        raise ValueError("it is no list")
    return head


def _refuse(position: int, reason: str = "there is no line with a command's name, version, certname, time and length") -> NoReturn:
    raise SubmissionRefused(400, f"Byte {position} of the batch: {reason}")

"""The names of a server's background tasks."""

from __future__ import annotations

from shared.process.supervision import SupervisedTask

ACCEPT = "accept connections"
COUNT_TURNS = "count turns of the event loop"
HANDSHAKE = "handshake"
WATCH_CERTIFICATES = "watch the files of certificates"

HTTP_TASKS = (
    SupervisedTask(ACCEPT, essential=True),
    SupervisedTask(COUNT_TURNS, essential=True),  # without it no handshake is ever too slow
    SupervisedTask(WATCH_CERTIFICATES),
    SupervisedTask(HANDSHAKE, ends=True),
)

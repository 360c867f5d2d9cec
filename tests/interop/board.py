"""
Puppetboard as an application of WSGI that answers one request after the other, as a worker of gunicorn does in production.

Puppetboard keeps the total of its last query beside its only connection: answering two requests at once, it may tell a page the total of
the other one's query. A script beside the clients: `flask --app tests/interop/board.py run`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from puppetboard.app import app

ONE = threading.Lock()
answer = app.wsgi_app


def answer_alone(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    with ONE:
        return [b"".join(answer(environ, start_response))]


app.wsgi_app = answer_alone

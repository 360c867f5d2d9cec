"""The media types that requests accept and send, and the parameters in their targets and bodies."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote

from httpd.connections.connection import HttpRequest
from shared.errors import BadRequest, MethodNotAllowed, NotAcceptable, UnsupportedMediaType

MAX_PARAMETERS = 64
_NO_QUALITY = re.compile(r"q=0(\.0*)?", re.ASCII)


def path_segments(request: HttpRequest) -> tuple[str, ...]:
    """Return the segments of a request's path, each decoded once; the last one is '' where the path ends with a slash."""
    return tuple(unquote(segment, errors="replace") for segment in request.sent_path.split("/")[1:])


def url_parameters(request: HttpRequest) -> dict[str, str]:
    """Return the parameters of a request's target; the last one of a name counts. Raise BadRequest when there are too many."""
    try:
        return dict(parse_qsl(request.sent_query, keep_blank_values=True, errors="replace", max_num_fields=MAX_PARAMETERS))
    except ValueError as err:
        raise BadRequest("The query string has too many parameters") from err


def require_get(request: HttpRequest) -> None:
    """Raise MethodNotAllowed for another method than GET and HEAD."""
    if request.method not in ("GET", "HEAD"):
        raise MethodNotAllowed("Only GET is allowed here")


def require_json_accepted(request: HttpRequest) -> None:
    """Raise NotAcceptable unless the client takes JSON."""
    accept = ",".join(request.headers.getall("Accept", []))
    if accept.strip() and not any(_admits_json(media_range) for media_range in accept.split(",")):
        raise NotAcceptable("must accept application/json")


def _admits_json(media_range: str) -> bool:
    name, *options = (part.strip().lower() for part in media_range.split(";"))
    return name in ("application/json", "application/*", "*/*") and not any(_NO_QUALITY.fullmatch(option) for option in options)


def require_body_of(request: HttpRequest, expected: str) -> None:
    """Raise UnsupportedMediaType when the body claims to be of another type than the expected one."""
    content_type = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if content_type not in ("", expected):
        raise UnsupportedMediaType(f"content type {content_type} not supported")

"""Text that claims a syntax: heredocs with `:json`, `:pp`, `:epp`, `:base64`."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable

from shared.errors import ParseError

from ..parser import parse
from ..source import Source


def problem(text: str, syntax: str) -> str | None:
    """
    What is wrong with `text` as `syntax`; None when nothing is, or when nobody here knows the syntax.

    Of `a+b+json` the longest known tail counts. Source: language reference 1.8.
    """
    if not syntax:
        return None
    segments = syntax.split("+")
    known = next((check for at in range(len(segments)) if (check := _CHECKS.get("+".join(segments[at:])))), None)
    found = known(text) if known else None
    return f"Invalid produced text having syntax: '{syntax}'. {found}" if found else None


def _shown(error: object, limit: int) -> str:
    return str(error)[:limit].replace("\r\n", "\\n").replace("\n", "\\n")


def _json(text: str) -> str | None:
    try:
        json.loads(text)
    except ValueError as error:
        return f'JSON syntax checker: Cannot parse invalid JSON string. "{_shown(error, 100)}"'
    except RecursionError:
        return 'JSON syntax checker: Cannot parse invalid JSON string. "nested too deeply"'
    return None


def _puppet(text: str) -> str | None:
    from .walk import check  # the checker checks heredocs, and heredocs may hold manifests

    try:
        source = Source(text)
        errors = [issue for issue in check(parse(source), source) if issue.severity == "error"]
    except ParseError as error:
        return f'PP syntax checker: "{_shown(error, 500)}"'
    return f'PP syntax checker: "{_shown(errors[0], 500)}"' if errors else None


def _epp(text: str) -> str | None:
    try:
        parse(Source(text), epp=True)
    except ParseError as error:
        return f'EPP syntax checker: "{_shown(error, 500)}"'
    return None


def _base64(text: str) -> str | None:
    packed = "".join(text.split())
    if len(packed) % 4:
        return "Base64 syntax checker: Cannot parse invalid Base64 string - padding is not correct"
    try:
        base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError):
        return "Base64 syntax checker: Cannot parse invalid Base64 string - contains letters outside strict base 64 range (or whitespace)"
    return None


_CHECKS: dict[str, Callable[[str], str | None]] = {"json": _json, "pp": _puppet, "epp": _epp, "base64": _base64}

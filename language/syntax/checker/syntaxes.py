"""The checks of heredocs that name a syntax: `:json`, `:pp`, `:epp`, `:base64`."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import TypeAlias

from shared.errors import ParseError

from ..nodes import Program
from ..parser import parse
from ..source import Source
from .diagnostics import Diagnostic

Check: TypeAlias = Callable[[Program, Source], Sequence[Diagnostic]]
"""Returns what is wrong with a manifest; the checker itself, which checks heredocs by the functions here."""


def problem(text: str, syntax: str, check: Check) -> str | None:
    """
    Return the error of `text` as `syntax`; None when it is valid, or when the syntax has no check here.

    Of `a+b+json` the longest known tail counts. `check` is called for text that is a manifest. Source: language reference 1.8.
    """
    if not syntax:
        return None
    segments = syntax.split("+")
    tails = ("+".join(segments[at:]) for at in range(len(segments)))
    checker = next((_CHECKS[tail] for tail in tails if tail in _CHECKS), None)
    reason = checker(text, check) if checker else None
    return f"Invalid produced text having syntax: '{syntax}'. {reason}" if reason else None


def _excerpt(error: object, limit: int) -> str:
    return str(error)[:limit].replace("\r\n", "\\n").replace("\n", "\\n")


def _json(text: str, check: Check) -> str | None:
    try:
        json.loads(text)
    except ValueError as error:
        return f'JSON syntax checker: Cannot parse invalid JSON string. "{_excerpt(error, 100)}"'
    except RecursionError:
        return 'JSON syntax checker: Cannot parse invalid JSON string. "nested too deeply"'
    return None


def _puppet(text: str, check: Check) -> str | None:
    try:
        source = Source(text)
        errors = [diagnostic for diagnostic in check(parse(source), source) if diagnostic.severity == "error"]
    except ParseError as error:
        return f'PP syntax checker: "{_excerpt(error, 500)}"'
    return f'PP syntax checker: "{_excerpt(errors[0], 500)}"' if errors else None


def _epp(text: str, check: Check) -> str | None:
    try:
        parse(Source(text), epp=True)
    except ParseError as error:
        return f'EPP syntax checker: "{_excerpt(error, 500)}"'
    return None


def _base64(text: str, check: Check) -> str | None:
    packed = "".join(text.split())
    if len(packed) % 4:
        return "Base64 syntax checker: Cannot parse invalid Base64 string - padding is not correct"
    try:
        base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError):
        return "Base64 syntax checker: Cannot parse invalid Base64 string - contains letters outside strict base 64 range (or whitespace)"
    return None


_CHECKS: dict[str, Callable[[str, Check], str | None]] = {"json": _json, "pp": _puppet, "epp": _epp, "base64": _base64}

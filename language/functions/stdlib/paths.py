"""basename, dirname, stdlib::extname: parts of a path."""

from __future__ import annotations

from shared.errors import EvaluationError

from ...values.core import Value
from ..api import Context, function, legacy_function


def _last_part(path: str) -> str:
    stripped = path.rstrip("/")
    return stripped.rsplit("/", 1)[-1] if stripped else "/" if path else ""


@legacy_function("basename", -1)
def basename(context: Context, *arguments: Value) -> str:
    """Return the last part of a path, without the extension of the second argument; '.*' means any extension."""
    if not arguments:
        raise EvaluationError("basename(): No arguments given")
    if len(arguments) > 2:
        raise EvaluationError(f"basename(): Too many arguments given ({len(arguments)})")
    if not isinstance(arguments[0], str):
        raise EvaluationError("basename(): Requires string as first argument")
    name = _last_part(arguments[0])
    if len(arguments) == 1:
        return name
    extension = arguments[1]
    if not isinstance(extension, str):
        raise EvaluationError("basename(): Requires string as second argument")
    if extension == ".*":
        dot = name.rfind(".")
        return name[:dot] if dot > 0 else name
    return name[: -len(extension)] if extension and name.endswith(extension) and name != extension else name


@legacy_function("dirname", -1)
def dirname(context: Context, *arguments: Value) -> str:
    """Return a path without its last part."""
    if not arguments:
        raise EvaluationError("dirname(): No arguments given")
    if len(arguments) > 1:
        raise EvaluationError(f"dirname(): Too many arguments given ({len(arguments)})")
    path = arguments[0]
    if not isinstance(path, str):
        raise EvaluationError("dirname(): Requires string as argument")
    if not path:
        raise EvaluationError("dirname(): Requires a non-empty string as argument")
    trimmed = path.rstrip("/")
    if "/" not in trimmed:
        return "/" if path.startswith("/") else "."
    # Ruby reduces several slashes at the start to one.
    head = trimmed.rsplit("/", 1)[0].rstrip("/")
    return "/" + head.lstrip("/") if path.startswith("/") else head


@function("stdlib::extname", "String filename", returns="String")
def extname(context: Context, filename: str) -> str:
    """Return the extension of the last part of a path, with its dot; '' when there is none."""
    name = _last_part(filename)
    dot = name.rfind(".")
    if dot <= 0 or set(name[:dot]) == {"."}:
        return ""
    return name[dot:]

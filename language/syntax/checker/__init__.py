"""The checker: it finds the errors of a file that are visible without running it."""

from . import syntaxes
from .diagnostics import Diagnostic, log_and_refuse
from .namespaces import MISPLACED, namespace_of
from .walk import check

__all__ = ["MISPLACED", "Diagnostic", "check", "log_and_refuse", "namespace_of", "problem"]


def problem(text: str, syntax: str) -> str | None:
    """Return the error of `text` as `syntax` (`json`, `pp`, `epp`, `base64`); None when it is valid or the syntax is unknown."""
    return syntaxes.problem(text, syntax, check)

"""The checker: everything about a file that is wrong without running it."""

from . import syntaxes
from .diagnostics import Diagnostic, refuse
from .namespaces import MISPLACED, namespace_of
from .walk import check

__all__ = ["MISPLACED", "Diagnostic", "check", "namespace_of", "problem", "refuse"]


def problem(text: str, syntax: str) -> str | None:
    """Return what is wrong with `text` as `syntax` (`json`, `pp`, `epp`, `base64`); None when nothing is or the syntax is unknown."""
    return syntaxes.problem(text, syntax, check)

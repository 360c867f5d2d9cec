"""The checker: everything about a file that is wrong without running it."""

from .issues import Issue, refuse
from .namespaces import MISPLACED, namespace_of
from .syntaxes import problem
from .walk import check

__all__ = ["MISPLACED", "Issue", "check", "namespace_of", "problem", "refuse"]

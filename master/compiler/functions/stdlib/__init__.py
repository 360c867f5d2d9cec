"""
The functions and types of puppetlabs-stdlib 9.7, bundled, so that modules find them without Ruby.

They step aside when a module brings a function of that name in the language or in Python; a Ruby function of that name,
such as those of the real stdlib, cannot be called here and does not displace them. With them come the functions that
stdlib 9 removed and that modules written for Puppet 3 still call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from ..api import Function, collect

if TYPE_CHECKING:
    from ...host import CompilerHost

__all__ = ["Library", "stdlib_functions"]

TOPICS = (
    "arrays",
    "booleans",
    "choosing",
    "deleting",
    "deprecations",
    "documents",
    "environment",
    "facts",
    "hashes",
    "networks",
    "numbers",
    "paths",
    "predicates",
    "quoting",
    "randoms",
    "resources",
    "secrets",
    "sensitivity",
    "strings",
    "validators",
    "writers",
)


def stdlib_functions(has_namespaced_functions: Callable[[], bool] = lambda: True) -> Mapping[str, Function]:
    """Return all bundled functions by name; the argument is as for `deprecations.moved_functions`."""
    from . import deprecations

    functions = collect([import_module(f"{__name__}.{topic}") for topic in TOPICS])
    return {**functions, **deprecations.moved_functions(functions, has_namespaced_functions)}


class Library:
    """What is bundled, for one environment; it is read when something is first asked for."""

    def __init__(self, host: CompilerHost) -> None:
        self._host = host
        self._functions: Mapping[str, Function] | None = None
        self._namespaced: bool | None = None

    @property
    def functions(self) -> Mapping[str, Function]:
        if self._functions is None:
            self._functions = stdlib_functions(lambda: self.has_namespaced_functions)
        return self._functions

    def type_declaration(self, name: str) -> tuple[str, str] | None:
        """Name and definition, as text, of the type alias of that lower-case name."""
        from .aliases import ALIASES

        return ALIASES.get(name)

    @property
    def has_namespaced_functions(self) -> bool:
        """Return whether the site's own stdlib, if it has one, is as new as 9, so that `stdlib::merge` and the like are its names, too."""
        if self._namespaced is None:
            self._namespaced = _major(self._host) >= 9
        return self._namespaced


def _major(host: CompilerHost) -> int:
    """Return the major version of the stdlib on the modulepath; 9 without one."""
    source = host.module_file("stdlib", "metadata.json")
    if source is None:
        return 9
    try:
        found = re.match(r"\d{1,6}", str(json.loads(source.text)["version"]))
    except (ValueError, KeyError, TypeError):
        return 9
    return int(found[0]) if found else 9

"""
The functions and types of puppetlabs-stdlib 9.7, bundled, so that modules find them without Ruby.

A function of the same name that a module has in the language or in Python takes precedence. One in Ruby, such as those of the
real stdlib, gets the calls whose arguments do not fit the bundled one. The functions that stdlib 9 removed and that modules written for
Puppet 3 still call are included.
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
    """Return all bundled functions by name; the argument is as for `deprecations.deprecated_functions`."""
    from . import deprecations

    functions = collect([import_module(f"{__name__}.{topic}") for topic in TOPICS])
    return {**functions, **deprecations.deprecated_functions(functions, has_namespaced_functions)}


class Library:
    """The bundled functions and types for one environment; they are imported when they are first needed."""

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
        """Return the name and the definition, as text, of a type alias by its lower-case name; None when there is none."""
        from .aliases import ALIASES

        return ALIASES.get(name)

    @property
    def has_namespaced_functions(self) -> bool:
        """True if the site's own stdlib, if it has one, is of version 9 or newer and so has names such as `stdlib::merge`."""
        if self._namespaced is None:
            self._namespaced = _major(self._host) >= 9
        return self._namespaced


def _major(host: CompilerHost) -> int:
    """Return the major version of the stdlib on the modulepath; 9 without one."""
    source = host.module_file("stdlib", "metadata.json")
    if source is None:
        return 9
    try:
        match = re.match(r"\d{1,6}", str(json.loads(source.text)["version"]))
    except (ValueError, KeyError, TypeError):
        return 9
    return int(match[0]) if match else 9

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

BUNDLED = (9, 7)
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


def stdlib_functions(version: Callable[[], tuple[int, int]] = lambda: BUNDLED) -> Mapping[str, Function]:
    """Return all bundled functions by name, as the stdlib of a version has them, which is asked for when a function is called."""
    from . import deprecations, older

    bundled = collect([import_module(f"{__name__}.{topic}") for topic in TOPICS])
    functions = {**bundled, **deprecations.deprecated_functions(bundled, version)}
    return {**functions, **older.with_older(functions, bundled, version)}


class Library:
    """The bundled functions and types for one environment; they are imported when they are first needed."""

    def __init__(self, host: CompilerHost) -> None:
        self._host = host
        self._functions: Mapping[str, Function] | None = None
        self._version: tuple[int, int] | None = None

    @property
    def functions(self) -> Mapping[str, Function]:
        if self._functions is None:
            self._functions = stdlib_functions(lambda: self.version)
        return self._functions

    def type_declaration(self, name: str) -> tuple[str, str] | None:
        """Return the name and the definition, as text, of a type alias by its lower-case name; None when there is none."""
        from .aliases import ALIASES

        return ALIASES.get(name)

    @property
    def version(self) -> tuple[int, int]:
        """The major and the minor version of the site's own stdlib; of the bundled one without one."""
        if self._version is None:
            self._version = _version(self._host)
        return self._version


def _version(host: CompilerHost) -> tuple[int, int]:
    source = host.module_file("stdlib", "metadata.json")
    if source is None:
        return BUNDLED
    try:
        match = re.match(r"(\d{1,6})\.(\d{1,6})", str(json.loads(source.text)["version"]))
    except (ValueError, KeyError, TypeError):
        return BUNDLED
    return (int(match[1]), int(match[2])) if match else BUNDLED

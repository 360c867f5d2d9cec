"""Functions that modules have in Ruby, as functions of the language that Ruby runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from shared.errors import Unsupported

from ..codegen.codecache import CodeCache
from ..codegen.units import Unit
from ..erb import ERB_VERSION
from ..functions import Function
from ..functions.api import ArgumentMismatch, Closure, Context
from ..host import CompilerHost
from ..syntax.source import Source
from ..values.core import Value
from .erb_templates import StoredImpurity, impurity_warnings, stored_impurity

_DEFINED = re.compile(r"""\b(?:newfunction|create_function)\b\s*\(?\s*:?["']?([a-zA-Z]\w*(?:::\w+)*)""")


def impurity_of_function(source: Source, cache: CodeCache) -> StoredImpurity | None:
    """Return what the function of a file may read besides what it is given; None: nothing. The answer is cached as code is."""
    key = cache.key(source.text, f"ruby function|{ERB_VERSION}")
    unit = cache.get(key)
    if unit is None:
        # Imported here so that a process which finds its functions in the cache does not load the grammar of Ruby.
        from ..erb.purity import function_impurity

        unit = Unit([], warnings=impurity_warnings(function_impurity(source.text)))
        cache.put(key, unit)
    return stored_impurity(unit.warnings)


class RubyFunctions:
    """
    The functions that modules have in Ruby.

    Attributes:
        further: the files of functions, by name, that are defined in the file of another function.
    """

    def __init__(self, host: CompilerHost, cache: CodeCache) -> None:
        self._host = host
        self._cache = cache
        self.further: dict[str, Source] = {}

    def function(self, name: str, source: Source) -> Function:
        """
        Return the function of that name that a file defines.

        Raises:
            Unsupported: only Ruby could call it, and there is none.
            EvaluationError: the file does not define it, or cannot be read.
        """
        self.further |= {found.lower(): source for found in _DEFINED.findall(source.text) if found.lower() != name}
        if self._host.ruby is None:
            raise Unsupported(
                f"The function '{name}' is written in Ruby ({source.file})",
                hint="A master with Ruby calls it (the setting ruby says which is used, and when none is). Without, it has to be there "
                f"in Python, too: lib/puppet/functions/{name.replace('::', '/')}.py.",
            )
        function: Function = self._host.ruby.function(name, source, impurity_of_function(source, self._cache))
        return function

    def further_function(self, name: str) -> Function | None:
        """Return a function of a file that was read for another one; None: no such file defines it."""
        return self.function(name, self.further[name]) if name in self.further else None


class BundledFunction(Function):
    """
    A bundled function in place of a module's function in Ruby. Calls that match none of its signatures go to the module's function, which
    may have more.

    Args:
        own: returns the module's function; raises Unsupported when it cannot be called here.
    """

    __slots__ = ("_bundled", "_own")

    def __init__(self, bundled: Function, own: Callable[[], Function]) -> None:
        super().__init__(bundled.name, bundled.dispatches, bundled.doc, aliases=bundled.aliases, pure=bundled.pure)
        self._bundled = bundled
        self._own = own

    def call(self, context: Context, args: Sequence[Value], block: Closure | None = None) -> Value:
        try:
            return self._bundled.call(context, args, block)
        except ArgumentMismatch as error:
            if error.name != self.name:
                raise
            try:
                own = self._own()
            except Unsupported:
                raise error from None
            return own.call(context, args, block)

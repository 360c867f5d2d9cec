"""Functions that modules have in Ruby, as functions of the language whose code is Python where all of their Ruby can be translated."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from shared.errors import EvaluationError, Unsupported

from ..codegen.codecache import CodeCache
from ..codegen.units import Unit
from ..erb import ERB_VERSION, Doubt, Refusal, RubyStop
from ..erb.runtime import FUNCTION_NAMES
from ..erb.runtime.session import FunctionSession
from ..functions import Function
from ..functions.api import ArgumentMismatch, Closure, Context, Dispatch, LegacyFunction
from ..functions.old_api import old_api_value
from ..host import CompilerHost, RubyRuntime
from ..syntax.source import Source
from ..values.core import Value
from .erb_templates import StoredImpurity, impurity_of, line_within, refused_unit

_DEFINED = re.compile(r"""\b(?:newfunction|create_function)\b\s*\(?\s*:?["']?([a-zA-Z]\w*(?:::\w+)*)""")
FUNCTION = "__function__"
"""The global of a function's code that is its file."""


@dataclass(frozen=True, slots=True)
class TranslatedFunction:
    """
    A function in Ruby.

    Attributes:
        methods: its Python functions by their names in Ruby; empty when Ruby must run it.
        definition: see `erb.writing.functions.function_code`.
        reason: why Ruby must run it; `line`: where.
        impurity: inputs that it may read in addition to its arguments, when Ruby runs it; None: none.
    """

    methods: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    definition: Any = None
    reason: str = ""
    line: int = 0
    impurity: StoredImpurity | None = None


def translated_function(name: str, source: Source, cache: CodeCache) -> TranslatedFunction:
    """Return the translation of a file that defines a function; code and refusals are cached as those of templates are."""
    key = cache.key(source.text, f"ruby function|{name}|{ERB_VERSION}")
    unit = cache.get(key)
    if unit is None:
        unit = _translated(name, source)
        cache.put(key, unit)
    if not unit.parts:
        _, reason, line, _, _ = unit.warnings[0]
        return TranslatedFunction(reason=reason, line=line or 0, impurity=impurity_of(unit))
    names: dict[str, Any] = {**FUNCTION_NAMES, "__builtins__": {"list": list}, FUNCTION: source.file}
    exec(unit.code(0, "body", source), names)  # noqa: S102 -- code that this compiler made of a function
    return TranslatedFunction(names["_methods"], names["_definition"])


def _translated(name: str, source: Source) -> Unit:
    # Imported here so that a process which finds its functions in the cache does not load the grammar of Ruby.
    from ..erb.purity import function_impurity
    from ..erb.translation import translate_function

    try:
        return Unit([], parts={(0, "body"): translate_function(name, source)})
    except Refusal as refusal:
        return refused_unit(refusal, source, function_impurity(source.text))


def native_function(name: str, source: Source, translated: TranslatedFunction, ruby: RubyRuntime | None) -> Function:
    """
    Return a function of the language that runs the translation.

    A call that stops, because Ruby would raise an error or because we are not certain what Ruby does with its values, is made again by
    Ruby from its beginning; functions that were called are not called again.
    """
    arity, details, changes_arguments = translated.definition

    def run(method: str, index: int, context: Context, *args: Value) -> Value:
        scope: Any = context
        session = FunctionSession(scope if arity is not None else scope.global_scope())
        try:
            passed = [session.argument(arg, changes_arguments) for arg in args]
            result: Value = session.result(translated.methods[method](session, *passed))
            return result
        except (RubyStop, RecursionError) as stop:
            if ruby is not None:
                given: Any = args if arity is None else args[0]  # a function of the 3.x API gets all arguments as one
                value: Value = ruby.call(name, source, scope, index, given, session.answers)
                return value
            raise _failure(name, source, stop) from stop

    if arity is not None:
        return LegacyFunction(
            name,
            arity,
            lambda context, *args: run("", 0, context, [old_api_value(arg) for arg in args]),
            statement=details,
            pure=True,
        )
    function = Function(name, pure=True, aliases={})

    def run_dispatch(index: int, method: str, context: Context, *args: Value) -> Value:
        value = run(method, index, context, *args)
        function.dispatches[index].signature(context.types).check_return(f"function '{method}'", value)
        return value

    for index, (method, parameters, returns, is_mismatch) in enumerate(details):
        function.dispatches.append(
            Dispatch(parameters, partial(run_dispatch, index, method), returns, mismatch=is_mismatch, aliases=function.aliases)
        )
    return function


class RubyFunctions:
    """
    The functions that modules have in Ruby.

    Attributes:
        further: the files of functions that are not called like their file, which was read for another one; by name.
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
        translated = translated_function(name, source, self._cache)
        if translated.methods and self._host.setting("native_templates") is not False:
            return native_function(name, source, translated, self._host.ruby)
        if self._host.ruby is None:
            place = f", line {translated.line}: {translated.reason}" if translated.reason else ""
            raise Unsupported(
                f"The function '{name}' is written in Ruby ({source.file}{place})",
                hint="A master with Ruby calls it (see the setting ruby). Without, it has to be there "
                f"in Python, too: lib/puppet/functions/{name.replace('::', '/')}.py.",
            )
        function: Function = self._host.ruby.function(name, source, translated.impurity)
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


def _failure(name: str, source: Source, stop: Exception) -> Exception:
    """Return the error for a call that needs Ruby where Ruby is not available."""
    line = line_within(stop.__traceback__, FUNCTION)
    if isinstance(stop, RubyStop) and not isinstance(stop, Doubt):
        return EvaluationError(str(stop), hint=f"Raised in Ruby: {source.file}:{line}")
    return Unsupported(
        f"The function '{name}' is written in Ruby ({source.file}), and line {line} needs it for these arguments: {stop}",
        hint="A master with Ruby calls it (see the setting ruby).",
    )

"""
The interface of functions: how to declare, find and call one.

    @function("greet", "String[1] name", "Integer times?", returns="String")
    def greet(context: Context, name: str, times: int = 1) -> str:
        \"""`times` greetings for `name`.\"""
        return "hello " * times + name

    @greet.also("Array[String] names", "Callable[1,1] &block")
    def greet_all(context: Context, names: list[str], *, block: Closure) -> list[str]: ...

Parameters are written as the reference lists them: `Type name`, with `name?` optional, `name*` any number and `name+`
at least one more; `Type &name` (or `&name?`) is the block, which is passed as the keyword `block`. Signatures are
tried in the order of declaration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from shared.errors import EvaluationError, Location

from ..callables.declarations import signature_of
from ..callables.signatures import Closure, Parameter, Signature
from ..types.attribute_references import as_legacy_argument
from ..types.descriptions.describe import describe_signatures, signature_text
from ..types.inference.infer import arguments_type
from ..values.core import Reporter, Types, Value

__all__ = [
    "ArgumentMismatch",
    "Closure",
    "Context",
    "Dispatch",
    "Function",
    "LegacyFunction",
    "RubyFunction",
    "Types",
    "collect",
    "function",
    "legacy_function",
]


class Context(Protocol):
    """The services of the compilation that a function can use."""

    @property
    def reporter(self) -> Reporter:
        """The reporter of lenient conversions, which follows the setting `strict`."""

    @property
    def types(self) -> Types: ...

    def log(self, level: str, message: str) -> None:
        """Log at one of the levels debug, info, notice, warning, err, alert, emerg, crit, in the name of the scope."""

    def warn_once(self, kind: str, key: str, message: str, *, place: bool = False) -> None:
        """
        Log a warning, the first time that `key` of this kind (`deprecations`, `undefined_variables`) comes up.

        `place`: once for each place that calls, which is named in the message.
        """

    def call_function(self, name: str, args: Sequence[Value], block: Closure | None = None) -> Value:
        """Call another function by name; EvaluationError when there is none."""

    def has_function(self, name: str) -> bool: ...

    def variable(self, name: str) -> Value:
        """Return the value of `$name` as seen from the calling scope; KeyError when it is not set. Never warns."""

    def fact(self, name: str) -> Value:
        """Return the value of `$facts['name']`; None when the node has no such fact."""

    def setting(self, name: str) -> Value:
        """Return a setting of the compiler; None when it has none of that name."""

    def now(self) -> int:
        """Return the time, in nanoseconds since 1970."""

    def mark_uncacheable(self, reason: str, where: Location | None = None) -> None:
        """
        Mark the catalog as uncacheable: the function's value may differ the next time, though arguments, facts and data are the same.

        Metrics and `puppet master --check` show the reason with its place, by default that of the call in a manifest.
        """

    def doubt(self, reason: str) -> None:
        """Do the same as `mark_uncacheable`; deprecated name."""


class ArgumentMismatch(EvaluationError):
    """The arguments of a call fit no signature of the function that is called `name`."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


class Dispatch:
    """One signature of a function and the code for it. The signature's types are read at the first call."""

    __slots__ = ("_signature", "aliases", "code", "declared", "mismatch", "returns", "wants_block")

    def __init__(
        self,
        declared: Sequence[str] | Signature,
        code: Callable[..., Value],
        returns: str | None = None,
        *,
        mismatch: bool = False,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.declared = declared
        self.code = code
        self.returns = returns
        self.mismatch = mismatch
        self.aliases = aliases or {}
        self._signature: Signature | None = declared if isinstance(declared, Signature) else None
        self.wants_block = (
            declared.block is not None if isinstance(declared, Signature) else any(re.search(r"\s&\w+\??$", text) for text in declared)
        )

    def signature(self, types: Types | None = None) -> Signature:
        signature = self._signature
        if signature is None:
            assert not isinstance(self.declared, Signature)
            signature = signature_of(self.declared, self.returns, types, self.aliases)
            if types is not None:  # without them aliases are mere names, so that the signature can be shown, but not reused
                self._signature = signature
        return signature


class Function:
    """
    A function of the language: a name, a doc and its dispatches.

    `call(context, args, block)` runs the first dispatch that fits. `pure`: it returns the same for the same arguments, facts and data;
    a catalog that used an impure function is compiled on every request. None: it depends on the function's origin, see `Loader`.
    """

    __slots__ = ("aliases", "dispatches", "doc", "name", "pure")

    def __init__(
        self,
        name: str,
        dispatches: Sequence[Dispatch] = (),
        doc: str = "",
        *,
        aliases: Mapping[str, str] | None = None,
        pure: bool | None = None,
    ) -> None:
        self.name = name
        self.pure = pure
        self.aliases = aliases
        self.dispatches = list(dispatches)
        self.doc = doc

    def also(self, *parameters: str, returns: str | None = None) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
        """Declare one more signature."""

        def declare(code: Callable[..., Value]) -> Callable[..., Value]:
            self.dispatches.append(Dispatch(parameters, code, returns, aliases=self.aliases))
            return code

        return declare

    def mismatch(self, *parameters: str) -> Callable[[Callable[..., str]], Callable[..., str]]:
        """Declare a message of one's own for arguments that fit no other signature; the code returns the text."""

        def declare(code: Callable[..., str]) -> Callable[..., str]:
            self.dispatches.append(Dispatch(parameters, code, None, mismatch=True, aliases=self.aliases))
            return code

        return declare

    def call(self, context: Context, args: Sequence[Value], block: Closure | None = None) -> Value:
        """
        Call the function and return its result.

        Raises:
            ArgumentMismatch: the arguments fit no signature.
            EvaluationError: the function's own errors.
        """
        if self.pure is False:
            context.mark_uncacheable(f"{self.name}() is called")
        for dispatch in self.dispatches:
            signature = dispatch._signature or dispatch.signature(context.types)
            if not signature.accepts(args) or ((block is not None or signature.block is not None) and not signature.accepts_block(block)):
                continue
            if dispatch.mismatch:
                raise ArgumentMismatch(f"'{self.name}' {dispatch.code(context, *args)}", self.name)
            value = dispatch.code(context, *args, block=block) if dispatch.wants_block else dispatch.code(context, *args)
            if signature.returns is not None:
                signature.check_return(self.name, value)
            return value
        signatures = [d.signature(context.types) for d in self.dispatches if not d.mismatch]
        raise ArgumentMismatch(describe_signatures(self.name, signatures, arguments_type(args, block)), self.name)

    def signatures(self, types: Types | None = None) -> list[Signature]:
        """Return the signatures, those for messages left out."""
        return [d.signature(types) for d in self.dispatches if not d.mismatch]

    def usages(self, types: Types | None = None) -> list[str]:
        """Return one line a signature, for documentation: `join(Array arg, String delimiter?)`."""
        return [f"{self.name}({signature_text(s)})" + (f" >> {s.returns}" if s.returns is not None else "") for s in self.signatures(types)]

    def __repr__(self) -> str:
        return f"Function({self.name!r})"


class RubyFunction(Function):
    """A function of the 4.x API that Ruby runs."""

    __slots__ = ()


class LegacyFunction(Function):
    """
    A function of the 3.x API: no types, a number of arguments, undef at the top of the arguments given as ''.

    Attributes:
        arity: n for exactly n arguments, -n - 1 for at least n.
        statement: it gives no value.
    """

    __slots__ = ("arity", "code", "statement")

    def __init__(
        self, name: str, arity: int, code: Callable[..., Value], *, statement: bool = False, doc: str = "", pure: bool | None = None
    ) -> None:
        super().__init__(name, (), doc, pure=pure)
        self.arity = arity
        self.code = code
        self.statement = statement

    def call(self, context: Context, args: Sequence[Value], block: Closure | None = None) -> Value:
        if self.pure is False:
            context.mark_uncacheable(f"{self.name}() is called")
        count = len(args)
        if block is not None:
            count += 1
        if self.arity >= 0 and count != self.arity:
            raise ArgumentMismatch(f"{self.name}(): Wrong number of arguments given ({count} for {self.arity})", self.name)
        if self.arity < 0 and count < -self.arity - 1:
            raise ArgumentMismatch(f"{self.name}(): Wrong number of arguments given ({count} for minimum {-self.arity - 1})", self.name)
        value = self.code(context, *["" if arg is None else as_legacy_argument(arg) for arg in args])
        return None if self.statement else value

    def signatures(self, types: Types | None = None) -> list[Signature]:
        low = self.arity if self.arity >= 0 else -self.arity - 1
        fixed = [Parameter(f"arg{index}") for index in range(low)]
        return [Signature(fixed if self.arity >= 0 else [*fixed, Parameter("args", splat=True)])]


def require_count(name: str, arguments: Sequence[Value], least: int, most: int | None = None, *, wanted: str = "") -> None:
    """
    Raise ArgumentMismatch unless there are `least` to `most` arguments (None: any number); `wanted` is the message's text for the
    expected number.
    """
    if len(arguments) < least or (most is not None and len(arguments) > most):
        raise ArgumentMismatch(f"{name}(): Wrong number of arguments given ({len(arguments)} for {wanted or least})", name)


def legacy_function(
    name: str, arity: int, *, statement: bool = False, pure: bool | None = None
) -> Callable[[Callable[..., Value]], Function]:
    """Declare a function of the 3.x API; see LegacyFunction."""

    def declare(code: Callable[..., Value]) -> Function:
        return LegacyFunction(name, arity, code, statement=statement, doc=(code.__doc__ or "").strip(), pure=pure)

    return declare


def function(
    name: str, *parameters: str, returns: str | None = None, aliases: Mapping[str, str] | None = None, pure: bool | None = None
) -> Callable[[Callable[..., Value]], Function]:
    """
    Declare the function `name` by its first signature; the docstring of the code is its doc.

    `aliases`: names for types, to be used in the function's signatures and shown in its errors. `pure`: it reads nothing but its
    arguments, facts and variables, so that a catalog it had a part in need not be compiled again while those are the same.
    """

    def declare(code: Callable[..., Value]) -> Function:
        first = Dispatch(parameters, code, returns, aliases=aliases)
        return Function(name, [first], (code.__doc__ or "").strip(), aliases=aliases, pure=pure)

    return declare


def collect(modules: Sequence[Any]) -> Mapping[str, Function]:
    """Return all Functions that are globals of `modules`, by name; EvaluationError on two of one name."""
    functions: dict[str, Function] = {}
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, Function) and functions.setdefault(value.name, value) is not value:
                raise EvaluationError(f"The function '{value.name}' is declared twice, the second time in {module.__name__}")
    return functions

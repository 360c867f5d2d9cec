"""`%{…}` in data and in paths. Source: language reference 18.4."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, Protocol

from language.values.core import Value, key_of
from language.values.text import inspect, to_s

from .errors import DataError
from .keys import Segment, split_path

EMPTY = frozenset(("", "::", "''", '""', '"::"', "'::'"))
_METHOD = re.compile(r"""(\w+)\((?:"([^"]+)"|'([^']+)')\)""")
_INTERPOLATION = re.compile(r"%\{([^}]*)\}")


class ExpressionScope(Protocol):
    """The variables and functions that expressions in data can use."""

    def interpolate_text(self, text: str, methods: bool | None) -> Value:
        """Return a text with its expressions replaced, by `fill_text`."""

    def variable_at(self, root: str, path: Sequence[Segment], name: str) -> Value:
        """Return the value at `path` in the variable `root`, or None. `name` is the whole expression, for messages."""

    def sub_lookup(self, key: str) -> Value:
        """Return the value of another key; '' when it has none."""

    def guard(self, name: str) -> AbstractContextManager[None]:
        """Raise DataError when `name` is looked up again within the block."""


def read_variable(scope: ExpressionScope, name: str, subject: str) -> Value:
    """Return the value of an expression such as `facts.os.family`, None when there is none; DataError names `subject`."""
    root, *path = split_path(name, "string: " + subject) if name else ("",)
    return scope.variable_at(str(root), path, name)


def interpolate(scope: ExpressionScope, value: Value, *, methods: bool | None = True) -> Value:
    """
    Return a value with all its expressions replaced, at every depth.

    Args:
        methods: whether `lookup('key')` and other methods are allowed; None leaves them as they are written.
    Raises:
        DataError: a method is unknown or not allowed here, a key is malformed, or an expression leads back to itself.
    """
    if value.__class__ is str:
        return scope.interpolate_text(value, methods) if "%{" in value else value
    if value.__class__ is list:
        return [interpolate(scope, item, methods=methods) for item in value]
    if value.__class__ is not dict:
        return value
    result: dict[Any, Value] = {}
    for key, item in value.items():
        item_kind = item.__class__
        # Tested here instead of a recursive call: most values of a data file are plain texts.
        if item_kind is str:
            if "%{" in item:
                item = scope.interpolate_text(item, methods)
        elif item_kind is dict or item_kind is list:
            item = interpolate(scope, item, methods=methods)
        if key.__class__ is str and "%{" in key:
            key = key_of(scope.interpolate_text(key, methods))
        result[key] = item
    return result


@lru_cache(maxsize=20_000)
def _pieces(subject: str) -> tuple[tuple[str, str, str, str], ...]:
    """Return, for each expression of a text, the literal before it, its method, its argument, and itself; the last has none."""
    pieces = []
    end = 0
    for match in _INTERPOLATION.finditer(subject):
        expression = match[1].strip()
        method = _METHOD.fullmatch(expression)
        if expression in EMPTY:
            kind, argument = "empty", ""
        elif method is None:
            kind, argument = "scope", expression
        else:
            kind, argument = f"{method[1]}()", method[2] or method[3]
        pieces.append((subject[end : match.start()], kind, argument, match[0]))
        end = match.end()
    return (*pieces, (subject[end:], "empty", "", ""))


def fill_text(scope: ExpressionScope, subject: str, methods: bool | None) -> Value:
    """
    Return a text with its expressions replaced; `%{alias('key')}` alone gives the value itself.

    `methods` and the errors are those of `interpolate`.
    """
    parts: list[str] = []
    for literal, kind, argument, expression in _pieces(subject):
        parts.append(literal)
        if kind == "empty":
            continue
        if kind == "scope":
            parts.append(_text_of(_interpolate_nested(scope, "scope:", argument, read_variable(scope, argument, subject))))
            continue
        if methods is None:
            # Inside a value that came from a variable, methods stay text, as in the reference.
            parts.append(expression)
            continue
        if methods is False:
            raise DataError("Interpolation using method syntax is not allowed in this context", final=True)
        if kind == "alias()":
            if expression != subject:
                raise DataError("'alias' interpolation is only permitted if the expression is equal to the entire string", final=True)
            return scope.sub_lookup(argument)
        prefix = "scope:" if kind == "scope()" else ""
        if kind in ("lookup()", "hiera()"):
            value = scope.sub_lookup(argument)
        elif kind == "scope()":
            value = read_variable(scope, argument, subject)
        elif kind == "literal()":
            value = argument
        else:
            raise DataError(f"Unknown interpolation method '{kind[:-2]}'", final=True)
        parts.append(_text_of(_interpolate_nested(scope, prefix, argument, value)))
    return "".join(parts)


def _interpolate_nested(scope: ExpressionScope, prefix: str, name: str, value: Value) -> Value:
    """
    Return the value of an expression with the expressions inside of it replaced; the same expression may not occur again.

    Only variables are replaced, where the reference takes any: a node could else have a fact read any key of the data.
    """
    if (value.__class__ is str and "%{" in value) or value.__class__ is list or value.__class__ is dict:
        # A variable can contain an expression that names itself.
        with scope.guard(prefix + name):
            return interpolate(scope, value, methods=None)
    return value


def _text_of(value: Value) -> str:
    """Return a value as text; collections are written as Ruby's `inspect` does."""
    if value.__class__ is str:
        return value
    return inspect(value) if value.__class__ is list or value.__class__ is dict else to_s(value)

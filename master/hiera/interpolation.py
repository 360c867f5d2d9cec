"""`%{…}` in data and in paths. Source: language reference 18.4."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..compiler.values.core import Value, key_of
from ..compiler.values.labels import ruby_class
from ..compiler.values.text import inspect, to_s
from .failures import DataError
from .merging import MISSING

if TYPE_CHECKING:
    from .invocations import Invocation

__all__ = ["Key", "dug", "interpolated", "key_from", "variable"]

EMPTY = frozenset(("", "::", "''", '""', '"::"', "'::'"))
_INDEX = re.compile(r":?[+-]?[0-9]+")
_METHOD = re.compile(r"""(\w+)\((?:"([^"]+)"|'([^']+)')\)""")
_INTERPOLATION = re.compile(r"%\{([^}]*)\}")
_SEGMENT = re.compile(r"""\s*"([^"]+)"\s*|\s*'([^']+)'\s*|([^'".]+)""")

Segment = str | int


class Key:
    """A key as it is looked up: its first segment, what is dug out of the value found for that, and the module it names."""

    __slots__ = ("module", "root", "segments", "text")

    def __init__(self, text: str, segments: Sequence[Segment]) -> None:
        self.text = text
        self.root = str(segments[0])
        self.segments = tuple(segments[1:])
        at = self.root.find("::")
        self.module = self.root[:at] if at >= 0 else None

    def __str__(self) -> str:
        return self.text

    def undug(self, value: Value) -> Value:
        """What has the value where the key digs."""
        for segment in reversed(self.segments):
            value = [*[None] * segment, value] if isinstance(segment, int) else {segment: value}
        return value


@lru_cache(maxsize=50_000)
def key_from(text: str) -> Key:
    """The key that a text is; DataError when it is none."""
    return Key(text, _segments(text, "key: '" + text + "'"))


def _segments(text: str, where: str) -> tuple[Segment, ...]:
    """`a.b.1."x.y"` as its parts; numbers that are not quoted are indexes. DataError with `where` when it is no key."""
    found = _split(text)
    if found is None:
        raise DataError(f"Syntax error in {where}")
    return found


@lru_cache(maxsize=20_000)
def _split(text: str) -> tuple[Segment, ...] | None:
    if text and "." not in text and '"' not in text and "'" not in text:
        return (text,)
    found: list[Segment] = []
    at = 0
    while True:
        match = _SEGMENT.match(text, at)
        if match is None:
            return None
        quoted, plain = match[1] or match[2], (match[3] or "").strip()
        found.append(quoted if quoted is not None else int(plain.lstrip(":")) if _INDEX.fullmatch(plain) else plain)
        at = match.end()
        if at == len(text):
            return tuple(found)
        if text[at] != ".":
            return None
        at += 1


def dug(invocation: Invocation, value: Value, segments: Sequence[Segment], key: str) -> Value:
    """What lies at the segments in a value; MISSING when there is nothing."""
    explainer = invocation.explainer
    if explainer is None:
        for segment in segments:
            value = _step(value, segment, key)
            if value is MISSING:
                return MISSING
        return value
    with explainer.within("sub_key", ".".join(map(str, segments))):
        for segment in segments:
            with explainer.within("segment", segment):
                value = _step(value, segment, key)
                if value is MISSING:
                    explainer.tell("not_found", segment)
                    return MISSING
                explainer.tell("found", segment, value)
    return value


def _step(value: Value, segment: Segment, key: str) -> Value:
    if value is None:
        return MISSING
    if isinstance(value, list) and isinstance(segment, int):
        return value[segment] if 0 <= segment < len(value) else MISSING
    if isinstance(value, dict):
        return value.get(key_of(segment), MISSING)
    raise DataError(
        f"Data Provider type mismatch: Got {ruby_class(value)} when a hash-like object was expected to access value using "
        f"'{segment}' from key '{key}'"
    )


def variable(invocation: Invocation, name: str, subject: str) -> Value:
    """`%{facts.os.family}`; what is not there is undef."""
    root, *digs = _segments(name, "string: " + subject) if name else ("",)
    if root == "facts" and digs and isinstance(digs[0], str) and invocation.explainer is None and not invocation.hides("facts"):
        # So it is known which facts a catalog depends on.
        fact = invocation.context.fact(digs[0])
        value = dug(invocation, {} if fact is None else {digs[0]: fact}, digs, name)
        return None if value is MISSING else value
    if invocation.explainer is None:
        value = invocation.variable(str(root))
    else:
        with invocation.explainer.within("scope", "Global Scope"):
            value = invocation.variable(str(root))
    if value is not None and digs:
        value = dug(invocation, value, digs, name)
        if value is MISSING:
            value = None
    return value


def interpolated(invocation: Invocation, value: Value, *, methods: bool | None = True) -> Value:
    """
    A value with all its expressions replaced, at every depth.

    `methods`: whether `lookup('key')` and the like may stand there; None: they are left as they are.

    Raises:
        DataError: a method that is not known or not allowed here, a key that is none, an expression that leads back to itself.
    """
    kind = value.__class__
    if kind is str:
        return _text(invocation, value, methods) if "%{" in value else value
    if kind is list:
        return [interpolated(invocation, item, methods=methods) for item in value]
    if kind is not dict:
        return value
    found: dict[Any, Value] = {}
    for key, item in value.items():
        inner = item.__class__
        if inner is str:
            if "%{" in item:
                item = _text(invocation, item, methods)
        elif inner is dict or inner is list:
            item = interpolated(invocation, item, methods=methods)
        if key.__class__ is str and "%{" in key:
            key = key_of(_text(invocation, key, methods))
        found[key] = item
    return found


@lru_cache(maxsize=20_000)
def _pieces(subject: str) -> tuple[tuple[str, str, str, str], ...]:
    """The expressions of a text: what stands before each, its method, its argument, and itself. The last has no expression."""
    found = []
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
        found.append((subject[end : match.start()], kind, argument, match[0]))
        end = match.end()
    return (*found, (subject[end:], "empty", "", ""))


def _text(invocation: Invocation, subject: str, methods: bool | None) -> Value:
    if invocation.explainer is None:
        return _filled(invocation, subject, methods)
    with invocation.explainer.within("interpolate", subject):
        return _filled(invocation, subject, methods)


def _filled(invocation: Invocation, subject: str, methods: bool | None) -> Value:
    found: list[str] = []
    for literal, kind, argument, whole in _pieces(subject):
        found.append(literal)
        if kind == "empty":
            continue
        if kind == "scope":
            found.append(_shown(_again(invocation, "scope:", argument, variable(invocation, argument, subject))))
            continue
        if methods is None:
            found.append(whole)
            continue
        if methods is False:
            raise DataError("Interpolation using method syntax is not allowed in this context", final=True)
        if kind == "alias()":
            if whole != subject:
                raise DataError("'alias' interpolation is only permitted if the expression is equal to the entire string", final=True)
            return invocation.sub_lookup(argument)
        prefix = "scope:" if kind == "scope()" else ""
        if kind in ("lookup()", "hiera()"):
            value = invocation.sub_lookup(argument)
        elif kind == "scope()":
            value = variable(invocation, argument, subject)
        elif kind == "literal()":
            value = argument
        else:
            raise DataError(f"Unknown interpolation method '{kind[:-2]}'", final=True)
        found.append(_shown(_again(invocation, prefix, argument, value)))
    return "".join(found)


def _again(invocation: Invocation, prefix: str, name: str, value: Value) -> Value:
    """
    What an expression gave may hold expressions itself, though not the same again.

    Only variables, where the reference takes any: a node could else have a fact read any key of the data.
    """
    kind = value.__class__
    if (kind is str and "%{" in value) or kind is list or kind is dict:
        with invocation.checked(prefix + name):
            return interpolated(invocation, value, methods=None)
    return value


def _shown(value: Value) -> str:
    """Collections stand in texts as the reference's own language writes them."""
    kind = value.__class__
    if kind is str:
        return value  # type: ignore[no-any-return]
    return inspect(value) if kind is list or kind is dict else to_s(value)

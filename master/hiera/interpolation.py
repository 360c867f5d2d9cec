"""`%{…}` in data and in paths. Source: language reference 18.4."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from shared.errors import EvaluationError

from ..compiler.labels import label
from ..compiler.text import inspect, to_s
from ..compiler.values import Value
from ..compiler.world import NotFoundInData

__all__ = ["Template", "Variables", "dug", "expression_value", "interpolated", "segments", "whole_alias"]

Variables = Callable[[str], Value]
Find = Callable[[str], Value]

EMPTY = frozenset(("", "::", "''", '""', '"::"', "'::'"))
_INDEX = re.compile(r"-?[0-9]+")
_METHOD = re.compile(r"""(\w+)\((?:"([^"]*)"|'([^']*)')\)\Z""")
_INTERPOLATION = re.compile(r"%\{([^}]*)\}")
_SEGMENT = re.compile(r"""\s*(?:"([^"]+)"|'([^']+)'|([^'".\s][^'".]*?))\s*(\.|\Z)""")


Segment = str | int


def segments(key: str) -> list[Segment]:
    """`a.b.1."x.y"` as its parts; numbers that are not quoted are indexes. EvaluationError when it is no key."""
    if "." not in key and '"' not in key and "'" not in key:
        return [key]
    found: list[Segment] = []
    at = 0
    while True:
        match = _SEGMENT.match(key, at)
        if match is None:
            raise EvaluationError(f"Syntax error in key: '{key}'")
        quoted, plain = match[1] or match[2], match[3]
        found.append(quoted if quoted is not None else int(plain) if found and _INDEX.fullmatch(plain) else plain)
        at = match.end()
        if not match[4]:
            return found


def dug(value: Value, parts: Sequence[Segment], key: str) -> Value:
    """What lies at `parts` in `value`; NotFoundInData when there is nothing."""
    for part in parts:
        if isinstance(value, dict):
            if part in value:
                value = value[part]
            elif str(part) in value:
                value = value[str(part)]
            else:
                raise NotFoundInData(key)
        elif isinstance(value, list) and isinstance(part, int):
            if not 0 <= part < len(value):
                raise NotFoundInData(key)
            value = value[part]
        elif value is None:
            raise NotFoundInData(key)
        else:
            raise EvaluationError(
                f"Data Provider type mismatch: Got {label(value)} when a hash-like object was expected to access value using "
                f"'{part}' from key '{key}'"
            )
    return value


def variable(expression: str, variables: Variables) -> Value:
    """`%{facts.os.family}`; what is not there is undef."""
    root, *digs = segments(expression)
    try:
        return dug(variables(str(root)), digs, expression)
    except NotFoundInData:
        return None


def whole_alias(text: str) -> str | None:
    """The key of `%{alias('key')}` when that is all of the text."""
    whole = _INTERPOLATION.fullmatch(text)
    method = _METHOD.match(whole[1].strip()) if whole is not None else None
    if method is None or method[1] != "alias":
        return None
    return method[2] if method[2] is not None else method[3]


def expression_value(expression: str, variables: Variables, find: Find) -> Value:
    """The value of what stands between the braces; `find` looks another key up."""
    if expression in EMPTY:
        return ""
    method = _METHOD.match(expression)
    if method is None:
        return variable(expression, variables)
    name, argument = method[1], method[2] if method[2] is not None else method[3]
    if name in ("lookup", "hiera"):
        return find(argument)
    if name == "scope":
        return variable(argument, variables)
    if name == "literal":
        return argument
    if name == "alias":
        raise EvaluationError("'alias' interpolation is only permitted if the expression is equal to the entire string")
    raise EvaluationError(f"Unknown interpolation method '{name}'")


def interpolated(text: str, variables: Variables, find: Find) -> str:
    """A text of the data with all its expressions replaced."""
    return _INTERPOLATION.sub(lambda match: _text(expression_value(match[1].strip(), variables, find)), text)


def _text(value: Value) -> str:
    """Collections stand in texts as the reference's own language writes them."""
    return inspect(value) if isinstance(value, list | dict) else to_s(value)


class Template:
    """A path or folder of hiera.yaml: its expressions may only be variables."""

    __slots__ = ("pieces",)

    def __init__(self, text: str) -> None:
        self.pieces: list[tuple[str, str | None]] = []
        end = 0
        for match in _INTERPOLATION.finditer(text):
            expression = match[1].strip()
            if _METHOD.match(expression):
                raise EvaluationError("Interpolation using method syntax is not allowed in this context")
            self.pieces.append((text[end : match.start()], None if expression in EMPTY else expression))
            end = match.end()
        self.pieces.append((text[end:], None))

    @property
    def names(self) -> list[str]:
        return [name for _, name in self.pieces if name is not None]

    def filled(self, values: Callable[[str], Value]) -> str:
        """The text; `values` gives what an expression stands for."""
        return "".join([text + ("" if name is None else to_s(values(name))) for text, name in self.pieces])

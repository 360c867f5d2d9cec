"""
Types from text: `Optional[String[1]]`.

One small parser for the language's type expressions: names, brackets, literals, arrays and hashes. Used for function signatures,
`PuppetType.new`, lookup options and data; manifests go through the compiler itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ...errors.issues import BadOperand
from ...values.core import DEFAULT, Key, PuppetType, Types, Value, key_of
from ...values.digits import parse_integer
from ..builtin import BUILTIN_TYPES
from ..kinds.base import INF, TypeReference
from .access import is_parameterized, no_access_error, type_from_access

_SPACE = r"(?:\s|\#[^\n]*)*+"
_TOKEN = re.compile(
    rf"""{_SPACE}(?:
      (?P<type>(?:::)?[A-Z]\w*(?:::[A-Z]\w*)*)
    | (?P<hex>-?0[xX][0-9a-fA-F]+)
    | (?P<number>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)
    | '(?P<single>(?:[^'\\]|\\.)*)'
    | "(?P<double>(?:[^"\\]|\\.)*)"
    | /(?P<regexp>(?:[^/\\]|\\.)*)/
    | (?P<word>[a-z_]\w*(?:::[a-z]\w*)*)
    | (?P<mark>=>|[\[\]{{}},])
    ){_SPACE}""",
    re.VERBOSE | re.DOTALL,
)
_COUNTS: Mapping[str, tuple[str, int, float]] = {
    "Array": ("1 to 3", 1, 3),
    "Boolean": ("1", 1, 1),
    "Collection": ("1 to 2", 1, 2),
    "Enum": ("1 or more", 1, INF),
    "Float": ("1 or 2", 1, 2),
    "Hash": ("2 to 4", 2, 4),
    "Integer": ("1 or 2", 1, 2),
    "NotUndef": ("0 to 1", 0, 1),
    "Optional": ("1", 1, 1),
    "Pattern": ("1 or more", 1, INF),
    "Sensitive": ("0 to 1", 0, 1),
    "String": ("1 to 2", 1, 2),
    "Struct": ("1", 1, 1),
    "Tuple": ("1 or more", 1, INF),
    "Variant": ("1 or more", 1, INF),
}
"""How many parameters a type requires: as the reference writes it, the fewest and the most."""
_WORDS = {"default": DEFAULT, "undef": None, "true": True, "false": False}


def parse_type(text: str, resolver: Types | None = None) -> PuppetType:
    """
    Return the type that `text` writes.

    Args:
        resolver: finds aliases and resource types; without it only builtin types are known.
    Raises:
        EvaluationError: the text is not a type expression.
    """
    if resolver is None:
        return _builtin(text)
    return _Parser(text, resolver).type_expression()


@lru_cache(maxsize=1024)
def _builtin(text: str) -> PuppetType:
    return _Parser(text, None).type_expression()


class _Parser:
    def __init__(self, text: str, resolver: Types | None) -> None:
        self.text = text
        self.resolver = resolver
        self.tokens: list[tuple[str, str]] = []
        self.places: list[tuple[int, int]] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if not match or match.end() == at:
                raise self.error()
            at = match.end()
            kind = match.lastgroup
            assert kind is not None
            self.tokens.append((kind, match[kind]))
            self.places.append(match.span(kind))
        self.tokens.append(("end", ""))
        self.at = 0

    def error(self, text: str = "") -> EvaluationError:
        return EvaluationError(
            f"The expression <{text or self.text}> is not a valid type specification.", hint="Write a type as in Optional[String[1]]."
        )

    def type_expression(self) -> PuppetType:
        if self.tokens[0][0] == "end":
            raise self.error()
        value = self.value()
        if self.tokens[self.at][0] != "end" or not isinstance(value, PuppetType):
            raise self.error()
        return value

    def take(self, mark: str) -> bool:
        if self.tokens[self.at] == ("mark", mark):
            self.at += 1
            return True
        return False

    def value(self) -> Value:
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "end":
            raise EvaluationError("Syntax error at end of input", hint=f"The type {self.text} is not complete.")
        if kind == "type":
            return self.access(self.named(text))
        if kind == "hex":
            return parse_integer(text, 16)
        if kind == "number":
            return float(text) if re.search(r"[.eE]", text) else parse_integer(text)
        if kind == "single":
            return re.sub(r"\\(['\\])", r"\1", text)
        if kind == "double":
            escapes = {"n": "\n", "t": "\t", "r": "\r", "s": " "}
            return re.sub(r"\\(.)", lambda m: escapes.get(m[1], m[1]), text, flags=re.DOTALL)
        if kind == "regexp":
            return Regexp(text.replace("\\/", "/"))
        if kind == "word":
            return _WORDS.get(text, text)
        if (kind, text) == ("mark", "["):
            return self.listed("]")
        if (kind, text) == ("mark", "{"):
            return self.hash()
        raise self.error()

    def named(self, name: str) -> PuppetType:
        name = name.removeprefix("::")
        type_ = BUILTIN_TYPES.get(name.lower())
        if type_ is None and self.resolver is not None:
            type_ = self.resolver.find_type(name)
        return type_ if type_ is not None else TypeReference(name)

    def access(self, base: PuppetType) -> Value:
        value: Value = base
        start = self.places[self.at - 1][0]
        while self.take("["):
            keys = self.listed("]")
            if isinstance(value, TypeReference):
                value = TypeReference(self.text_since(start))
            elif isinstance(value, PuppetType):
                value = self.parameterized(value, keys, start)
            else:
                raise no_access_error(value)
        return value

    def parameterized(self, base: PuppetType, keys: list[Value], start: int) -> Value:
        """Return `base[keys]`. The reference has words of its own for what is wrong in types as texts."""
        if not is_parameterized(base):
            raise EvaluationError(f"Not a parameterized type <{base.name}>")
        required, low, high = _COUNTS.get(base.name, ("", 0, INF))
        if not low <= len(keys) <= high:
            raise EvaluationError(f"Invalid number of type parameters specified: {base.name} requires {required}, {len(keys)} provided")
        try:
            return type_from_access(base, keys)
        except BadOperand as err:
            raise self.error(self.text_since(start)) from err

    def text_since(self, start: int) -> str:
        """Return the text from `start` to the last token that was taken."""
        return self.text[start : self.places[self.at - 1][1]]

    def listed(self, end: str) -> list[Value]:
        out: list[Value] = []
        while not self.take(end):
            out.append(self.value())
            if not self.take(","):
                if not self.take(end):
                    raise self.error()
                break
        return out

    def hash(self) -> dict[Key, Value]:
        out: dict[Key, Value] = {}
        while not self.take("}"):
            key = self.value()
            if not self.take("=>"):
                raise self.error()
            out[key_of(key)] = self.value()
            if not self.take(","):
                if not self.take("}"):
                    raise self.error()
                break
        return out

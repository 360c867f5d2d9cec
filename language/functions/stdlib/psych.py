"""
YAML text as Ruby's Psych writes it, byte for byte, because the content of managed files must not depend on the master.

Both use libyaml, so this module only has to choose the style of each scalar as Psych does. A collection that is used twice
becomes an anchor and an alias.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from shared.errors import EvaluationError

from ...values.core import Key, Value, entries
from ...values.labels import label
from ...values.text import float_text
from .octets import encode_octets

_LETTERS: Final = re.compile(r"^[^\d.:-]?(?:[^\W\d_]|[_\s!@#$%^&*(){}<>|/\\~;=])+", re.MULTILINE)
_WORDS: Final = frozenset(("~", "null", "yes", "true", "on", "no", "false", "off"))
_OTHER: Final = re.compile(
    r"""
      -?\d{4}-\d{1,2}-\d{1,2}(?:[Tt]|\s+)\d{1,2}:\d\d:\d\d(?:\.\d*)?(?:\s*(?:Z|[-+]\d{1,2}:?(?:\d\d)?))?   # time
    | \d{4}-(?:1[012]|0\d|\d)-(?:[12]\d|3[01]|0\d|\d)                                                      # date
    | [-+]?\.(?:inf|INF|Inf) | \.(?:nan|NaN|NAN)
    | :.+                                                                                                  # symbol
    | [-+]?[0-9][0-9_]*(?::[0-5]?[0-9]){1,2}(?:\.[0-9_]*)?                                                 # base 60
    | [-+]?(?:[0-9][0-9_,]*)?\.[0-9]*(?:[eE][-+][0-9]+)?                                                   # float
    | [-+]?0b[0-1_,]+ | [-+]?0[0-7_,]+ | [-+]?(?:0|[1-9](?:[0-9]|,[0-9]|_[0-9])*) | [-+]?0x[0-9a-fA-F_,]+  # integer
    """,
    re.VERBOSE | re.ASCII,
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_STR: Final = "tag:yaml.org,2002:str"


def _is_text(text: str) -> bool:
    """Return whether a plain scalar of this text would be read back as a string."""
    if not text:
        return False
    if _LETTERS.match(text) or "\n" in text:
        return len(text) > 5 or text.lower() not in _WORDS
    return _OTHER.fullmatch(text) is None or re.fullmatch(r"[-+]?\.", text) is not None


def _text_event(text: str, width: int | None) -> yaml.ScalarEvent:
    style: str | None = None
    if not text.isascii() and _SURROGATE.search(text):
        return yaml.ScalarEvent(None, "!binary", (False, False), base64.b64encode(encode_octets(text)).decode(), style="|")
    if re.search(r"\n(?!\n?\Z)", text):
        style = "|"
    elif text == "<<":
        return yaml.ScalarEvent(None, _STR, (False, False), text, style="'")
    elif text in ("y", "n"):
        style = '"'
    elif width is not None and len(text) > width >= 0:
        style = ">"
    elif re.search(r'^[^\w][^"]*$', text, re.MULTILINE):
        style = '"'
    elif not _is_text(text) or re.match(r"0[0-7]*[89]", text):
        style = "'"
    return yaml.ScalarEvent(None, None, (True, True), text, style=style)


def _plain_event(text: str) -> yaml.ScalarEvent:
    return yaml.ScalarEvent(None, None, (True, False), text)


class _YamlEvents:
    def __init__(self, root: Value, width: int | None) -> None:
        self.width = width
        self.uses: dict[int, int] = {}
        self.anchors: dict[int, str] = {}
        self._count(root)

    def _count(self, value: Value) -> None:
        if isinstance(value, list | dict):
            self.uses[id(value)] = self.uses.get(id(value), 0) + 1
            if self.uses[id(value)] == 1:
                for part in value if isinstance(value, list) else [item for pair in entries(value) for item in pair]:
                    self._count(part)

    def events(self, value: Value) -> Iterator[yaml.Event]:
        if isinstance(value, list | dict):
            yield from self._collection(value)
        elif isinstance(value, str):
            yield _text_event(value, self.width)
        elif value is None:
            yield yaml.ScalarEvent(None, "tag:yaml.org,2002:null", (True, False), "")
        elif isinstance(value, bool):
            yield _plain_event("true" if value else "false")
        elif isinstance(value, int):
            yield _plain_event(str(value))
        elif isinstance(value, float):
            yield _plain_event(_float(value))
        else:
            raise EvaluationError(
                f"to_yaml(): a value of type {label(value)} cannot be written as YAML",
                hint="Convert it with String() or, when it is Sensitive, use stdlib::to_yaml().",
            )

    def _collection(self, value: list[Value] | dict[Key, Value]) -> Iterator[yaml.Event]:
        anchor: str | None = None
        if self.uses[id(value)] > 1:
            if id(value) in self.anchors:
                yield yaml.AliasEvent(self.anchors[id(value)])
                return
            anchor = self.anchors[id(value)] = str(len(self.anchors) + 1)
        if isinstance(value, list):
            yield yaml.SequenceStartEvent(anchor, None, True, flow_style=False)
            for item in value:
                yield from self.events(item)
            yield yaml.SequenceEndEvent()
            return
        yield yaml.MappingStartEvent(anchor, None, True, flow_style=False)
        for key, item in entries(value):
            yield from self.events(key)
            yield from self.events(item)
        yield yaml.MappingEndEvent()


def _float(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    return float_text(value) if math.isfinite(value) else ".inf" if value > 0 else "-.inf"


def dump(value: Value, *, indentation: int | None = None, line_width: int | None = None, canonical: bool = False) -> str:
    """
    Return a value as one YAML document that begins with `---`.

    Args:
        line_width: characters after which long plain text is folded; -1: never.
    Raises:
        EvaluationError: it contains a value that is neither a collection nor a string, number, boolean or undef.
    """
    events: list[yaml.Event] = [yaml.StreamStartEvent(), yaml.DocumentStartEvent(explicit=True)]
    events += _YamlEvents(value, line_width).events(value)
    events += [yaml.DocumentEndEvent(explicit=False), yaml.StreamEndEvent()]
    width: Any = line_width if line_width is None or line_width >= 0 else 1 << 30
    text: str = yaml.emit(events, Dumper=yaml.CDumper, canonical=canonical, indent=indentation or 2, width=width, allow_unicode=True)
    # A document that is one plain scalar is left open by libyaml; Psych does not close it either.
    return text.removesuffix("...\n")

"""Variables for templates, generated from the names and words that a template has."""

from __future__ import annotations

import random
import re
from typing import Any

_INSTANCE = re.compile(r"@([a-zA-Z_]\w*)")
_LOOKED_UP = re.compile(r"""(?:scope\[|lookupvar\(|has_variable\?\s*\(?)\s*["']([\w:]+)["']""")
_WORDS = re.compile(r"""["']([\w. -]{1,30})["']""")
_TEXTS = (
    "",
    "a",
    "web1",
    "true",
    "false",
    "on",
    "off",
    "80",
    "1.2.3",
    "2.4",
    "a b",
    "a,b,c",
    "*",
    "/var/log",
    "Yes",
    "x\ny",
    'q"uote',
    "ü",
)


class Variables:
    """Generates the variables of one template."""

    def __init__(self, template: str, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = sorted({*_INSTANCE.findall(template), *_LOOKED_UP.findall(template)})
        code = " ".join(re.findall(r"<%(?!#)(.*?)%>", template, re.DOTALL))
        self.words = sorted(set(_WORDS.findall(code)))
        self.template = template

    def generate(self) -> dict[str, Any]:
        """Return values for most of the names."""
        share = self.random.choice((0.0, 0.1, 0.4))
        return {name: self._for_name(name) for name in self.names if self.random.random() >= share}

    def _for_name(self, name: str) -> Any:
        """Return a value of a kind that the template can use in most cases, and of any kind now and then."""
        if self.random.random() < 0.12:
            return self._any(2)
        used = re.escape(name) + r"['\"\])]*"
        if re.search(rf"{used}\.(each_pair|keys|has_key|sort\.each *do *\| *\w+ *, *\w+|each *do *\| *\w+ *, *\w+)", self.template) or (
            re.search(rf"{used}\[['\"]", self.template)
        ):
            return self._hash(3)
        if re.search(rf"{used}\.(each|join|sort|map|flatten|collect|any|length|zip|first)", self.template):
            return [self._item() for _ in range(self.random.randrange(4))]
        return self._scalar()

    def _item(self) -> Any:
        return self._hash(2) if self.words and self.random.random() < 0.5 else self._scalar()

    def _scalar(self) -> Any:
        kind = self.random.randrange(10)
        if kind < 6:
            return self.random.choice((*_TEXTS, *self.words))
        return self.random.choice((True, False, None, 0, 1, 8080, -3, 1.5, 2.0))

    def _hash(self, depth: int) -> dict[str, Any]:
        keys = [word for word in self.words if self.random.random() < 0.6] or ["a", "b"]
        self.random.shuffle(keys)
        return {key: self._any(depth - 1) for key in keys}

    def _any(self, depth: int) -> Any:
        kind = self.random.randrange(6) if depth > 0 else 0
        if kind < 3:
            return self._scalar()
        if kind == 3:
            return [self._any(depth - 1) for _ in range(self.random.randrange(4))]
        return self._hash(depth)

"""
Reading YAML, in one pass and within limits. Use `plainyaml`, which loads this module with the first document.

libyaml takes the text apart; its events are put together here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from ..errors import BadData, octet_place
from .yamlscalars import MAX_DEPTH, MAX_NODES, ScalarError, Scalars, YamlError

MAX_REPEATED = 64 * 2**20  # characters of the texts that aliases repeat
MAX_TAG_DIRECTIVES = 32  # libyaml compares each with all before it

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG_DIRECTIVE = re.compile("(?:^|[\r\n\x85\u2028\u2029])%TAG")


def read(body: bytes | str, aliases: bool, first: bool, scalars: Scalars) -> Any:
    """Return the value of one YAML document; see `plainyaml.loads`."""
    try:
        text = body.decode("utf-8") if isinstance(body, bytes) else body
    except UnicodeDecodeError as err:
        raise BadData(f"Not YAML: {octet_place(err)}") from err
    # Counted before libyaml sees the text, which takes quadratic time for them.
    for number, _ in enumerate(_TAG_DIRECTIVE.finditer(text)):
        if number >= MAX_TAG_DIRECTIVES:
            raise BadData(f"YAML with more than {MAX_TAG_DIRECTIVES} %TAG directives")
    document = _Document(scalars, aliases)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            document.take(event)
            if first and type(event) is yaml.DocumentEndEvent:
                break
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        problem = " ".join(part for part in (err.problem, err.context) if part)
        raise YamlError(problem, *((mark.line + 1, mark.column + 1) if mark else ()), syntax=True) from err
    except (yaml.YAMLError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as err:
        raise BadData(f"Not YAML: {str(err).splitlines()[0] if str(err) else type(err).__name__}") from err
    return document.value


@dataclass(slots=True)
class _Open:
    """An unfinished map or list. `nodes` and `characters` are the counts before it."""

    value: Any
    tag: str | None
    anchor: str | None
    nodes: int
    characters: int
    line: int
    column: int
    keys: bool = False  # a map, of which a key comes next
    key: Any = None


@dataclass(frozen=True, slots=True)
class _Anchored:
    """The target of an alias, with the number of values that it counts for."""

    value: Any
    nodes: int
    characters: int


class _Merge:
    """The key `<<`, until it is known whether its value can be merged."""


_MERGE = _Merge()


@dataclass(slots=True)
class _Document:
    """One document, put together event by event."""

    scalars: Scalars
    aliases: bool
    value: Any = None
    nodes: int = 0
    characters: int = 0
    documents: int = 0
    open: list[_Open] = field(default_factory=list)
    anchors: dict[str, _Anchored | None] = field(default_factory=dict)  # None while it is open

    def take(self, event: Any) -> None:
        """Take the next event into the document; raise BadData when it must not be there."""
        kind = type(event)
        try:
            if kind is yaml.ScalarEvent:
                self._scalar(event)
            elif kind is yaml.MappingStartEvent:
                self._start(event, {}, keys=True)
            elif kind is yaml.SequenceStartEvent:
                self._start(event, [], keys=False)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._end()
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                self.documents += 1
                if self.documents > 1:
                    raise ScalarError("Not one YAML document but several")
        except ScalarError as err:
            mark = event.start_mark
            raise YamlError(err.message, mark.line + 1, mark.column + 1) from err

    def _scalar(self, event: Any) -> None:
        text, tag = event.value, event.tag
        self.nodes += 1
        self.characters += len(text)
        if self.nodes > MAX_NODES:
            _too_many()
        top = self.open[-1] if self.open else None
        if top is not None and top.keys:
            value = self._key(event)
        elif tag is not None:
            value = self.scalars.tagged(tag, text)
        else:
            value = text if event.style else self.scalars.plain(text)
        if event.anchor:
            self.anchors[event.anchor] = _Anchored(value, 1, len(text))
        self._put(value)

    def _key(self, event: Any) -> Any:
        """Return the value of a scalar that is a key."""
        text, tag, scalars = event.value, event.tag, self.scalars
        if not scalars.text_keys:
            if text == "<<" and tag is None and not event.style:
                return _MERGE
            return scalars.tagged(tag, text) if tag is not None else text if event.style else scalars.plain(text)
        if tag is not None:
            scalars.tagged(tag, text)  # whether it is allowed
        return scalars.symbol(text[1:]) if not event.style and text[:1] == ":" and len(text) > 1 else text

    def _start(self, event: Any, value: Any, *, keys: bool) -> None:
        if self.open and self.open[-1].keys:
            raise ScalarError("found unhashable key while constructing a mapping")
        mark = event.start_mark
        self.open.append(_Open(value, event.tag, event.anchor, self.nodes, self.characters, mark.line, mark.column, keys))
        self.nodes += 1
        if self.nodes > MAX_NODES:
            _too_many()
        if event.anchor:
            self.anchors[event.anchor] = None
        if len(self.open) > MAX_DEPTH:
            raise ScalarError(f"YAML nested more than {MAX_DEPTH} levels deep")

    def _end(self) -> None:
        done = self.open.pop()
        value = done.value
        if done.tag is not None:
            try:
                value = self.scalars.collection(done.tag, value)
            except ScalarError as err:
                raise YamlError(err.message, done.line + 1, done.column + 1) from err
        if done.anchor:
            self.anchors[done.anchor] = _Anchored(value, self.nodes - done.nodes, self.characters - done.characters)
        self._put(value)

    def _alias(self, event: Any) -> None:
        if not self.aliases:
            raise ScalarError("YAML aliases are not accepted")
        if event.anchor not in self.anchors:
            raise ScalarError("found undefined alias")
        target = self.anchors[event.anchor]
        if target is None:
            raise ScalarError("A YAML alias stands inside what it names")
        # An alias counts as much as what it repeats: nine nested ones would otherwise expand to a billion values.
        self.nodes += target.nodes
        self.characters += target.characters
        if self.nodes > MAX_NODES:
            _too_many()
        if self.characters > MAX_REPEATED and target.characters:
            raise ScalarError(f"YAML with aliases that repeat more than {MAX_REPEATED} characters")
        self._put(target.value, alias=True)

    def _put(self, value: Any, *, alias: bool = False) -> None:
        """`value` where it belongs; it is complete."""
        if not self.open:
            self.value = value
            return
        top = self.open[-1]
        if not isinstance(top.value, dict):
            top.value.append(value)
        elif top.keys:
            if isinstance(value, dict | list):
                raise ScalarError("found unhashable key while constructing a mapping")
            top.key, top.keys = str(value) if self.scalars.text_keys and not isinstance(value, str) else value, False
        else:
            top.keys = True
            if top.key is _MERGE:
                _merge(top.value, value, alias=alias)
            else:
                top.value[top.key] = value


def _merge(target: dict[Any, Any], value: Any, *, alias: bool) -> None:
    """Apply `<<: value` as psych does: the later key wins; a value that is neither a map nor a list of maps stays a value."""
    if isinstance(value, dict):
        target.update(value)
    elif isinstance(value, list) and not alias and all(isinstance(part, dict) for part in value):
        # Of several merged maps the earlier ones win, as YAML's merge key defines.
        for part in reversed(value):
            target.update(part)
    else:
        target["<<"] = value


def _too_many() -> None:
    raise ScalarError(f"YAML of more than {MAX_NODES} nodes")

"""What a lookup did, step by step, as a tree: `puppet lookup --explain`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from ..compiler.values.core import Value, entries
from ..compiler.values.text import to_s

_INTERPOLATED = re.compile(r"#(?=[{$@])")  # Ruby's own interpolation

__all__ = ["Explainer", "Step", "silent"]

_FOUND = {"found": "", "found_in_overrides": " in overrides", "found_in_defaults": " in defaults"}
_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\t": "\\t",
    "\r": "\\r",
    "\x1b": "\\e",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\v": "\\v",
}


@dataclass
class Step:
    """
    One step and those below it.

    Attributes:
        kind: root, data, meta, invalid_key, merge_source, module, interpolate, merge, data_provider, path, uri, sub_key, segment, scope.
        about: what it is about: a key, a name, a text.
        event: found, found_in_overrides, found_in_defaults, not_found, result, location_not_found, module_not_found, …
    """

    kind: str
    about: Any = ""
    detail: Any = None  # the configuration's path, the original location, the options of a merge
    module: str | None = None
    event: str = ""
    key: str | None = None
    value: Value = None
    texts: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    # --- as text ---

    def lines(self, indent: str) -> Iterator[str]:
        """The text of this step, a line each; `indent` stands before all of them."""
        deeper = indent + "  "
        kind = self.kind
        if kind == "root":
            yield from self._below(indent)
            yield from (indent + text for text in self.texts)
        elif kind in ("data", "meta"):
            yield f'{indent}Searching for "{self.about}"'
            yield from self._below(deeper)
        elif kind == "invalid_key":
            yield f'{indent}Invalid key "{self.about}"'
        elif kind == "merge_source":
            yield f'{indent}Using merge options from "{self.about}" hash'
        elif kind == "module":
            named = "Module" if self.event == "module_not_found" else "Module data provider for module"
            yield f'{indent}{named} "{self.about}" not found'
        elif kind == "merge":
            yield from self._merge(indent, deeper)
        elif kind == "segment":
            yield from self._outcome(indent)
        else:
            yield from self._headed(indent, deeper)

    def _headed(self, indent: str, deeper: str) -> Iterator[str]:
        kind = self.kind
        if kind == "interpolate":
            yield f'{indent}Interpolation on "{self.about}"'
        elif kind == "data_provider":
            yield f"{indent}{self.about}"
            if self.detail:
                yield f'{deeper}Using configuration "{self.detail}"'
        elif kind in ("path", "uri"):
            name = "Path" if kind == "path" else "URI"
            yield f'{indent}{name} "{self.about}"'
            yield f'{deeper}Original {name.lower()}: "{self.detail}"'
        elif kind == "sub_key":
            yield f'{indent}Sub key: "{self.about}"'
        else:  # scope
            yield f"{indent}{self.about}"
        yield from self._below(deeper)
        if self.event == "location_not_found":
            yield f"{deeper}{'Path' if kind == 'path' else 'URI'} not found"
        if kind != "interpolate":
            yield from self._outcome(deeper)

    def _merge(self, indent: str, deeper: str) -> Iterator[str]:
        if not self.steps:
            return
        if len(self.steps) == 1:  # nothing was merged
            yield from self.steps[0].lines(indent)
            return
        yield f"{indent}Merge strategy {self.about}"
        if self.detail:
            yield f"{deeper}Options: {shown(self.detail, deeper)}"
        yield from self._below(deeper)
        if self.event == "result":
            yield f"{deeper}Merged result: {shown(self.value, deeper)}"

    def _below(self, indent: str) -> Iterator[str]:
        for step in self.steps:
            yield from step.lines(indent)

    def _outcome(self, indent: str) -> Iterator[str]:
        if self.event == "not_found":
            yield f'{indent}No such key: "{self.key}"'
        elif self.event in _FOUND:
            yield f'{indent}Found key: "{self.key}" value: {shown(self.value, indent)}{_FOUND[self.event]}'
        yield from (indent + text for text in self.texts)

    # --- as data ---

    def data(self) -> dict[str, Any]:
        """The step as plain data, for `--render-as json`."""
        if self.kind == "merge" and len(self.steps) == 1:
            return self.steps[0].data()
        if self.kind == "merge_source":
            return {"type": "merge_source", "merge_source": self.about}
        found: dict[str, Any] = {"branches": [step.data() for step in self.steps]} if self.steps else {}
        if self.kind == "root":
            return self.steps[0].data() if len(self.steps) == 1 else found
        key = self.about if self.kind in ("data", "meta", "invalid_key") else self.key
        if key is not None:
            found["key"] = key
        if self.event in _FOUND or self.event == "result":
            found["value"] = self.value
        if self.event:
            found["event"] = self.event
        if self.texts:
            found["texts"] = self.texts
        found["type"] = "root" if self.kind in ("data", "meta") else self.kind
        return found | self._named()

    def _named(self) -> dict[str, Any]:
        if self.kind in ("path", "uri"):
            return {f"original_{self.kind}": self.detail, self.kind: self.about}
        if self.kind == "interpolate":
            return {"expression": self.about}
        if self.kind == "scope":
            return {"name": self.about}
        if self.kind == "merge":
            return {"merge": self.about} | ({"options": self.detail} if self.detail else {})
        if self.kind == "data_provider":
            named = {"name": self.about} | ({"configuration_path": self.detail} if self.detail else {})
            return named | ({"module": self.module} if self.module else {})
        return {}


def shown(value: Value, indent: str) -> str:
    """A value over several lines; its inner lines stand two spaces deeper than `indent`."""
    inner = indent + "  "
    if isinstance(value, dict):
        parts = [f"{shown(key, inner)} => {shown(item, inner)}" for key, item in entries(value)]
        return _block("{", parts, "}", indent)
    if isinstance(value, list):
        return _block("[", [shown(item, inner) for item in value], "]", indent)
    if isinstance(value, str):
        text = '"' + "".join(_ESCAPES.get(c, c if c.isprintable() else f"\\x{ord(c):02X}") for c in value) + '"'
        return _INTERPOLATED.sub(r"\\\g<0>", text)
    return "nil" if value is None else to_s(value)


def _block(opened: str, parts: list[str], closed: str, indent: str) -> str:
    if not parts:
        return opened + closed
    return opened + "\n" + ",\n".join(f"{indent}  {part}" for part in parts) + f"\n{indent}{closed}"


class Explainer:
    """Writes the tree while a lookup runs. `only_options`: only how lookup_options came to be."""

    def __init__(self, *, only_options: bool = False) -> None:
        self.only_options = only_options
        self.root = Step("root")
        self._path = [self.root]

    @property
    def now(self) -> Step:
        return self._path[-1]

    @contextmanager
    def within(self, kind: str, about: Any, detail: Any = None, module: str | None = None) -> Iterator[Step]:
        """A step that lasts as long as the block."""
        step = Step(kind, about, detail, module)
        self.now.steps.append(step)
        self._path.append(step)
        try:
            yield step
        finally:
            self._path.pop()

    def add(self, step: Step) -> None:
        self.now.steps.append(step)

    def tell(self, event: str, key: Any = None, value: Value = None) -> None:
        """What became of the step that runs."""
        step = self.now
        step.event, step.value = event, value
        if key is not None:
            step.key = str(key)

    def say(self, text: str) -> None:
        self.now.texts.append(text)

    def text(self) -> str:
        """All of it; a line break after each line."""
        return "".join(f"{line}\n" for line in self.root.lines(""))


_SILENT: AbstractContextManager[None] = nullcontext()


def silent() -> AbstractContextManager[None]:
    """What stands in for a step when nobody asked for an explanation."""
    return _SILENT

"""The steps of a lookup as a tree, for `puppet lookup --explain`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar

from language.values.core import Value, entries
from language.values.text import to_s

_INTERPOLATED = re.compile(r"#(?=[{$@])")  # Ruby's own interpolation

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
class ExplanationStep:
    """
    One step of a lookup with the steps below it.

    Attributes:
        kind: root, data, meta, invalid_key, merge_source, module, interpolate, merge, data_provider, path, uri, sub_key, segment, scope.
        about: its subject: a key, a name, a text.
        detail: the path of the configuration, the original location, or the options of a merge.
        event: found, found_in_overrides, found_in_defaults, not_found, result, location_not_found, module_not_found, …
    """

    kind: str
    about: Any = ""
    detail: Any = None
    module: str | None = None
    event: str = ""
    key: str | None = None
    value: Value = None
    texts: list[str] = field(default_factory=list)
    steps: list[ExplanationStep] = field(default_factory=list)

    # --- as text ---

    def lines(self, indent: str) -> Iterator[str]:
        """Yield the lines of text of this step, each beginning with `indent`."""
        deeper = indent + "  "
        kind = self.kind
        if kind == "root":
            yield from self._inner_lines(indent)
            yield from (indent + text for text in self.texts)
        elif kind in ("data", "meta"):
            yield f'{indent}Searching for "{self.about}"'
            yield from self._inner_lines(deeper)
        elif kind == "invalid_key":
            yield f'{indent}Invalid key "{self.about}"'
        elif kind == "merge_source":
            yield f'{indent}Using merge options from "{self.about}" hash'
        elif kind == "module":
            subject = "Module" if self.event == "module_not_found" else "Module data provider for module"
            yield f'{indent}{subject} "{self.about}" not found'
        elif kind == "merge":
            yield from self._merge_lines(indent, deeper)
        elif kind == "segment":
            yield from self._outcome_lines(indent)
        else:
            yield from self._titled_lines(indent, deeper)

    def _titled_lines(self, indent: str, deeper: str) -> Iterator[str]:
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
        yield from self._inner_lines(deeper)
        if self.event == "location_not_found":
            yield f"{deeper}{'Path' if kind == 'path' else 'URI'} not found"
        if kind != "interpolate":
            yield from self._outcome_lines(deeper)

    def _merge_lines(self, indent: str, deeper: str) -> Iterator[str]:
        if not self.steps:
            return
        if len(self.steps) == 1:  # nothing was merged
            yield from self.steps[0].lines(indent)
            return
        yield f"{indent}Merge strategy {self.about}"
        if self.detail:
            yield f"{deeper}Options: {format_value(self.detail, deeper)}"
        yield from self._inner_lines(deeper)
        if self.event == "result":
            yield f"{deeper}Merged result: {format_value(self.value, deeper)}"

    def _inner_lines(self, indent: str) -> Iterator[str]:
        for step in self.steps:
            yield from step.lines(indent)

    def _outcome_lines(self, indent: str) -> Iterator[str]:
        if self.event == "not_found":
            yield f'{indent}No such key: "{self.key}"'
        elif self.event in _FOUND:
            yield f'{indent}Found key: "{self.key}" value: {format_value(self.value, indent)}{_FOUND[self.event]}'
        yield from (indent + text for text in self.texts)

    # --- as data ---

    def data(self) -> dict[str, Any]:
        """Return the step as plain data, for `--render-as json`."""
        if self.kind == "merge" and len(self.steps) == 1:
            return self.steps[0].data()
        if self.kind == "merge_source":
            return {"type": "merge_source", "merge_source": self.about}
        result: dict[str, Any] = {"branches": [step.data() for step in self.steps]} if self.steps else {}
        if self.kind == "root":
            return self.steps[0].data() if len(self.steps) == 1 else result
        key = self.about if self.kind in ("data", "meta", "invalid_key") else self.key
        if key is not None:
            result["key"] = key
        if self.event in _FOUND or self.event == "result":
            result["value"] = self.value
        if self.event:
            result["event"] = self.event
        if self.texts:
            result["texts"] = self.texts
        result["type"] = "root" if self.kind in ("data", "meta") else self.kind
        return result | self._own_fields()

    def _own_fields(self) -> dict[str, Any]:
        if self.kind in ("path", "uri"):
            return {f"original_{self.kind}": self.detail, self.kind: self.about}
        if self.kind == "interpolate":
            return {"expression": self.about}
        if self.kind == "scope":
            return {"name": self.about}
        if self.kind == "merge":
            return {"merge": self.about} | ({"options": self.detail} if self.detail else {})
        if self.kind == "data_provider":
            fields = {"name": self.about} | ({"configuration_path": self.detail} if self.detail else {})
            return fields | ({"module": self.module} if self.module else {})
        return {}


def format_value(value: Value, indent: str) -> str:
    """Return a value as text over several lines; the inner lines begin with two spaces more than `indent`."""
    inner = indent + "  "
    if isinstance(value, dict):
        parts = [f"{format_value(key, inner)} => {format_value(item, inner)}" for key, item in entries(value)]
        return _block("{", parts, "}", indent)
    if isinstance(value, list):
        return _block("[", [format_value(item, inner) for item in value], "]", indent)
    if isinstance(value, str):
        text = '"' + "".join(_ESCAPES.get(c, c if c.isprintable() else f"\\x{ord(c):02X}") for c in value) + '"'
        return _INTERPOLATED.sub(r"\\\g<0>", text)
    return "nil" if value is None else to_s(value)


def _block(opened: str, parts: list[str], closed: str, indent: str) -> str:
    if not parts:
        return opened + closed
    return opened + "\n" + ",\n".join(f"{indent}  {part}" for part in parts) + f"\n{indent}{closed}"


class Explainer:
    """Builds the tree while a lookup runs. With `only_options` only lookup_options are looked up."""

    is_asked: ClassVar[bool] = True

    def __init__(self, *, only_options: bool = False) -> None:
        self.only_options = only_options
        self.root = ExplanationStep("root")
        self._path = [self.root]

    @property
    def current(self) -> ExplanationStep:
        return self._path[-1]

    def within(self, kind: str, about: Any, detail: Any = None, module: str | None = None) -> AbstractContextManager[None]:
        """Add a step and make it the current one for the block."""
        step = ExplanationStep(kind, about, detail, module)
        self.add(step)
        return self._inside(step)

    @contextmanager
    def _inside(self, step: ExplanationStep) -> Iterator[None]:
        self._path.append(step)
        try:
            yield
        finally:
            self._path.pop()

    def add(self, step: ExplanationStep) -> None:
        """Add a step that has none below it."""
        self.current.steps.append(step)

    def record(self, event: str, key: Any = None, value: Value = None) -> None:
        """Record how the current step ended."""
        step = self.current
        step.event, step.value = event, value
        if key is not None:
            step.key = str(key)

    def add_text(self, text: str) -> None:
        """Add a line of text to the current step."""
        self.current.texts.append(text)

    def text(self) -> str:
        """Return the whole tree as text, each line with its line break."""
        return "".join(f"{line}\n" for line in self.root.lines(""))


class NoExplainer(Explainer):
    """The explainer of lookups that nobody wants explained: it records nothing."""

    is_asked = False
    _nowhere = nullcontext()

    def within(self, kind: str, about: Any, detail: Any = None, module: str | None = None) -> AbstractContextManager[None]:
        return self._nowhere

    def add(self, step: ExplanationStep) -> None:
        pass

    def record(self, event: str, key: Any = None, value: Value = None) -> None:
        pass

    def add_text(self, text: str) -> None:
        pass


NO_EXPLAINER = NoExplainer()

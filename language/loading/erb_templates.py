"""ERB templates as Python functions, translated when they are first rendered; code and refusals are cached as those of manifests are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from ..codegen.codecache import CodeCache
from ..codegen.units import StoredWarning, Unit
from ..erb import ERB_VERSION, Refusal
from ..erb.methods import NAMES
from ..syntax.source import Source

StoredImpurity = tuple[str, int]
"""The part of Ruby code that may give another result the next time, and its line."""
TEMPLATE = "__template__"
"""The global of a template's code that is its file."""
MAX_TEMPLATES = 2000
"""Templates that are ready to run; a site that puts facts into the text of inline_template() has no end of them."""


@dataclass(frozen=True, slots=True)
class ErbTemplate:
    """
    A template.

    Attributes:
        body: returns the text for a session; None when Ruby must render the template.
        reason: why Ruby must render it.
        line: where.
        impurity: inputs that it may read in addition to the scope, when Ruby renders it; None for a translated template, which reads
            nothing else.
    """

    body: Callable[[Any], str] | None
    reason: str = ""
    line: int = 0
    impurity: StoredImpurity | None = None


class ErbTemplates:
    """The templates of one environment."""

    def __init__(self, cache: CodeCache) -> None:
        self.cache = cache
        self._templates: dict[tuple[str | None, str], ErbTemplate] = {}

    def get(self, text: str, file: str | None) -> ErbTemplate:
        """Return the template of a text."""
        template = self._templates.get((file, text))
        if template is None:
            if len(self._templates) >= MAX_TEMPLATES:
                self._templates.clear()
            source = Source(text, file or "(erb)")
            template = self._templates[file, text] = _ready(_translated(source) if file is None else self._unit(source), source)
        return template

    def _unit(self, source: Source) -> Unit:
        """Return the unit of a template in a file. Texts of inline_template() are not cached on disk: there may be no end of them."""
        key = self.cache.key(source.text, f"erb|{ERB_VERSION}")
        unit = self.cache.get(key)
        if unit is None:
            unit = _translated(source)
            self.cache.put(key, unit)
        return unit


def _ready(unit: Unit, source: Source) -> ErbTemplate:
    """Return a template whose code has been run."""
    if not unit.parts:
        _, reason, line, _, _ = unit.warnings[0]
        return ErbTemplate(None, reason, line or 0, stored_impurity(unit.warnings[1:]))
    names: dict[str, Any] = {**NAMES, "__builtins__": {}, TEMPLATE: source.file}
    exec(unit.code(0, "body", source), names)  # noqa: S102 -- code that this compiler made of a template
    return ErbTemplate(names["_body"])


def _translated(source: Source) -> Unit:
    """Return the unit of a template; that of a template which cannot be translated has no code, and the reason as a warning."""
    # Imported here so that a process which finds its templates in the cache does not load the grammar of Ruby.
    from ..erb.purity import template_impurity
    from ..erb.translation import translate

    try:
        return Unit([], parts={(0, "body"): translate(source)})
    except Refusal as refusal:
        reason: StoredWarning = ("warning", refusal.reason, source.line(refusal.at), None, False)
        return Unit([], warnings=(reason, *impurity_warnings(template_impurity(source.text))))


def impurity_warnings(impurity: StoredImpurity | None) -> tuple[StoredWarning, ...]:
    """Return what a unit stores of an impurity."""
    return () if impurity is None else (("warning", impurity[0], impurity[1], None, False),)


def stored_impurity(warnings: tuple[StoredWarning, ...]) -> StoredImpurity | None:
    """Return the impurity that `impurity_warnings` stored."""
    return (warnings[0][1], warnings[0][2] or 0) if warnings else None


def template_line(traceback: TracebackType | None) -> int:
    """Return the line of a template at which an exception was raised; 0 when it was not in a template."""
    line = 0
    while traceback is not None:
        if TEMPLATE in traceback.tb_frame.f_globals:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line

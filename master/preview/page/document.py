"""
Writes the page: its program and style are files in this folder, its data is the result of the preview.

The program builds all that it shows from text, never from markup, and the page's own policy lets nothing else run and nothing be
loaded: what manifests, facts and diffs contain is shown, whatever it is.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import Any

import orjson

_FOLDER = Path(__file__).parent


def render_html(result: Mapping[str, Any]) -> str:
    """Return the page for the result of a preview as data (`docs/preview.md`): a whole document, which refers to nothing outside it."""
    style, script = page_style(), (_FOLDER / "page.js").read_text("utf-8")
    title = f"{result['from']['name']} → {result['to']['name']}"
    return Template((_FOLDER / "page.html").read_text("utf-8")).substitute(
        title=html.escape(title),
        policy=f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src {source_of(style)}; script-src {source_of(script)}",
        style=style,
        script=script,
        data=_inert(orjson.dumps(_packed(result)).decode()),
    )


def page_style() -> str:
    """Return the style of the page, for other pages with its look."""
    return (_FOLDER / "page.css").read_text("utf-8")


def source_of(text: str) -> str:
    """Return the text's digest as a source of a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _inert(text: str) -> str:
    """Return JSON that ends no element of HTML and begins no comment."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _packed(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result with the nodes of each entry as runs of their places in the list of all: a change of all nodes is two numbers."""
    names = sorted(result["nodes"])
    place = {name: number for number, name in enumerate(names)}
    packed = dict(result)
    packed["nodes"] = [[name, result["nodes"][name]] for name in names]
    for entries in ("changes", "errors", "warnings", "unstable"):
        packed[entries] = [{**entry, "nodes": _runs(sorted(place[name] for name in entry["nodes"]))} for entry in result[entries]]
    return packed


def _runs(numbers: Sequence[int]) -> list[int]:
    """Return the first and last number of each run of adjacent numbers."""
    if not numbers:
        return []
    gaps = [place for pair in pairwise(numbers) if pair[1] != pair[0] + 1 for place in pair]
    return [numbers[0], *gaps, numbers[-1]]

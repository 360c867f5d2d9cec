"""The pictures of the docs show what the demo's preview looks like today."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.clients import NEEDS_BROWSER
from tests.interop.pictures import DOCS, VISITS, taken, text_in
from tests.support.needs import needs_git

pytestmark = [*NEEDS_BROWSER, needs_git, pytest.mark.full]


def test_the_pictures_of_the_docs_are_not_old(tmp_path: Path) -> None:
    drawn = {name: text_in(png) for name, png in taken(tmp_path).items()}
    assert {name: text_in((DOCS / f"{name}.png").read_bytes()) for name in VISITS} == drawn, "make recording draws them"


def test_the_pictures_are_small_and_used() -> None:
    pictures = {path.name: path.stat().st_size for path in DOCS.rglob("*.png")}
    assert sorted(pictures) == sorted(f"{name}.png" for name in VISITS) and max(pictures.values()) < 100_000
    pages = "".join(path.read_text("utf-8") for path in DOCS.rglob("*.md"))
    assert [name for name in pictures if f"]({name})" not in pages] == []

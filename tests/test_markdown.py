"""Markdown is wrapped where that changes nothing but the width of lines."""

from __future__ import annotations

import pytest

from tests.support.markdown import long_lines, wrapped

LONG = ("word " * 30).strip()
FIRST, SECOND = ("word " * 23).strip(), ("word " * 7).strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"# Title\n\n{LONG}\n", f"# Title\n\nword {FIRST}\n{SECOND[5:]}\n", id="a paragraph"),
        pytest.param(f"- {LONG}\n- short\n", f"- {FIRST}\n  {SECOND}\n- short\n", id="an item"),
        pytest.param(f"1. {LONG}\n   {SECOND}\n", f"1. {FIRST}\n   {SECOND} {SECOND}\n", id="an item of two lines"),
    ],
)
def test_paragraphs_and_items_with_long_lines_are_wrapped(text: str, expected: str) -> None:
    assert wrapped(text) == expected
    assert len(long_lines(text)) == 1 and long_lines(expected) == []


@pytest.mark.parametrize(
    "text",
    [f"```sh\n{LONG}\n```\n", f"| {LONG} | |\n", f"# {LONG}\n", f"![{LONG}](picture.png)\n", "short\nlines\n- stay\n", f"{'x' * 130}\n"],
    ids=["a block", "a row", "a heading", "a picture", "short lines", "one word"],
)
def test_all_else_stays(text: str) -> None:
    assert wrapped(text) == text and long_lines(text) == []

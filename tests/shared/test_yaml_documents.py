"""Of several YAML documents the first one counts where that is asked for, as in Ruby."""

from __future__ import annotations

from typing import Any

import pytest

from shared.data import plainyaml


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"a: 1\n", {"a": 1}),
        (b"a: 1\n---\nb: 2\n", {"a": 1}),
        (b"---\na: 1\n--- \nb: [\n", {"a": 1}),
        (b"# comment\n\n---\na: 1\n...\n]: {\n", {"a": 1}),
        (b"---\n---\nb: 2\n", None),
        (b"---\r\na: 1\r\n---\r\nb: 2\r\n", {"a": 1}),
        (b"a: |\n  ---\n  text\n", {"a": "---\ntext\n"}),
    ],
)
def test_what_stands_behind_the_first_document_is_left_out(body: bytes, value: Any) -> None:
    assert plainyaml.loads(body, first=True) == value

"""Of several YAML documents the first one counts where that is asked for, as in Ruby."""

from __future__ import annotations

from typing import Any

import pytest

from shared.data import plainyaml
from shared.errors import BadData


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


def test_an_octet_that_is_not_utf_8_is_named_with_its_place() -> None:
    with pytest.raises(BadData, match="an octet is not UTF-8 at line 2 column 4"):
        plainyaml.loads(b"a: \xc3\xa9\nb: \xffc\n")

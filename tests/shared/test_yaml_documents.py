"""Of several YAML documents the first one counts, as in Ruby."""

from __future__ import annotations

import pytest

from shared import plainyaml


@pytest.mark.parametrize(
    ("body", "first"),
    [
        (b"a: 1\n", b"a: 1\n"),
        (b"a: 1\n---\nb: 2\n", b"a: 1\n"),
        (b"---\na: 1\n--- \nb: [\n", b"---\na: 1\n"),
        (b"# comment\n\n%YAML 1.1\n---\na: 1\n...\n]: {\n", b"# comment\n\n%YAML 1.1\n---\na: 1\n"),
        (b"---\n---\nb: 2\n", b"---\n"),
        (b"\xef\xbb\xbf---\r\na: 1\r\n---\r\nb: 2\r\n", b"\xef\xbb\xbf---\r\na: 1\r\n"),
        (b"a: |\n  ---\n  text\n", b"a: |\n  ---\n  text\n"),
        (b"---x: 1\n", b"---x: 1\n"),
        (b"", b""),
    ],
)
def test_what_stands_behind_the_first_document_is_left_out(body: bytes, first: bytes) -> None:
    assert plainyaml.first_document(body) == first

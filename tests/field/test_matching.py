from __future__ import annotations

import pytest

from tests.field.matching import text_for


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^web\d+\.[a-z]+\.example\.org$", "web1.a.example.org"),
        (r"^(deb-)?node\d{2}\.", "node11.example.com"),
        (r"^db10(1[7-9]|20)$", "db1017.example.com"),
        (r"\A[^.]+-test\z", "a-test.example.com"),
    ],
)
def test_a_name_is_made_up_that_the_pattern_of_a_node_matches(pattern: str, text: str) -> None:
    assert list(text_for(pattern, "example.com")) == [text]


def test_no_name_is_made_up_for_what_python_does_not_read() -> None:
    assert list(text_for(r"(?<=a+)\h", "example.com")) == []

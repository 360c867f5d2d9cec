"""A text that is kept compressed is sent compressed, and says the same as the text itself."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.wire.deflated import WORTHWHILE, DeflatedText


@given(head=st.binary(min_size=1, max_size=300), octet=st.integers(0, 255), size=st.integers(0, 200_000), tail=st.binary(max_size=40))
def test_the_stream_of_a_text_in_two_parts_is_that_of_the_whole_text(head: bytes, octet: int, size: int, tail: bytes) -> None:
    text = head + bytes([octet]) * size + tail
    deflated = DeflatedText.split(text, len(head))
    assert bytes(deflated) == text and len(deflated) == len(text)
    assert zlib.decompress(deflated.deflated()) == text  # which checks its Adler-32, too


def test_another_head_may_have_another_length() -> None:
    rest = b'"resources":[' + b'{"title":"one"},' * 500
    text = DeflatedText.split(b'{"uuid":"1",' + rest, len(b'{"uuid":"1",')).map_head(lambda head: head.replace(b"1", b"another"))
    assert bytes(text) == zlib.decompress(text.deflated()) == b'{"uuid":"another",' + rest


@pytest.mark.parametrize(
    ("length", "end"), [(WORTHWHILE - 1, 5), (5 * WORTHWHILE, -1), (5 * WORTHWHILE, 0), (5 * WORTHWHILE, 5 * WORTHWHILE)]
)
def test_a_short_text_and_one_without_two_parts_stay_as_they_are(length: int, end: int) -> None:
    deflated = DeflatedText.split(b"x" * length, end)
    assert deflated == DeflatedText(b"x" * length)
    assert zlib.decompress(deflated.deflated()) == bytes(deflated) == b"x" * length

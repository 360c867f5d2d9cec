from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import BadName, BadRequest
from shared.indirector.paths import MAX_SEPARATORS, decode_path, parameters
from shared.wire import percent

STEP = 64 * 1024


@pytest.mark.parametrize("before", range(STEP - 4, STEP + 1))
@pytest.mark.parametrize("text", [b"%41%42", b"%%41", b"%4", b"%", b"%zz", b""])
def test_a_long_text_is_decoded_as_in_one_step(before: int, text: bytes) -> None:
    data = b"x" * before + text + b"y" * STEP + text
    assert percent.decode_percent(data) == unquote_to_bytes(data)
    assert max(map(len, percent.pieces(data))) <= STEP


@pytest.mark.parametrize("before", range(STEP - 4, STEP + 1))
def test_a_character_and_a_broken_escape_are_seen_wherever_they_stand(before: int) -> None:
    assert decode_path("x" * before + "%C3%BC" + "y" * STEP) == "x" * before + "ü" + "y" * STEP
    with pytest.raises(BadName, match="percent escape"):
        decode_path("x" * before + "%4g" + "y" * STEP)


@given(st.lists(st.sampled_from([b"%", b"=", b"4", b"f", b"%25", b"%3D", b"%c3", b"=3D", b"\n", b"\r", b" ", b"_", b"z", b"\xff"])))
def test_any_text_is_decoded_as_the_standard_library_does_and_its_broken_escapes_are_seen(parts: list[bytes]) -> None:
    data = b"".join(parts)
    assert percent.decode_percent(data) == unquote_to_bytes(data)
    is_broken = re.search(rb"%(?![0-9A-Fa-f]{2})", data) is not None
    assert percent.decode_valid_percent(data) == (None if is_broken else unquote_to_bytes(data))


def test_PRS_09_a_form_of_nothing_but_separators_is_refused_before_it_is_taken_apart() -> None:
    assert parameters("&" * (MAX_SEPARATORS - 1) + "a=1") == {"a": "1"}
    with pytest.raises(BadRequest, match="More than 1000 parameters"):
        parameters("&" * 10 * MAX_SEPARATORS + "a=1")

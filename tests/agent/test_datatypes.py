"""What Ruby is told of data types that are none."""

from __future__ import annotations

import pytest

from agent.ruby import datatypes


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Array[" * 5000 + "Integer" + "]" * 5000, "is nested too deeply"),
        ("Integer[1,", "could not be parsed: Syntax error at end of input"),
    ],
    ids=["nested", "unfinished"],
)
def test_a_text_that_is_no_type_has_its_fault(text: str, fault: str) -> None:
    assert datatypes.answer("types", [text]) == [{"fault": fault}]

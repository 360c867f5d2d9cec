"""The chart of docs/performance.md is that of the numbers beside it."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.bench.chart import BARS, CHART, NUMBERS, Bar, chart, judged, rounded

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def numbers() -> Any:
    return json.loads(NUMBERS.read_text())


def test_the_chart_is_that_of_the_numbers_beside_it(numbers: Any) -> None:
    assert CHART.read_text() == chart(numbers), "make chart"


def test_the_chart_has_a_bar_of_its_length_and_a_figure_for_everything(numbers: Any) -> None:
    root = ElementTree.fromstring(chart(numbers))
    words = [each.text for each in root.iter(f"{SVG}text")]
    for bars in BARS.values():
        for bar in bars:
            assert bar.title in words
    lengths = [float(each.attrib["width"]) for each in root.iter(f"{SVG}rect") if each.attrib.get("height") == "14"]
    assert len(lengths) == sum(map(len, BARS.values())) and min(lengths) > 0


def test_the_numbers_are_numbers_and_name_no_place_of_a_machine(numbers: Any) -> None:
    assert not re.search(r"/|@|localhost", NUMBERS.read_text().replace("same of 100", ""))
    assert rounded(numbers) == numbers


@pytest.mark.parametrize(("times", "style"), [(0.9, "poor"), (2.0, "fair"), (3.9, "fair"), (4.0, "good")])
def test_a_bar_is_coloured_by_what_is_held(times: float, style: str) -> None:
    bar = Bar("", lambda numbers: (numbers["ours"], 1.0), less=False, limits=(2.0, 4.0))
    assert bar.times({"ours": times}) == times
    assert judged(bar, times) == style

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from master.pools import frames
from shared.data import plainjson, plainyaml
from shared.errors import BadData
from shared.indirector.core import Model
from shared.indirector.termini import Json, Yaml
from shared.models.facts import FACTS, Facts
from shared.wire.bounds import check_bounds, is_within_bounds
from shared.wire.dialects import LEGACY, MODERN
from tests.support.examples import examples


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": [value]} if depth % 2 else [value]
    return value


def digits(count: int) -> str:
    return "9" * count


# At the door's very edges: the most that is accepted, as JSON.
EDGES = {
    "an integer of 400 digits": digits(400),
    "a negative one": "-" + digits(399),
    "the largest float": "1.7976931348623157e308",
    "a float of many digits": "0." + digits(5000),
    "98 levels": "[" * 98 + "]" * 98,
    "98 levels of maps": '{"a":' * 98 + "1" + "}" * 98,
    "texts that look like numbers": json.dumps(["1:30", "0x1f", "1e3", "yes", "~", "08", ".inf", "2026-11-22", "<<", "=", "", " "]),
    "texts that YAML ends or folds": json.dumps(
        ["\x00\x1b\x7f\x85\u2028\ufeff\uffff", " a", "a ", "a\n", "\n a", "\ta", "a: b", "a #b", "'", '"']
    ),
    "keys of all kinds": json.dumps({key: key for key in ("", "1", "~", "<<", "? ", "- ", "a: b", "\n", "x" * 2000, "é" * 200, "!!int")}),
    "characters beyond the first plane": json.dumps("😀", ensure_ascii=False),
    "nothing": "null",
}


def stored(facts: Facts, terminus: Any) -> Model:
    found: Model = terminus.load(facts.name, terminus.dump(facts))
    return found


def assert_usable(facts: Facts, tmp_path: Any) -> None:
    """What was accepted is read by a compiling process, and from the files that keep it."""
    frame = frames.pack({"facts": facts.values, "parameters": facts.values})
    assert frames.read(io.BytesIO(frame)) == {"facts": facts.values, "parameters": facts.values}
    for terminus in (Yaml(FACTS, tmp_path), Json(FACTS, tmp_path)):
        assert stored(facts, terminus).values == facts.values  # type: ignore[attr-defined]


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize(("dialect", "format"), [(MODERN, "json"), (MODERN, "pson"), (LEGACY, "pson"), (LEGACY, "yaml")])
def test_what_the_door_just_accepts_can_be_compiled_and_read_back(edge: str, dialect: Any, format: str, tmp_path: Any) -> None:
    body = f'{{"name": "n", "values": {{"x": {EDGES[edge]}}}}}'.encode()
    if format == "yaml":
        body = plainyaml.dumps(plainjson.loads(body))
    assert_usable(dialect.load(FACTS, body, dialect.formats[format]), tmp_path)


BEYOND = {
    "an integer of 401 digits": digits(401),
    "a negative one of 400": "-" + digits(400),
    "a float without end": "1e999",
    "99 levels": "[" * 99 + "]" * 99,
    "more than a million values": "[" + "1," * 1_000_000 + "1]",
}


@pytest.mark.slow
@pytest.mark.parametrize("edge", BEYOND)
@pytest.mark.parametrize("format", ["pson", "yaml"])
def test_what_is_beyond_is_refused_at_the_door_in_every_format(edge: str, format: str) -> None:
    body = f'{{"name": "n", "values": {{"x": {BEYOND[edge]}}}}}'.encode()  # flow style: YAML, too
    if format == "yaml" and edge == "a float without end":
        body = body.replace(b"1e999", b"1.0e+999")
    with pytest.raises(BadData):
        LEGACY.load(FACTS, body, LEGACY.formats[format])


def test_octets_that_are_not_utf8_survive_where_pson_has_them(tmp_path: Any) -> None:
    facts = LEGACY.load(FACTS, b'{"name":"n","values":{"x":"\xff\xc3\xa4","\xfe":["a\xfd"]}}', LEGACY.formats["pson"])
    assert_usable(facts, tmp_path)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**300), 10**300) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=10), PLAIN, max_size=4))
@settings(max_examples=examples(150), deadline=None)
def test_whatever_the_door_accepts_can_be_compiled_and_read_back(values: dict[str, Any]) -> None:
    public = {key: value for key, value in values.items() if not key.startswith("_")}  # the others are never stored
    body = json.dumps({"name": "n", "values": public}).encode()
    assert_usable(MODERN.load(FACTS, body, MODERN.formats["json"]), "/nowhere")


@pytest.mark.parametrize("data", [nested(101), [[1]] * 1_000_001, {str(i): 1 for i in range(500_001)}], ids=["deep", "wide", "keys"])
def test_bounds_hold_for_data_of_any_origin(data: Any) -> None:
    with pytest.raises(BadData, match=r"Facts (nested|of) more than"):
        check_bounds(data, "Facts")


@pytest.mark.parametrize("depth", range(1, 120))
def test_no_text_is_clearly_within_the_bounds_whose_data_are_not(depth: int) -> None:
    values = {"x": nested(depth)}
    if is_within_bounds(plainjson.dumps(values)):
        check_bounds({"name": "n", "values": values}, "Facts")
    else:
        assert depth > 30


@pytest.mark.parametrize("text", [b'{"x":"]["}', b'{"x":"[[["}', b'{"x":"}"}', b"[" + b"1," * 600_000 + b"1]"])
def test_a_text_that_might_be_beyond_is_not_clearly_within(text: bytes) -> None:
    assert not is_within_bounds(text)


def test_facts_with_brackets_in_their_texts_are_accepted() -> None:
    assert MODERN.load(FACTS, b'{"name":"n","values":{"x":"]["}}', MODERN.formats["json"]).values == {"x": "]["}

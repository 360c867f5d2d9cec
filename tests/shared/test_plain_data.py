from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.data import plainjson, plainyaml
from shared.errors import BadData

BAD_JSON = [
    b'{"name": "self", "name": "other"}', b'{"a":1,"a":1}', b'{"a":{"b":[],"b":[]}}', b'["\\ud800"]', b"[-Infinity]",
    b"[NaN]", b"[Infinity]", b"[1e999]", b"[" * 100_000, '{"a": 1}'.encode("utf-16"),
    b"\xef\xbb\xbf{}",
    b"{} {}", b'"\xff"', b"", b"[1" + b"0" * 1000 + b"]", b"{'a': 1}", b'{"a": }',
    rb'"\ud800"', rb'{"\uDFFF": 1}', rb'"\udc00\ud800"',
]  # fmt: skip

BAD_YAML = [
    "--- !ruby/object:ERB\nsrc: x", "--- !ruby/hash:X\na: 1", '!!python/object/apply:os.system ["id"]', "!!python/name:os.system x",
    "a: &a [1]\nb: *a", "a: &a\n  <<: *a", "[" * 3000 + "]" * 3000, "--- a\n--- b", "a: [", "*missing", "\x01", "a: !x y",
]  # fmt: skip


@pytest.mark.parametrize("body", BAD_JSON)
def test_json_that_is_not_strict_is_refused(body: bytes) -> None:
    with pytest.raises(BadData):
        plainjson.loads(body)


def test_pson_keeps_bytes_that_are_not_utf8() -> None:
    data = plainjson.loads_pson(b'{"a":"\xff\xc3\xa4"}')
    assert plainjson.dumps_pson(data) == b'{"a":"\xff\xc3\xa4"}'
    assert plainjson.dumps(data) == b'{"a":"?\xc3\xa4"}'


@pytest.mark.parametrize("body", [b'{"k\xff":1,"k\xfe":2}', b'[{"k\\udcff":1,"k\\udcfe":2}]', b'{"k\xff":1,"k?":2}'])
def test_PRS_15_keys_that_would_be_written_alike_are_refused(body: bytes) -> None:
    with pytest.raises(BadData, match="differ only in octets"):
        plainjson.loads_pson(body)
    assert plainjson.loads_pson(b'[{"k\xff":1},{"k\xfe":2}]') == [{"k\udcff": 1}, {"k\udcfe": 2}]


def test_integers_may_be_of_any_size() -> None:
    assert plainjson.loads(plainjson.dumps([2**70, -(2**70)])) == [2**70, -(2**70)]


NUMBERS = (
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([2**63, 2**64 - 1, 2**64, 10**20, -0.0, 1e16, 1e-7])
)
PLAIN = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(), lambda below: st.lists(below) | st.dictionaries(st.text(), below), max_leaves=20
)


@pytest.mark.slow
@given(PLAIN, st.sampled_from([(",", ":"), (", ", ": ")]), st.booleans())
def test_json_is_read_as_the_same_values_of_the_same_types_however_it_is_written(
    data: Any, separators: tuple[str, str], is_escaped: bool
) -> None:
    body = json.dumps(data, separators=separators, ensure_ascii=is_escaped).encode()
    assert repr(plainjson.loads(body)) == repr(plainjson.loads_pson(body)) == repr(data)
    assert repr(plainjson.loads(plainjson.dumps(data))) == repr(data)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("-0", 0), ("-0.0", -0.0), ("18446744073709551616", 2**64), ("1e2", 100.0), ("null", None), ("false", False)],
)
def test_a_number_is_never_taken_for_another(text: str, value: object) -> None:
    assert repr(plainjson.loads(text.encode())) == repr(value)


@pytest.mark.parametrize("text", BAD_YAML)
def test_yaml_with_foreign_tags_aliases_or_depth_is_refused(text: str) -> None:
    with pytest.raises(BadData):
        plainyaml.loads(text)


def test_a_bomb_of_aliases_is_counted_and_never_built() -> None:
    levels = ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
    levels += [f"{c}: &{c} [{','.join(['*' + chr(ord(c) - 1)] * 10)}]" for c in "bcdefghi"]
    with pytest.raises(BadData, match="nodes"):
        plainyaml.loads("\n".join(levels), aliases=True)


def test_a_few_aliases_are_read_where_they_are_allowed() -> None:
    assert plainyaml.loads("a: &x [1, 2]\nb: *x", aliases=True) == {"a": [1, 2], "b": [1, 2]}


def test_rubys_tags_become_plain_data() -> None:
    text = "--- !ruby/object:Puppet::Node::Facts\nname: a\n:sym: :b\nlevel: !ruby/sym notice\nquoted: ':b'\n"
    text += "when: 2026-11-20 21:48:31.123456789 +00:00"
    assert plainyaml.loads(text) == {
        "name": "a",
        "sym": "b",
        "level": "notice",
        "quoted": ":b",
        "when": "2026-11-20 21:48:31.123456789 +00:00",
    }


@pytest.mark.parametrize("data", [{"a": [1, "0644", ":x", "yes", None, 1.5, True, "", "a\nb\n", "ü", "- x"]}, [], {}, "text"])
def test_what_is_written_is_read_again(data: Any) -> None:
    assert plainyaml.loads(plainyaml.dumps(data)) == data


def test_symbols_and_objects_are_written_with_rubys_marks() -> None:
    body = plainyaml.dumps(plainyaml.RubyObject("Puppet::Node", {"level": plainyaml.Symbol("notice")}))
    assert body == b"--- !ruby/object:Puppet::Node\nlevel: :notice\n"

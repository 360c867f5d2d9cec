from __future__ import annotations

from typing import Any

import pytest

from shared.data import plainjson, plainyaml
from shared.errors import BadData

BAD_JSON = [
    b'{"name": "self", "name": "other"}', b"[NaN]", b"[Infinity]", b"[1e999]", b"[" * 100_000, '{"a": 1}'.encode("utf-16"),
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


def test_integers_may_be_of_any_size() -> None:
    assert plainjson.loads(plainjson.dumps([2**70, -(2**70)])) == [2**70, -(2**70)]


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

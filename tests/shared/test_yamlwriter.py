"""YAML as it is written: read back the same, in Ruby's style."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from shared.data import plainyaml
from shared.data.yamlwriter import CannotWrite, OldSymbol, RubyObject, Symbol, WrittenItems, YamlTimestamp, write

# Texts that YAML 1.1 or Ruby would take for something else when they stood without quotes.
TRICKY = [
    *("yes", "No", "y", "on", "TRUE", "null", "~", "", " ", "0644", "1:30", "1.5", "1_000", "1,000", "0x1f", "1e3", ".5"),
    *("-1", "2026-01-01"),
    *("- x", "a: b", "a #b", "a:", "#x", ":sym", "=", "<<", "!x", "&a", "*a", "?", "? x", "|", ">", "%x", "@x", "`x", "[]", "{}"),
    *("---", "..."),
    *("x ", " x", "\tx", "a\nb", "a\nb\n", "\na\n", "a\n\n", " a\nb", "a\n---\nb", "a\r\nb", "\n", "it's", 'a"b', "back\\slash", "x: y\nz"),
    *("\x7f", "\x85", "\u2028", "\ufeff", "\x1b[31m", "é ✓ 😀", "x" * 2000, "a\n" * 600, "File[/x]", "http://x/y?a=b#c"),
]  # fmt: skip


@pytest.mark.parametrize("text", TRICKY)
def test_text_stays_text_wherever_it_stands(text: str) -> None:
    data = {"value": text, text: [text, [text], {text: {"deep": [text]}}]}
    assert plainyaml.loads(write(data)) == data


def test_nested_structures_are_read_back() -> None:
    data = {"a": [[1, [2, []]], {"b": [{"c": {}}, None]}, 1e-5, 1e20, -3, True, 2**70], "n": None, "e": {}, "l": []}
    assert plainyaml.loads(write(data)) == data
    assert [plainyaml.loads(write(each)) for each in ([], {}, "text", 5, None)] == [[], {}, "text", 5, None]


def test_the_style_is_rubys() -> None:
    data = RubyObject(
        "Puppet::X",
        {
            "logs": [
                RubyObject(
                    "Puppet::Util::Log", {"level": OldSymbol("notice"), "time": YamlTimestamp("2026-11-20 21:48:31.123456789 +00:00")}
                )
            ],
            Symbol("checked"): Symbol("absent"),
            "file": None,
            "values": [["total", "Total", 3]],
            "message": "one\ntwo\n",
        },
    )
    assert write(data) == (
        "--- !ruby/object:Puppet::X\n"
        "logs:\n"
        "- !ruby/object:Puppet::Util::Log\n"
        "  level: !ruby/sym notice\n"
        "  time: 2026-11-20 21:48:31.123456789 +00:00\n"
        ":checked: :absent\n"
        "file:\n"
        "values:\n"
        "- - total\n"
        "  - Total\n"
        "  - 3\n"
        "message: |\n"
        "  one\n"
        "  two\n"
    )


@pytest.mark.parametrize(
    ("value", "text"), [(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02 03:04:05+00:00"), (float("inf"), ".inf")]
)
def test_times_and_odd_numbers_have_their_own_forms(value: Any, text: str) -> None:
    assert write([value]) == f"---\n- {text}\n"


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(CannotWrite, match="no form for a set"):
        write({"a": {1, 2}})


def test_what_is_remembered_of_earlier_documents_changes_no_later_one() -> None:
    items = WrittenItems(10_000)
    parts = [{"a": 1}, {"a": 1.0}, {"a": True}, {"a": None}, {"a": float("nan")}, [], {}, ["1"], [1], {"1": 1}, {1: 1}, "a", Symbol("a")]
    parts += [{"b": TRICKY}, {"b": [RubyObject("X", {"c": [Symbol("d")]})]}, [{"e": {"f": "g\nh\n"}}], [[OldSymbol("x")], (1, 2)]]
    for _ in range(3):
        for number, part in enumerate(parts):
            for key in ("key", "x" * 200, 5, Symbol("s"), "a\nb"):
                data: Any = {"name": "n", "values": {key: part, "number": number}, "list": [{"key": part}], "key": part}
                for document in (data, RubyObject("Puppet::Node::Facts", data), [data], {"above": data}):
                    assert write(document, items) == write(document)


def test_only_so_much_of_earlier_documents_is_remembered_and_what_is_used_stays_longest() -> None:
    items = WrittenItems(1000)
    used = ("used", b"1")
    items.keep(used, "lines")
    for number in range(1000):
        items.keep((str(number), b"1"), "x" * 50)
        assert items.find(used) == "lines"
    kept = sum(items.find((str(number), b"1")) is not None for number in range(1000))
    assert 5 < kept < 21

"""HOCON as plain data. Origin of the rules: the specification of lightbend/config, and what Ruby's hocon answers."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from shared.data import hocon
from shared.errors import BadData

READ: list[tuple[str, Any]] = [
    ("", {}),
    ("{}", {}),
    ("[1, 2]", [1, 2]),
    ('{"a": 1, "b": [true, null, 1.5, "x"]}', {"a": 1, "b": [True, None, 1.5, "x"]}),
    ("a = 1\nb : two words # comment\nc = -5 // other\n", {"a": 1, "b": "two words", "c": -5}),
    ("a { b { c = 1 } }", {"a": {"b": {"c": 1}}}),
    ("a.b.c = 1, a.b.d = 2", {"a": {"b": {"c": 1, "d": 2}}}),
    ('"a.b".c = 1', {"a.b": {"c": 1}}),
    ("a = [\n 1\n 2,\n 3,\n]", {"a": [1, 2, 3]}),
    ("a = 1\na = 2", {"a": 2}),
    ("a = {x = 1}\na = {y = 2}", {"a": {"x": 1, "y": 2}}),
    ("a = {x = 1}\na = 3\na = {y = 2}", {"a": {"y": 2}}),
    ('a = """one\n"two"""", b = 1', {"a": 'one\n"two"', "b": 1}),
    ("a = 1, b = ${a}, c = x${a}y", {"a": 1, "b": 1, "c": "x1y"}),
    ("a = ${?nope}, b = 1", {"b": 1}),
    ("a = [1], a += 2", {"a": [1, 2]}),
    ("a += 1", {"a": [1]}),
    ("a { b += 1, b += 2 }, a { b += ${?nope}, b += ${c} }, c = 3", {"a": {"b": [1, 2, 3]}, "c": 3}),
    ("b = [1], a = ${b}, a += 2, a = ${a} [3], a += 4", {"b": [1], "a": [1, 2, 3, 4]}),
    ("a = ${b}, b { x = 1 }, a { y = 2 }, a = ${a} { z = 3 }", {"a": {"z": 3, "y": 2, "x": 1}, "b": {"x": 1}}),
    ('path = /bin, path = ${path}":/usr/bin"', {"path": "/bin:/usr/bin"}),
    ("d = {x = 1}, e = ${d} {y = 2}", {"d": {"x": 1}, "e": {"x": 1, "y": 2}}),
    ("a = [1] [2, 3]", {"a": [1, 2, 3]}),
    ("a = 10 s, b = 010, c = 1e3", {"a": "10 s", "b": 8, "c": 1000}),
    (
        "a = 10s, b = true story, c = 1 2, d = 1.0, e = -0.5, f = 09",
        {"a": "10s", "b": "true story", "c": "1 2", "d": 1, "e": -0.5, "f": "09"},
    ),
    ("a = 1, b : two words here  # why\n// all of it\nc { d = true }", {"a": 1, "b": "two words here", "c": {"d": True}}),
    ("a.b.c = [1, 2.5\n null, -3]", {"a": {"b": {"c": [1, 2.5, None, -3]}}}),
    ('"a.b" = "q\\n\\u00e9"', {"a.b": "q\né"}),
    ("a { x = 1 }\na { y = 2 }\na.z = 3", {"a": {"x": 1, "y": 2, "z": 3}}),
    ("base = /srv\nweb = ${base}/www ${?nothing}\ncopy = ${base}", {"base": "/srv", "web": "/srv/www ", "copy": "/srv"}),
    ('url = "http://x"/path\n', {"url": "http://x/path"}),
    ('"include" = 3', {"include": 3}),
    ('url = "http://example.com/x?y=1"', {"url": "http://example.com/x?y=1"}),
]

REFUSED: list[tuple[str, str]] = [
    ("a = [", "line 1: it ends too early"),
    ("a = 1\nb", "line 2: expected ':', '=' or '{' behind the key b"),
    ("a = 1 }", "expected"),
    ("url = http://example.com", "found ':', which a value may hold in quotes only"),
    ("a = b:c", "found ':'"),
    ("a = 1e400", "a number that is too large"),
    ("a { b = 1", "it ends too early"),
    ("a = \\", "expected a value"),
    ("= 1", "line 1: expected a key"),
    ("a = ${nope}", "there is no nope for the reference to it"),
    ("a = ${b}, b = ${a}", "leads back to itself"),
    ("a = ${a}", "there is no a"),
    ('a = "x', "a string is not closed"),
    ('include "other.conf"', "include is not supported"),
    ("a = {x = 1} text", "different kinds"),
    ("a = x, a += 1", "different kinds for a"),
    ("a = null, a += 1", "different kinds for a"),
    ("a..b = 1", "a part of the key is empty"),
    ("[" * 500, "nested more than 100 levels"),
]


@pytest.mark.parametrize(("text", "value"), READ)
def test_what_hocon_says_is_read(text: str, value: Any) -> None:
    assert hocon.loads(text) == value


@pytest.mark.parametrize(("text", "told"), REFUSED)
def test_what_is_wrong_with_hocon_is_told(text: str, told: str) -> None:
    with pytest.raises(BadData) as caught:
        hocon.loads(text)
    assert told in caught.value.message


def test_references_that_multiply_are_stopped() -> None:
    lines = ["a0 = [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level} = [" + ", ".join([f"${{a{level - 1}}}"] * 10) + "]" for level in range(1, 9)]
    with pytest.raises(BadData, match="more than 200000 values"):
        hocon.loads("\n".join(lines))


DOUBLED = "\n".join(["a0 = " + "x" * 100_000, *(f"a{level} = ${{a{level - 1}}}${{a{level - 1}}}" for level in range(1, 15))])
COSTLY = {
    "a text that doubles": (DOUBLED, "more than 16777216 characters"),
    "a text in many places": ("a = " + "x" * 100_000 + "\nb = [" + "${a}," * 1000 + "]", "more than 16777216 characters"),
    "keys one by one": ("".join(f"a.k{number} = 1\n" for number in range(4_000)), "of more than 4000000 items"),
    "lists one by one": ("a = []\n" + "".join(f"a = ${{a}} [{number}]\n" for number in range(4_000)), "of more than 4000000 items"),
    "objects one by one": (
        "a = {}\n" + "".join(f"a = ${{a}} {{k{number} = 1}}\n" for number in range(4_000)),
        "of more than 4000000 items",
    ),
}


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", COSTLY)
def test_PRS_14_hocon_costs_what_its_size_says(kind: str) -> None:
    text, limit = COSTLY[kind]
    tracemalloc.start()
    try:
        with pytest.raises(BadData, match=limit):
            hocon.loads(text)
        assert tracemalloc.get_traced_memory()[1] < 20 * len(text) + 64 * 2**20
    finally:
        tracemalloc.stop()


def test_what_is_appended_thousands_of_times_is_no_nesting() -> None:
    assert hocon.loads("".join(f"a += {number}\n" for number in range(5000))) == {"a": list(range(5000))}


def test_octets_are_read_as_utf_8() -> None:
    assert hocon.loads("a = é".encode()) == {"a": "é"}
    with pytest.raises(BadData, match="an octet is not UTF-8 at line 1 column 5"):
        hocon.loads("a = é".encode("latin-1"))

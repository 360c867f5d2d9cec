"""Types that a catalog has as data, in notation: what an agent reads of a recorded catalog is the type that the master wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from language.catalog.pcore import encode_type
from language.catalog.richdata import encode
from language.loading.builtins import all_functions
from language.types.notation.parse import parse_type
from shared.data.typenotation import type_notation
from shared.errors import BadData, EvaluationError, PuppetError, Unsupported

RECORDED = Path(__file__).parents[1] / "conformance" / "language" / "types_in_catalogs.expected.json"


def recorded_types() -> Iterator[dict[str, Any]]:
    """Yield the types in the recorded catalogs, each once; of named ones that the catalog declares only what their names stand for."""
    seen = set()
    for catalog in json.loads(RECORDED.read_text()).values():
        for resource in catalog.get("resources", ()):
            data = (resource.get("parameters") or {}).get("message")
            text = json.dumps(data)
            if text.startswith('{"__ptype": "Pcore::') and text not in seen and "TypeAlias" not in text and "_pcore_init_hash" not in text:
                seen.add(text)
                yield data


def test_the_notation_of_recorded_types_is_read_as_the_same_type() -> None:
    all_functions()  # some types are made by functions
    unread = {}
    for data in recorded_types():
        try:
            notation = type_notation(data)
            again = encode_type(parse_type(notation), lambda part: encode(part, str, "x"))
        except PuppetError as error:
            unread[json.dumps(data)] = error.message
            continue
        # A catalog says neither that a Struct's member was NotUndef nor that the group was around a pattern when it was written.
        if "NotUndef['" not in notation and "(?-imx:" not in notation:
            assert again == data, notation
    assert all('"Pcore::ResourceType", "type_name"' in text or '"Pcore::URIType", "parameters"' in text for text in unread), unread


NOTATIONS: list[tuple[dict[str, Any], str]] = [
    ({"__ptype": "Pcore::ResourceType", "type_name": "a::b", "title": "it's"}, r"A::B['it\'s']"),
    ({"__ptype": "Pcore::TypeAliasType", "name": "T", "resolved_type": {"__ptype": "Pcore::IntegerType", "to": 2}}, "T"),
    ({"__ptype": "Pcore::ObjectType", "_pcore_init_hash": {"name": "M::T", "attributes": {}}}, "M::T"),
    ({"__ptype": "Pcore::PatternType", "patterns": [{"__ptype": "Pcore::RegexpType", "pattern": r"^/x\/\\/"}]}, r"Pattern[/^\/x\/\\\//]"),
]


@pytest.mark.parametrize(("data", "notation"), NOTATIONS, ids=[notation for _, notation in NOTATIONS])
def test_a_type_has_a_notation(data: dict[str, Any], notation: str) -> None:
    assert type_notation(data) == notation


def test_an_alias_can_be_written_as_what_it_stands_for() -> None:
    assert type_notation(NOTATIONS[1][0], aliases=False) == "Integer[default, 2]"


DEEP: dict[str, Any] = {"__ptype": "Pcore::IntegerType"}
for _ in range(200):
    DEEP = {"__ptype": "Pcore::OptionalType", "type": DEEP}


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ({"__ptype": "Pcore::Nonsense"}, Unsupported),
        ({"__ptype": "Pcore::A'bType"}, Unsupported),
        ({"__ptype": "Pcore::URIType", "parameters": {}}, Unsupported),
        ({"__ptype": "Pcore::ArrayType", "element_type": 1}, BadData),
        ({"__ptype": "Pcore::EnumType", "values": [1]}, BadData),
        ({"__ptype": "Pcore::ResourceType", "type_name": "a", "title": []}, BadData),
        (DEEP, BadData),
    ],
    ids=["no type", "a name with signs", "parameters", "no type inside", "no text", "no title", "too deep"],
)
def test_what_is_no_type_is_an_error(data: dict[str, Any], error: type[PuppetError]) -> None:
    with pytest.raises(error):
        type_notation(data)


def test_a_text_in_a_type_stays_a_text() -> None:
    notation = type_notation({"__ptype": "Pcore::EnumType", "values": ["a'] << \\", "b"]})
    assert encode_type(parse_type(notation), str)["values"] == ["a'] << \\", "b"]
    with pytest.raises(EvaluationError):
        parse_type(type_notation({"__ptype": "Pcore::NowhereType"}) + "[")


@pytest.mark.parametrize(
    ("text", "notation"),
    [("Integer[-0x1, 0x1F]", "Integer[-1, 31]"), ("Array[ # of what\n  String[1] ] # and no more", "Array[String[1]]")],
)
def test_a_type_as_text_may_have_hexadecimal_numbers_and_comments(text: str, notation: str) -> None:
    assert str(parse_type(text)) == notation


@pytest.mark.parametrize("text", ["", " ", "# nothing"])
def test_a_text_without_a_type_is_none(text: str) -> None:
    with pytest.raises(EvaluationError, match=f"The expression <{text}> is not a valid type specification"):
        parse_type(text)


INVALID = "The expression <{}> is not a valid type specification."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("String[1, 2, 3]", "Invalid number of type parameters specified: String requires 1 to 2, 3 provided"),
        ("Optional[Hash[String]]", "Invalid number of type parameters specified: Hash requires 2 to 4, 1 provided"),
        ("Array[Numeric[1]]", "Not a parameterized type <Numeric>"),
        ("Optional[String['a']]", INVALID.format("String['a']")),
        ("Array[Sensitive[1], 2]", INVALID.format("Sensitive[1]")),
    ],
)
def test_what_is_wrong_in_a_type_as_text_is_said_in_the_words_of_puppets_parser_of_types(text: str, message: str) -> None:
    with pytest.raises(EvaluationError, match=re.escape(message)):
        parse_type(text)


def test_a_type_that_does_not_exist_has_its_text_as_it_was_written() -> None:
    assert str(parse_type("Optional[My::Type['/x', 1]]")) == r"Optional[TypeReference['My::Type[\'/x\', 1]']]"

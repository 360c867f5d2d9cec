"""PQL: what PuppetDB's parser made of texts, what is refused, and where the caret stands."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from store.queries.pql.errors import PqlError
from store.queries.pql.parser import parse
from tests.support.examples import examples
from tests.support.pql_texts import queries, text_of
from tests.support.steps import steps_in

RECORDED = Path(__file__).parents[2] / "conformance/puppetdb"
SYNTAX: list[dict[str, Any]] = json.loads((RECORDED / "pql-syntax.json").read_text("utf-8"))
PLACE = re.compile(r"PQL parse error at line \d+, column \d+:")


def error_of(text: str) -> PqlError:
    with pytest.raises(PqlError) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize("case", [case for case in SYNTAX if "ast" in case], ids=lambda case: case["query"])
def test_a_text_becomes_the_tree_that_puppetdb_makes_of_it(case: dict[str, Any]) -> None:
    assert parse(case["query"]) == case["ast"]


@pytest.mark.parametrize("case", [case for case in SYNTAX if "column" in case], ids=lambda case: case["query"])
def test_an_error_is_at_the_place_that_puppetdb_names(case: dict[str, Any]) -> None:
    error = error_of(case["query"])
    assert (error.line, error.column) == (case["line"], case["column"])


def recorded_answers(*groups: str) -> list[tuple[str, int, Any]]:
    """Return the PQL query, the status and the body of recorded exchanges."""
    exchanges = [exchange for group in groups for exchange in json.loads((RECORDED / f"{group}.json").read_text("utf-8"))]
    return [
        (exchange["request"]["params"]["query"], exchange["answer"]["status"], exchange["answer"]["body"])
        for exchange in exchanges
        if exchange["request"]["path"] == "/pdb/query/v4" and "{" in exchange["request"].get("params", {}).get("query", "")
    ]


@pytest.mark.parametrize("query, status, body", recorded_answers("pql", "errors"))
def test_a_query_parses_exactly_if_puppetdb_parsed_it(query: str, status: int, body: Any) -> None:
    place = PLACE.match(body) if status == 400 else None
    if place is None:
        assert parse(query)[0] == "from"
    else:
        assert str(error_of(query)).startswith(place[0])


@pytest.mark.parametrize("query, status, body", [answer for answer in recorded_answers("pql-ast") if answer[1] == 200])
def test_a_tree_is_the_one_that_ast_only_shows(query: str, status: int, body: Any) -> None:
    assert parse(query) == body


@pytest.mark.slow
@given(queries)
@settings(max_examples=examples(150), deadline=None)
def test_a_query_that_was_printed_is_read_back(query: list[Any]) -> None:
    parsed = parse(text_of(query))
    assert parsed == query and json.dumps(parsed) == json.dumps(query)


MESSAGES = {
    "nodes{ a =\n b }": (
        "PQL parse error at line 2, column 2:\n\n b }\n ^\n\nExpected one of:\n\n[\na number\na string in quotes\ntrue, false\n"
    ),
    "nodes[certname,]{}": (
        "PQL parse error at line 1, column 16:\n\nnodes[certname,]{}\n               ^\n\nExpected one of:\n\n"
        "a field\ncount, avg, sum, min, max, to_string\n"
    ),
    "producers{}": (
        "PQL parse error at line 1, column 1:\n\nproducers{}\n^\n\nExpected:\nan entity (catalogs, edges, environments, events, "
        "fact_contents, fact_paths, facts, factsets, inventory, nodes, package_inventory, packages, reports, resources)\n"
    ),
    "nodes{ ,": (
        "PQL parse error at line 1, column 8:\n\nnodes{ ,\n       ^\n\nExpected one of:\n\n"
        "!\n(\n[\na field\nan entity\ngroup by\nlimit\noffset\norder by\n}\n"
    ),
    "nodes{} x": "PQL parse error at line 1, column 8:\n\nnodes{} x\n       ^\n\nExpected:\nthe end of the query\n",
    'nodes{ a = "\\q" }': (
        'PQL parse error at line 1, column 13:\n\nnodes{ a = "\\q" }\n            ^\n\n'
        "There is no such escape in a string: a backslash itself is written \\\\\n"
    ),
}


@pytest.mark.parametrize("query", MESSAGES)
def test_a_message_shows_the_place_and_what_could_stand_there(query: str) -> None:
    assert str(error_of(query)) == MESSAGES[query]


def test_of_a_long_line_a_message_shows_only_what_is_around_the_place() -> None:
    query = "nodes{ " + "a = 'x' and " * 500 + "; }"
    error = error_of(query)
    shown, caret = str(error).splitlines()[2:4]
    assert len(shown) <= 160 and shown[caret.index("^")] == ";"
    assert error.column == query.index(";") + 1


HOSTILE = {
    "brackets": "nodes{" + "(" * 5000,
    "lists": "nodes{ a = " + "[" * 5000,
    "negations": "nodes{" + "!" * 5000 + "a = 1 }",
    "subqueries": "nodes{" * 5000,
    "membership": "nodes{ a in " * 2000,
    "digits": "nodes{ a = " + "9" * 5000 + " }",
    "a number without end": "nodes{ a = 1.0e" + "9" * 400 + " }",
    "half a character": 'nodes{ a = "\\udc80" }',
    "an open string": "nodes{ a = '" + "\\'" * 20000,
    "an open name": "nodes{ facts" + '."x' * 20000,
    "blanks": "nodes{" + " " * 100000,
    "length": "nodes{ a = '" + "x" * 2**20 + "' }",
}


@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_is_refused_soon(query: str) -> None:
    parse("nodes{}")  # which reads the grammar
    assert steps_in(lambda: error_of(query)) < 200_000


def test_the_depth_that_is_allowed_is_a_limit() -> None:
    def nested(brackets: int) -> str:
        return f"nodes{{ {'(' * brackets}a = 1{')' * brackets} }}"

    assert parse(nested(99)) == ["from", "nodes", ["=", "a", 1]]
    assert "nested more than 100 levels" in str(error_of(nested(100)))


def test_a_long_list_of_names_is_a_query() -> None:
    names = [f"web{number}.example.com" for number in range(3000)]
    assert parse(f"nodes{{ certname in [{', '.join(map(json.dumps, names))}] }}") == ["from", "nodes", ["in", "certname", ["array", names]]]


def test_a_typical_query_takes_few_steps() -> None:
    query = (
        'nodes[certname]{ certname ~ "web" and (latest_report_status != "failed" or facts { name = "role" }) order by certname limit 5 }'
    )
    parse(query)
    assert steps_in(lambda: parse(query)) < 10_000


def test_the_package_of_the_language_does_not_load_the_parser() -> None:
    script = "import sys, store.queries.pql.errors; sys.exit('lark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[3]).returncode == 0

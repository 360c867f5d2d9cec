"""What the paths of queries ask for."""

from __future__ import annotations

import pytest

from store.endpoints.queries.paths import restrict, target_of
from store.jsontext import Json

ANY: Json = ["=", "node_state", "any"]
TARGETS = [
    ("", None, [], ""),
    ("nodes", "nodes", [], ""),
    ("fact-contents", "fact_contents", [], ""),
    ("nodes/n", "nodes", [["=", "certname", "n"], ANY], "node n is the answer"),
    ("nodes/n/facts", "facts", [["=", "certname", "n"]], "node n"),
    ("nodes/n/facts/os/x", "facts", [["=", "certname", "n"], ["=", "name", "os"], ["=", "value", "x"]], "node n"),
    ("nodes/n/resources/File", "resources", [["=", "certname", "n"], ["=", "type", "File"]], "node n"),
    ("facts/kernel/Linux", "facts", [["=", "name", "kernel"], ["=", "value", "Linux"]], ""),
    ("resources/File/b", "resources", [["=", "type", "File"], ["=", "title", "b"]], ""),
    ("factsets/n", "factsets", [["=", "certname", "n"], ANY], "factset n is the answer"),
    ("factsets/n/facts", "factsets", [["=", "certname", "n"], ANY], "factset n"),
    ("catalogs/n/edges", "edges", [["=", "certname", "n"]], "catalog n"),
    ("environments/e", "environments", [["=", "name", "e"]], "environment e is the answer"),
    ("environments/e/facts/kernel", "facts", [["=", "environment", "e"], ["=", "name", "kernel"]], "environment e"),
    ("environments/e/events", "events", [["=", "environment", "e"]], "environment e"),
    ("producers/p/reports", "reports", [["=", "producer", "p"]], "producer p"),
    ("reports/h/events", "events", [["=", "report", "h"]], "report h"),
    ("reports/h/logs", "reports", [["=", "hash", "h"], ["=", "type", "any"]], "report h, its logs"),
    ("package-inventory/n", "package_inventory", [["=", "certname", "n"], ANY], ""),
]


@pytest.mark.parametrize(("path", "entity", "conditions", "subject"), TARGETS, ids=[case[0] or "root" for case in TARGETS])
def test_a_path_asks_for_an_entity_restricted_by_what_it_names(path: str, entity: str | None, conditions: list[Json], subject: str) -> None:
    target = target_of(path.split("/") if path else [])
    assert target is not None
    words = f"{target.subject.kind} {target.subject.name}" if target.subject else ""
    words += " is the answer" if target.is_single else f", its {target.column}" if target.column else ""
    assert (target.entity, list(target.conditions), words) == (entity, conditions, subject)


NO_PATHS = "nope|nodes/n/nope|environments/e/nodes|facts/a/b/c|reports/h|nodes/|catalogs/n/facts|factsets/n/facts/x|edges/x"


@pytest.mark.parametrize("path", NO_PATHS.split("|"))
def test_other_paths_are_not_known(path: str) -> None:
    target = target_of(path.split("/"))
    assert target is None or path == "nodes/"


A: Json = ["=", "a", 1]
B: Json = ["=", "b", 2]
GROUP: Json = ["group_by", "a"]
RESTRICTIONS = [
    (None, A),
    (B, ["and", A, B]),
    (["extract", ["a"]], ["extract", ["a"], A]),
    (["extract", ["a"], B], ["extract", ["a"], ["and", A, B]]),
    (["extract", ["a"], GROUP], ["extract", ["a"], A, GROUP]),
    (["extract", ["a"], B, GROUP], ["extract", ["a"], ["and", A, B], GROUP]),
    ("nonsense", ["and", A, "nonsense"]),
    ([], ["and", A, []]),
]


@pytest.mark.parametrize(("query", "restricted"), RESTRICTIONS, ids=lambda value: str(value))
def test_the_path_restricts_the_condition_of_a_query_and_not_its_columns(query: Json, restricted: Json) -> None:
    assert isinstance(A, list)
    assert restrict(query, [A]) == restricted
    assert restrict(query, []) == query

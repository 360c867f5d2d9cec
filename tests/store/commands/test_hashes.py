"""The hashes are those that PuppetDB answers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from store.commands.commands import ReplaceCatalog, ReplaceFacts, StoreReport
from store.commands.hashes import catalog_hash, factset_hash, report_hash, resource_hash
from store.commands.payloads import parse_payload

RECORDED = Path(__file__).parents[2] / "conformance" / "puppetdb"


def rows(name: str) -> list[dict]:
    """All objects in the recorded answers of a file."""
    found = []
    pending = [case["answer"]["body"] for case in json.loads((RECORDED / f"{name}.json").read_text("utf-8"))]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            found.append(value)
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return found


def test_the_hashes_of_reports_are_the_recorded_ones(reports) -> None:
    recorded = {row["hash"] for row in rows("reports") if "puppet_version" in row and "hash" in row}
    assert len(recorded) == 11
    assert recorded <= {report_hash(report) for report in reports}


def test_the_hashes_of_factsets_are_the_recorded_ones(commands) -> None:
    recorded = {row["hash"] for row in rows("factsets") if "facts" in row and "hash" in row}
    facts = [command for command in commands if isinstance(command, ReplaceFacts)]
    assert len(recorded) == 3
    assert recorded <= {factset_hash(fact.certname, fact.environment, fact.values, fact.packages) for fact in facts}


def test_the_hashes_of_resources_are_the_recorded_ones() -> None:
    resources = [row for row in rows("resources") if row.keys() >= {"resource", "type", "title", "parameters"}]
    assert len(resources) > 100
    for row in resources:
        assert resource_hash(row["type"], row["title"], row["parameters"]) == row["resource"], row["title"]


def test_the_hash_of_a_catalog_says_what_is_in_it_in_any_order(commands) -> None:
    first, second = (command for command in commands if isinstance(command, ReplaceCatalog) and command.certname == "web1.example.com")
    assert first.version != second.version
    assert catalog_hash(first) == catalog_hash(second)
    assert catalog_hash(first) == catalog_hash(replace(first, resources=first.resources[::-1], edges=first.edges[::-1]))
    resource = first.resources[-1]
    for change in ({"exported": True}, {"line": 1}, {"file": None}, {"tags": ()}, {"parameters": {"a": 1}}):
        assert catalog_hash(first) != catalog_hash(replace(first, resources=[*first.resources[:-1], resource._replace(**change)])), change
    assert catalog_hash(first) != catalog_hash(replace(first, edges=first.edges[1:]))


def test_hashes_take_integers_of_any_size() -> None:
    assert resource_hash("A", "b", {"n": 2**70}) != resource_hash("A", "b", {"n": 2**70 + 1})
    value = parse_payload(
        "replace facts", 4, b'{"certname":"a","environment":null,"producer_timestamp":"2025-01-01","values":{"n":%d}}' % 2**70, 0
    )
    assert isinstance(value, ReplaceFacts)
    assert value.values == {"n": 2**70}


def test_a_report_that_says_more_is_the_same_report(reports) -> None:
    report: StoreReport = reports[0]
    assert report_hash(replace(report, status="failed", logs=[])) == report_hash(report)

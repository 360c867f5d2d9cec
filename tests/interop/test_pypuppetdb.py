"""pypuppetdb 3.2, unmodified, on our store: all that it asks, and the commands that it submits."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.interop.clients import DATASET, STORES, StoreAddress, answers_of, store_on_port, why_no_clients

STORED = 30.0  # seconds until what was submitted is stored

pytestmark = [
    pytest.mark.works_with("The built-in store", "pypuppetdb 3.2"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_no_clients()), reason=why_no_clients()),
]

Step = tuple[str, list[Any], dict[str, Any]]


@dataclass(frozen=True)
class Call:
    """Methods, each called on what the one before returned; how many elements come back; and a part of one of them, or of the whole."""

    steps: tuple[Step, ...]
    count: int | None
    part: Any


def call(method: str, *arguments: Any, count: int | None = None, part: Any = None, **named: Any) -> Call:
    """One method of a connection."""
    return Call(((method, list(arguments), named),), count, part)


def on(first: Call, then: Call) -> Call:
    """A method of what another one returned."""
    return Call((*first.steps, *then.steps), then.count, then.part)


WEB1 = "web1.example.com"
OF_WEB1 = f'["=", "certname", "{WEB1}"]'
LATEST = '["=", "latest_report?", true]'
YEARS = 24 * 365 * 50  # in hours
NODE, CATALOG = call("node", WEB1), call("catalog", WEB1)
NGINX = {"node": WEB1, "name": "nginx", "type_": "Package", "parameters": {"ensure": "installed", "name": "nginx"}, "sourceline": 5}
CALLS = {
    "version": call("current_version", part="7.12.1"),
    "status": call("status", part={"state": "running", "service_name": "puppetdb-status"}),
    "nodes": call(
        "nodes", count=12, part={"name": WEB1, "facts_environment": "production", "report_timestamp": "2025-11-11 10:00:40+00:00"}
    ),
    "nodes with their status": call("nodes", with_status=True, unreported=YEARS, count=12, part={"name": WEB1, "status": "failed"}),
    "nodes without counts": call(
        "nodes",
        with_status=True,
        with_event_numbers=False,
        unreported=YEARS,
        count=12,
        part={"name": "db1.example.com", "status": "changed"},
    ),
    "a page of failed nodes": call(
        "nodes",
        query='["=", "latest_report_status", "failed"]',
        order_by='[{"field": "certname"}]',
        limit=1,
        offset=1,
        include_total=True,
        count=1,
        part={"name": WEB1},
    ),
    "a node": call("node", WEB1, part={"name": WEB1, "cached_catalog_status": "on_failure", "expired": False}),
    "a node that is unknown": call("node", "none.example.com", part="HTTPError: 404"),
    "a node's facts": on(NODE, call("facts", count=31, part={"name": "big", "value": 9007199254740993})),
    "a node's fact": on(NODE, call("fact", "kernel", part={"node": WEB1, "value": "Linux"})),
    "a node's resources": on(NODE, call("resources", "Class", count=3, part={"name": "Nginx", "tags": ["class", "nginx"]})),
    "a node's resource": on(NODE, call("resource", "Package", "nginx", part=NGINX)),
    "a node's reports": on(NODE, call("reports", count=3, part={"status": "changed", "run_time": "0:00:50"})),
    "edges": call(
        "edges", query=OF_WEB1, count=14, part={"source": "Class[Nginx]", "target": "Package[nginx]", "relationship": "contains"}
    ),
    "environments": call("environments", count=3, part={"name": "staging"}),
    "facts": call("facts", "kernel", count=9, part={"node": "win1.example.com", "value": "windows", "environment": "dev"}),
    "facts with a value": call("facts", "kernel", "FreeBSD", count=1, part={"node": "factsonly.example.com"}),
    "names of facts": call("fact_names", count=32),
    "sets of facts": call("factsets", query=OF_WEB1, count=1, part={"certname": WEB1, "producer": "master1.example.com"}),
    "contents of facts": call(
        "fact_contents", query='["=", "path", ["os", "family"]]', count=9, part={"certname": WEB1, "value": "Debian"}
    ),
    "paths of facts": call(
        "fact_paths", query='["~>", "path", ["os", "fam.*"]]', count=1, part={"path": ["os", "family"], "type": "string"}
    ),
    "resources of a type": call("resources", "package", count=5, part=NGINX),
    "resources with a title": call("resources", "package", "nginx", count=3, part=NGINX),
    "exported resources": call(
        "resources", query='["=", "exported", true]', count=7, part={"node": WEB1, "type_": "Sshkey", "exported": True}
    ),
    "catalogs": call("catalogs", count=7, part={"node": "catonly.example.com", "environment": "dev"}),
    "a catalog": call("catalog", WEB1, part={"version": "1762848000", "code_id": "abc124"}),
    "a catalog's resource": on(CATALOG, call("get_resource", "Service", "nginx", part={"name": "nginx", "sourceline": 20})),
    "a catalog's edges": on(CATALOG, call("get_edges", count=14)),
    "events": call("events", query=f'["and", {OF_WEB1}, {LATEST}]', count=2, part={"status": "failure", "failed": True}),
    "counts of events": call(
        "event_counts", "certname", query=LATEST, count=5, part={"failures": 1, "skips": 1, "subject": {"title": WEB1}}
    ),
    "sums of events": call(
        "aggregate_event_counts", "certname", query=LATEST, count_by="certname", count=1, part={"failures": 1, "total": 5}
    ),
    "reports": call("reports", query=OF_WEB1, count=3, part={"status": "failed", "agent_version": "7.23.0", "format_": 12}),
    "inventory": call("inventory", query='["=", "facts.os.family", "RedHat"]', count=1, part={"node": "db1.example.com"}),
    "columns in PQL": call("pql", 'nodes[certname] { certname ~ "^web" }', count=2, part={"certname": WEB1}),
    "nodes in PQL": call("pql", f'nodes {{ certname = "{WEB1}" }}', count=1, part={"name": WEB1}),
    "reports in PQL": call("pql", 'reports { latest_report? = true and status = "failed" }', count=2, part={"node": "repfail.example.com"}),
    "facts in PQL": call("pql", 'facts { name = "kernel" and value = "windows" }', count=1, part={"node": "win1.example.com"}),
    "packages in PQL": call("pql", f'package_inventory[package_name] {{ certname = "{WEB1}" }}', count=4, part={"package_name": "rake"}),
    "a query in PQL that is wrong": call("pql", "nodes[certname,] {}", part="HTTPError: 400"),
    "metrics": call("metric", part="puppetlabs.puppetdb.population"),
    "a metric": call("metric", "puppetlabs.puppetdb.population:name=num-nodes", part={"Value": 12}),
    "a metric that is unknown": call("metric", "puppetlabs.puppetdb.population:name=none", part="DoesNotComputeError"),
}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a store that holds the recorded data set."""
    with store_on_port(tmp_path_factory.mktemp("pypuppetdb") / "store") as port:
        yield port


@pytest.fixture(scope="module")
def answers(port: int) -> dict[str, Any]:
    """What the calls return."""
    answers: dict[str, Any] = returned(port, {name: each.steps for name, each in CALLS.items()})
    return answers


def returned(port: int, calls: dict[str, Sequence[Step]]) -> Any:
    return answers_from(StoreAddress(port), calls)


def answers_from(store: StoreAddress, calls: dict[str, Sequence[Step]]) -> Any:
    connection: dict[str, Any] = {"host": "127.0.0.1", "port": store.port}
    if files := store.credentials:
        connection |= {"host": "localhost", "ssl_verify": str(files.ca), "ssl_cert": str(files.certificate), "ssl_key": str(files.key)}
    return answers_of("pypuppetdb_calls.py", {"connection": connection, "calls": calls})


@pytest.mark.parametrize("name", CALLS)
def test_a_call_returns_what_is_stored(answers: dict[str, Any], name: str) -> None:
    check_answer(CALLS[name], answers[name])


@pytest.mark.parametrize("kind", STORES)
def test_the_same_comes_back_over_tls_and_from_postgresql(tmp_path: Path, kind: str) -> None:
    names = ("facts", "resources of a type", "reports", "counts of events", "nodes in PQL", "a query in PQL that is wrong")
    with STORES[kind](tmp_path / "store") as store:
        answers = answers_from(store, {name: CALLS[name].steps for name in names})
    for name in names:
        check_answer(CALLS[name], answers[name])


def check_answer(expected: Call, found: Any) -> None:
    assert expected.count is None or len(found) == expected.count, found
    if isinstance(expected.part, dict):
        elements = found if isinstance(found, list) else [found]
        assert any(each.items() >= expected.part.items() for each in elements), found
    elif expected.part is not None:
        assert expected.part in found


def test_commands_are_stored(port: int, answers: dict[str, Any]) -> None:
    assert answers  # of what was there before
    certname, versions = "new1.example.com", {"replace facts": 5, "replace catalog": 9, "store report": 8}
    commands = {
        name: next(case["payload"] for case in DATASET if (case["command"], case["version"], case["certname"]) == (name, version, WEB1))
        for name, version in versions.items()
    }
    submitted = returned(port, {name: call("command", name, payload | {"certname": certname}).steps for name, payload in commands.items()})
    assert all(set(answer) == {"uuid"} for answer in submitted.values()), submitted
    status = "pql", [f'nodes[latest_report_status, catalog_environment, facts_environment] {{ certname = "{certname}" }}'], {}
    stored = {"latest_report_status": "changed", "catalog_environment": "production", "facts_environment": "production"}
    wait_for(port, status, [stored])
    returned(port, {"": call("command", "deactivate node", {"certname": certname, "producer_timestamp": "2030-01-01T00:00:00Z"}).steps})
    wait_for(port, status, [])


def wait_for(port: int, step: Step, expected: Any) -> None:
    """Call until that comes back: a command is acknowledged before it is stored."""
    deadline = time.monotonic() + STORED
    while (found := returned(port, {"": [step]})[""]) != expected:
        assert time.monotonic() < deadline, found

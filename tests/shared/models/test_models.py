"""Node, facts and catalog on the wire, in the dialects of 3.x and of 4 to 8. Source: protocol reference 2.5, 3.1, 3.2, 3.4."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.data import plainyaml
from shared.data.richdata import as_plain_json, is_rich, of_bytes
from shared.errors import BadData, NotAcceptable
from shared.models.catalog import CATALOG, Catalog
from shared.models.facts import FACTS, Facts
from shared.models.node import NODE, Node
from shared.wire.dialects import LEGACY, MODERN, Dialect
from shared.wire.formats import B64_ZLIB_YAML, JSON, PSON, RICH_JSON, YAML, Format

NODE_DATA = {"name": "web1", "environment": "test", "parameters": {"a": 1}, "classes": {"web": {"port": 80}, "ntp": None}}
CATALOG_DATA: dict[str, Any] = {
    "tags": ["settings", "web"],
    "name": "web1",
    "version": 1_700_000_000,
    "code_id": None,
    "catalog_uuid": "827a74c8-cf98-44da-9ff7-18c5e4bee41e",
    "catalog_format": 2,
    "environment": "production",
    "resources": [
        {"type": "Stage", "title": "main", "tags": ["stage"], "exported": False, "kind": "compilable_type", "parameters": {"name": "main"}},
        {"type": "Class", "title": "main", "tags": ["class"], "exported": False, "kind": "class"},
        {
            "type": "File",
            "title": "/x",
            "tags": ["file"],
            "file": "/site.pp",
            "line": 3,
            "exported": False,
            "kind": "compilable_type",
            "parameters": {"content": "secret", "mode": "0644"},
            "sensitive_parameters": ["content"],
        },
    ],
    "edges": [{"source": "Stage[main]", "target": "Class[main]"}, {"source": "Class[main]", "target": "File[/x]"}],
    "classes": ["settings", "web"],
}


def sent(dialect: Dialect, indirection: Any, instance: Any, format: Format) -> Any:
    """What a peer reads."""
    return json.loads(dialect.dump(indirection, instance, format))


def catalog(**changes: Any) -> Catalog:
    return Catalog.from_data(CATALOG_DATA | changes)


def with_content(value: Any) -> Catalog:
    """A catalog of one resource, whose content is that."""
    resource = {"type": "File", "title": "/x", "tags": [], "exported": False, "parameters": {"content": value}}
    return catalog(resources=[resource], edges=[])


# --- node


def test_a_node_for_3x_is_wrapped_without_metadata() -> None:
    assert sent(LEGACY, NODE, Node.from_data(NODE_DATA), PSON) == {"document_type": "Node", "data": NODE_DATA}


@pytest.mark.parametrize("format", [JSON, PSON], ids=lambda each: each.name)
def test_a_node_for_later_agents_is_bare(format: Format) -> None:
    assert sent(MODERN, NODE, Node.from_data(NODE_DATA), format) == NODE_DATA


@pytest.mark.parametrize("dialect", [LEGACY, MODERN], ids=repr)
def test_a_node_always_has_parameters_and_classes_only_when_there_are_some(dialect: Dialect) -> None:
    data = sent(dialect, NODE, Node(name="web1"), PSON)
    assert data.get("data", data) == {"name": "web1", "environment": None, "parameters": {}}


def test_a_node_is_not_wrapped_in_yaml() -> None:
    assert plainyaml.loads(LEGACY.dump(NODE, Node.from_data(NODE_DATA), YAML)) == NODE_DATA


@pytest.mark.parametrize("dialect", [LEGACY, MODERN], ids=repr)
@pytest.mark.parametrize("wrapped", [False, True], ids=["bare", "wrapped"])
def test_readers_of_pson_take_both_forms(dialect: Dialect, wrapped: bool) -> None:
    body = json.dumps({"document_type": "Node", "data": NODE_DATA} if wrapped else NODE_DATA).encode()
    assert dialect.load(NODE, body, PSON) == Node.from_data(NODE_DATA)


def test_readers_of_json_never_unwrap() -> None:
    with pytest.raises(BadData, match="Not a Node"):
        MODERN.load(NODE, json.dumps({"document_type": "Node", "data": NODE_DATA}).encode(), JSON)


@pytest.mark.parametrize(
    ("classes", "found"), [([], {}), (["a", "b"], {"a": None, "b": None}), ({"a": {"x": 1}, "b": None}, {"a": {"x": 1}, "b": None})]
)
def test_classes_have_one_shape_for_the_compiler(classes: Any, found: dict[str, Any]) -> None:
    assert Node(name="n", classes=classes).class_parameters() == found


def test_facts_lie_below_what_the_classifier_says() -> None:
    node = Node(name="n", parameters={"role": "web"}).merged({"role": "fact", "kernel": "Linux"}, "test")
    assert (node.parameters, node.environment) == ({"role": "web", "kernel": "Linux"}, "test")
    assert Node(name="n", environment="own").merged({}, "test").environment == "own"


# --- facts


@pytest.mark.parametrize(("dialect", "format"), [(LEGACY, PSON), (MODERN, JSON), (MODERN, PSON)])
def test_facts_are_bare_in_every_dialect_and_keep_internal_ones_back(dialect: Dialect, format: Format) -> None:
    facts = Facts(name="web1", values={"os": {"family": "Debian"}, "_timestamp": "x", "count": 2}, timestamp="2026-01-01T00:00:00.1+01:00")
    assert sent(dialect, FACTS, facts, format) == {
        "name": "web1",
        "values": {"os": {"family": "Debian"}, "count": 2},
        "timestamp": "2026-01-01T00:00:00.1+01:00",
    }


def test_facts_say_when_they_expire_if_they_do() -> None:
    facts = Facts(name="web1", expiration=datetime(2026, 1, 1, tzinfo=UTC))
    assert sent(MODERN, FACTS, facts, JSON) == {"name": "web1", "values": {}, "expiration": "2026-01-01T00:00:00+00:00"}
    assert MODERN.load(FACTS, MODERN.dump(FACTS, facts, JSON), JSON) == facts


@pytest.mark.parametrize(
    "body", [b"[]", b"null", b'"x"', b"{}", b'{"name": 1}', b'{"name": "n", "values": []}', b'{"name": "n", "expiration": "soon"}']
)
def test_what_are_no_facts_is_bad_data(body: bytes) -> None:
    with pytest.raises(BadData):
        MODERN.load(FACTS, body, JSON)


def test_facts_of_3x_come_as_b64_zlib_yaml_too() -> None:
    facts = Facts(name="web1", values={"kernel": "Linux"})
    assert LEGACY.load(FACTS, LEGACY.dump(FACTS, facts, B64_ZLIB_YAML), B64_ZLIB_YAML) == facts


# --- catalog


def test_a_catalog_for_later_agents_is_bare_and_whole() -> None:
    assert sent(MODERN, CATALOG, catalog(), RICH_JSON) == CATALOG_DATA


def test_a_catalog_for_3x_is_wrapped_and_without_later_fields() -> None:
    found = sent(LEGACY, CATALOG, catalog(), PSON)
    assert (found["document_type"], found["metadata"]) == ("Catalog", {"api_version": 1})
    data = found["data"]
    assert set(data) == {"tags", "name", "version", "environment", "resources", "edges", "classes"}
    assert data["resources"][2] == {
        "type": "File",
        "title": "/x",
        "tags": ["file"],
        "file": "/site.pp",
        "line": 3,
        "exported": False,
        "parameters": {"content": "secret", "mode": "0644"},
    }


def test_metadata_of_a_static_catalog_goes_only_where_it_is_understood() -> None:
    static = catalog(code_id="abc", metadata={"/x": {"path": "/x"}}, recursive_metadata={"/d": {"puppet:///m/d": []}})
    modern = sent(MODERN, CATALOG, static, RICH_JSON)
    assert (modern["metadata"], modern["recursive_metadata"]) == ({"/x": {"path": "/x"}}, {"/d": {"puppet:///m/d": []}})
    assert "metadata" not in sent(LEGACY, CATALOG, static, PSON)["data"]


@pytest.mark.parametrize(("dialect", "format"), [(LEGACY, PSON), (MODERN, PSON), (MODERN, RICH_JSON), (MODERN, JSON), (LEGACY, YAML)])
def test_what_is_sent_is_read_back(dialect: Dialect, format: Format) -> None:
    data = dialect.load(CATALOG, dialect.dump(CATALOG, catalog(), format), format)
    assert [resource.ref for resource in data.resources] == ["Stage[main]", "Class[main]", "File[/x]"]
    assert data.edges == catalog().edges
    assert data.checked() is data


def test_an_edge_keeps_its_event_and_callback() -> None:
    edge = {"source": "Stage[main]", "target": "Class[main]", "event": "ALL_EVENTS", "callback": "refresh"}
    assert sent(MODERN, CATALOG, catalog(edges=[edge]), RICH_JSON)["edges"] == [edge]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges": [{"source": "Class[gone]", "target": "File[/x]"}]}, r"Could not find relationship source Class\[gone\]"),
        ({"edges": [{"source": "Class[main]", "target": "File[/gone]"}]}, r"Could not find relationship target File\[/gone\]"),
        ({"resources": [{"type": "File", "title": "/x"}] * 2, "edges": []}, r"File\[/x\] is in the catalog twice"),
    ],
)
def test_a_catalog_that_does_not_hang_together_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadData, match=f"Could not intern from data: {message}"):
        catalog(**changes).checked()


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"name": "n", "resources": {}},
        {"name": "n", "resources": [{"type": "File"}]},
        {"name": "n", "edges": [{"source": "a"}]},
        {"name": "n", "version": []},
        {"name": "n", "resources": [{"type": "File", "title": "x", "line": "three"}]},
    ],
)
def test_what_is_no_catalog_is_bad_data(data: dict[str, Any]) -> None:
    with pytest.raises(BadData, match="Not a Catalog"):
        Catalog.from_data(data)


# --- rich data

RICH = [
    ({"__ptype": "Default"}, "default"),
    ({"__ptype": "Regexp", "__pvalue": "^a.*"}, "/^a.*/"),
    ({"__ptype": "Timestamp", "__pvalue": "2020-01-01T00:00:00.000000000 UTC"}, "2020-01-01T00:00:00.000000000 UTC"),
    ({"__ptype": "SemVer", "__pvalue": "1.2.3"}, "1.2.3"),
    ({"__ptype": "Binary", "__pvalue": "AAE="}, "AAE="),
    ({"__ptype": "Sensitive", "__pvalue": {"__ptype": "Symbol", "__pvalue": "x"}}, "x"),
    ({"__ptype": "Hash", "__pvalue": [1, "a", True, {"__ptype": "Default"}]}, {"1": "a", "true": "default"}),
    ([{"a": {"__ptype": "Default"}}, 1, None], [{"a": "default"}, 1, None]),
]


@pytest.mark.parametrize(("value", "text"), RICH)
def test_what_json_cannot_say_becomes_text(value: Any, text: Any) -> None:
    assert is_rich(value)
    assert as_plain_json(value) == text


@pytest.mark.parametrize("value", ["x", 1, 1.5, None, True, [], {}, {"a": [{"b": "c"}]}, {"__pvalue": 1}])
def test_plain_values_are_left_alone(value: Any) -> None:
    assert not is_rich(value)
    assert as_plain_json(value) == value


def test_rich_values_are_sent_as_they_are_to_who_reads_them(caplog: pytest.LogCaptureFixture) -> None:
    data = sent(MODERN, CATALOG, with_content({"__ptype": "Default"}), RICH_JSON)
    assert data["resources"][0]["parameters"] == {"content": {"__ptype": "Default"}}
    assert caplog.records == []


@pytest.mark.parametrize("dialect", [LEGACY, MODERN])
def test_bytes_that_are_no_text_are_sent_as_they_are_in_pson_alone(dialect: Dialect, caplog: pytest.LogCaptureFixture) -> None:
    source = with_content({"deep": [of_bytes(b"\xff\x00\xc3\xa9"), "x"]})
    assert b'"content":{"deep":["\xff\\u0000\xc3\xa9","x"]}' in dialect.dump(CATALOG, source, PSON)
    assert caplog.records == []
    for format in (JSON, YAML):
        with pytest.raises(NotAcceptable, match=r"File\[/x\] has bytes that are no text"):
            dialect.dump(CATALOG, source, format)
    rich = sent(MODERN, CATALOG, source, RICH_JSON)["resources"][0]["parameters"]
    assert rich == {"content": {"deep": [{"__ptype": "Binary", "__pvalue": "/wDDqQ=="}, "x"]}}


def test_a_binary_of_octets_that_are_text_is_sent_as_base64_to_who_reads_no_rich_data(caplog: pytest.LogCaptureFixture) -> None:
    for format in (PSON, JSON):
        sent_data = sent(MODERN, CATALOG, with_content([of_bytes("é".encode()), "x"]), format)
        assert sent_data["resources"][0]["parameters"] == {"content": ["w6k=", "x"]}
    assert len(caplog.records) == 2


def test_a_binary_that_is_not_base64_is_refused_by_name() -> None:
    with pytest.raises(BadData, match="A Binary value that is not base64"):
        MODERN.dump(CATALOG, with_content({"__ptype": "Binary", "__pvalue": "a"}), PSON)


@pytest.mark.parametrize(("dialect", "format"), [(LEGACY, PSON), (MODERN, JSON), (MODERN, PSON)])
def test_rich_values_are_sent_as_text_to_others_with_a_warning(dialect: Dialect, format: Format, caplog: pytest.LogCaptureFixture) -> None:
    source = with_content({"__ptype": "Default"})
    with caplog.at_level(logging.WARNING, logger="puppet.catalog"):
        data = sent(dialect, CATALOG, source, format)
    assert data.get("data", data)["resources"][0]["parameters"] == {"content": "default"}
    assert [record.getMessage() for record in caplog.records] == [
        "File[/x] has values that this agent's format cannot hold; they are sent as text"
    ]
    assert source.resources[0].parameters == {"content": {"__ptype": "Default"}}  # the catalog itself is not touched

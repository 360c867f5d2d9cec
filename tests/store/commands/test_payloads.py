"""Payloads of all versions become commands, and what PuppetDB discards is rejected with a reason."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from master.puppetdb.catalog import stored_catalog
from master.puppetdb.commands import wire_time
from master.puppetdb.termini import catalog_command
from shared.wire.packed_catalogs import PackedCatalog
from store.commands.catalog_texts import split_catalog
from store.commands.checked_catalogs import CheckedCatalogs, DeferredSequence
from store.commands.commands import (
    ConfigureExpiration,
    DeactivateNode,
    PayloadRejected,
    ReplaceCatalog,
    ReplaceCatalogInputs,
    ReplaceFacts,
    ReportEvent,
    StoreReport,
    containing_class,
)
from store.commands.hashes import catalog_hash
from store.commands.payloads import decode_payload, parse_packed, parse_payload
from store.timestamps import parse_timestamp

pytestmark = pytest.mark.works_with("The built-in store", "payloads of commands")

CASES = json.loads((Path(__file__).parents[2] / "conformance/puppetdb/commands.json").read_text("utf-8"))
TERMINUS = json.loads((Path(__file__).parents[2] / "data/puppetdb/terminus.json").read_text("utf-8"))
CARRIED_OUT = [case for case in CASES if isinstance(case["answer"]["body"], dict) and "processed" in case["answer"]["body"]]
RECEIVED = 1763000000000000
TIME = "2025-10-01T00:00:00.000Z"


def parse(command: str, version: int, payload: object):
    return parse_payload(command, version, json.dumps(payload).encode(), RECEIVED)


@pytest.mark.parametrize("case", CARRIED_OUT, ids=lambda case: case["id"])
def test_a_payload_is_carried_out_or_rejected_as_recorded(case) -> None:
    parameters, body = case["request"]["params"], case["answer"]["body"]
    is_accepted = body["processed"] and "error" not in body
    try:
        parse_payload(parameters["command"].replace("_", " "), int(parameters["version"]), case["request"]["raw_body"].encode(), RECEIVED)
    except PayloadRejected as rejection:
        assert not is_accepted, rejection
        assert str(rejection)
    else:
        assert is_accepted


def test_all_commands_of_the_data_set_are_understood(commands) -> None:
    kinds = [type(command).__name__ for command in commands]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "ReplaceFacts": 15,
        "ReplaceCatalog": 10,
        "StoreReport": 13,
        "ReplaceCatalogInputs": 2,
        "ConfigureExpiration": 2,
        "DeactivateNode": 4,
    }


FACTS = {"certname": "web1", "environment": "production", "producer_timestamp": TIME, "values": {"a": None}}


def test_facts_of_both_versions_are_read() -> None:
    packages = [["nginx", "1", "apt"], ["bash", "5", "apt"], ["nginx", "1", "apt"]]
    newest = parse("replace facts", 5, {**FACTS, "producer": "master", "package_inventory": packages})
    when = parse_timestamp(TIME)
    assert newest == ReplaceFacts("web1", "production", "master", when, {"a": None}, (("bash", "5", "apt"), ("nginx", "1", "apt")))
    assert parse("replace facts", 4, FACTS) == ReplaceFacts("web1", "production", None, when, {"a": None})


RESOURCE = {
    "type": "File",
    "title": "/a",
    "exported": False,
    "tags": ["file", "a", "file", "kůň"],
    "parameters": {"b": [1, None]},
    "kind": "x",
}
EDGE = {"source": {"type": "File", "title": "/a"}, "target": {"type": "File", "title": "/a"}, "relationship": "before"}
CATALOG = {
    "certname": "web1",
    "version": "1",
    "environment": None,
    "transaction_uuid": "t",
    "catalog_uuid": "c",
    "code_id": "code",
    "job_id": "7",
    "producer_timestamp": TIME,
    "producer": "master",
    "edges": [EDGE, EDGE],
    "resources": [RESOURCE],
    "classes": ["ignored"],
}


@pytest.mark.parametrize(
    "version, catalog_uuid, code_id, job_id, producer",
    [(9, "c", "code", "7", "master"), (8, "c", "code", None, None), (7, "t", "code", None, None), (6, "t", None, None, None)],
)
def test_catalogs_of_all_versions_are_read(version: int, catalog_uuid: str, code_id, job_id, producer) -> None:
    catalog = parse("replace catalog", version, CATALOG)
    assert isinstance(catalog, ReplaceCatalog)
    assert (catalog.catalog_uuid, catalog.code_id, catalog.job_id, catalog.producer) == (catalog_uuid, code_id, job_id, producer)
    (resource,) = catalog.resources
    assert resource.tags == ("a", "file", "kůň")
    assert (resource.parameters, resource.file, resource.line) == ({"b": [1, None]}, None, None)
    assert len(catalog.edges) == 1


EVENT = {
    "status": "success",
    "timestamp": TIME,
    "property": "mode",
    "name": "mode_changed",
    "new_value": [1],
    "old_value": None,
    "message": "m",
    "corrective_change": True,
}
PLACE = {
    "resource_type": "File",
    "resource_title": "/a",
    "file": "/site.pp",
    "line": 3,
    "containment_path": ["Stage[main]", "Nginx", "File[/a]"],
}
REPORT_RESOURCE = {"skipped": False, "timestamp": TIME, "corrective_change": True, "events": [EVENT, EVENT], **PLACE}
SKIPPED = {**REPORT_RESOURCE, "resource_title": "/b", "skipped": True, "events": []}
UNCHANGED = {**REPORT_RESOURCE, "resource_title": "/c", "events": []}
REPORT = {
    "certname": "web1",
    "puppet_version": "7.23.0",
    "report_format": 12,
    "configuration_version": "1",
    "start_time": TIME,
    "end_time": TIME,
    "producer_timestamp": TIME,
    "producer": "master",
    "corrective_change": False,
    "resources": [REPORT_RESOURCE, SKIPPED, UNCHANGED],
    "noop": False,
    "noop_pending": True,
    "transaction_uuid": "t",
    "catalog_uuid": "c",
    "code_id": None,
    "cached_catalog_status": "not_used",
    "metrics": [{"category": "time", "name": "total", "value": 1.5}],
    "logs": [
        {
            "file": None,
            "line": None,
            "level": "info",
            "message": "m",
            "source": "Puppet",
            "tags": ["info"],
            "time": "2025-10-01T02:00:00+02:00",
        }
    ],
    "environment": "production",
    "status": "changed",
}


def without(value: dict, *names: str) -> dict:
    return {name: member for name, member in value.items() if name not in names}


OLD_EVENT = without(EVENT, "name", "corrective_change")
OLD_RESOURCES = [
    {**without(resource, "corrective_change"), "events": [OLD_EVENT] * len(resource["events"])} for resource in REPORT["resources"]
]
REPORT_7 = {**without(REPORT, "producer", "noop_pending", "corrective_change"), "resources": OLD_RESOURCES}
REPORT_6 = without(REPORT_7, "cached_catalog_status", "catalog_uuid", "code_id")
REPORT_5 = {
    **without(REPORT_6, "resources"),
    "resource_events": [{**OLD_EVENT, **PLACE}, {**OLD_EVENT, **PLACE, "resource_title": "/b", "status": "skipped"}],
}


@pytest.mark.parametrize("version, payload", [(8, REPORT), (7, REPORT_7), (6, REPORT_6), (5, REPORT_5)], ids=[8, 7, 6, 5])
def test_reports_of_all_versions_are_read(version: int, payload: dict) -> None:
    report = parse("store report", version, payload)
    assert isinstance(report, StoreReport)
    path = ("Stage[main]", "Nginx", "File[/a]")
    when = parse_timestamp(TIME)
    name, corrective = ("mode_changed", True) if version == 8 else (None, None)
    change = ReportEvent("success", when, "File", "/a", "mode", name, [1], None, "m", "/site.pp", 3, path, corrective)
    skip = ReportEvent("skipped", when, "File", "/b", None, None, None, None, None, "/site.pp", 3, path, corrective)
    assert report.events == [change, skip]
    assert containing_class(change) == "Nginx"
    assert report.type == "agent"
    assert report.logs is not None and report.logs[0]["time"] == TIME
    assert (report.producer, report.noop_pending) == (("master", True) if version == 8 else (None, None))


def test_a_missing_time_of_the_producer_is_the_time_of_receipt() -> None:
    for command, version, payload in [
        ("store report", 8, without(REPORT, "producer_timestamp")),
        ("deactivate node", 3, {"certname": "web1"}),
        ("configure expiration", 1, {"certname": "web1", "expire": {"facts": False}}),
        ("replace catalog inputs", 1, {"certname": "web1", "catalog_uuid": "c", "inputs": [["hiera", "b"], ["hiera", "a"]]}),
    ]:
        value = parse(command, version, payload)
        assert isinstance(value, StoreReport | DeactivateNode | ConfigureExpiration | ReplaceCatalogInputs)
        assert value.producer_timestamp == RECEIVED


def test_inputs_are_distinct_and_sorted_and_none_of_them_ask_for_nothing() -> None:
    inputs = parse("replace catalog inputs", 1, {"certname": "web1", "catalog_uuid": "c", "inputs": [["b", "x"], ["a", "y"], ["b", "x"]]})
    assert isinstance(inputs, ReplaceCatalogInputs)
    assert inputs.inputs == (("a", "y"), ("b", "x"))
    assert parse("replace catalog inputs", 1, {"certname": "web1", "inputs": []}) is None


REJECTED = [
    ("replace facts", 6, FACTS, "Unsupported command replace facts version 6"),
    ("replace facts", 3, FACTS, "Unsupported command replace facts version 3"),
    ("dance", 1, {}, "Unsupported command dance version 1"),
    ("replace facts", 5, FACTS, "lacks the keys: producer"),
    ("replace facts", 4, {**FACTS, "extra": 1}, "unknown keys: extra"),
    ("replace facts", 4, {**FACTS, "certname": " "}, "empty certname"),
    ("replace facts", 4, {**FACTS, "certname": 7}, "certname must be a string"),
    ("replace facts", 5, {**FACTS, "producer": None, "package_inventory": [["a", "1", 2]]}, "lists of 3 strings"),
    ("replace catalog", 9, without(CATALOG, "producer"), "lacks the keys: producer"),
    ("replace catalog", 9, {**CATALOG, "resources": [{**RESOURCE, "tags": "file"}]}, "tags must be a list"),
    ("replace catalog", 9, {**CATALOG, "resources": [{**RESOURCE, "line": True}]}, "line must be an integer"),
    ("store report", 8, {**REPORT, "report_format": 2**40}, "report_format must be an integer"),
    ("store report", 8, {**REPORT, "noop": "no"}, "noop must be a boolean"),
    ("configure expiration", 1, {"certname": "a"}, "expire must be an object"),
]


@pytest.mark.parametrize("command, version, payload, reason", REJECTED, ids=[case[3] for case in REJECTED])
def test_a_rejection_says_what_is_wrong(command: str, version: int, payload: dict, reason: str) -> None:
    with pytest.raises(PayloadRejected, match=reason):
        parse(command, version, payload)


TOO_LARGE = [
    ("replace facts", 4, {**FACTS, "values": dict.fromkeys(map(str, range(20_001)))}, "has 20001 facts; at most 20000 are allowed"),
    (
        "replace facts",
        5,
        {**FACTS, "producer": None, "package_inventory": [[str(number), "1", "apt"] for number in range(30_001)]},
        "has 30001 packages; at most 30000 are allowed",
    ),
    ("replace facts", 4, {**FACTS, "values": {"a": "x" * 2**25}}, r"has \d+ bytes; at most 33554432 are allowed"),
    (
        "store report",
        8,
        {**REPORT, "resources": [{**REPORT["resources"][0], "skipped": True, "resource_title": str(number)} for number in range(50_001)]},
        "more than 50000 events",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("command, version, payload, reason", TOO_LARGE, ids=[case[3] for case in TOO_LARGE])
def test_PDB_12_a_payload_of_more_rows_than_are_written_at_once_is_refused_with_the_limit(
    command: str, version: int, payload: dict, reason: str
) -> None:
    with pytest.raises(PayloadRejected, match=reason):
        parse(command, version, payload)


def facts_of(text: bytes) -> object:
    payload = b'{"certname":"a","environment":null,"producer_timestamp":"2025-01-01T00:00:00Z","values":{"v":%s}}' % text
    command = parse_payload("replace facts", 4, payload, RECEIVED)
    assert isinstance(command, ReplaceFacts)
    return command.values["v"]


@pytest.mark.parametrize(
    "text, value",
    [
        (b"9007199254740993", 9007199254740993),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
        (b"3.14159265358979323846264338", 3.141592653589793),
        (rb'"a\u0000b"', "a\ufffdb"),
        (rb'{"\u0000":["\ud83d\ude00","\ud83d"]}', {"\ufffd": ["😀", "\ufffd"]}),
        (b'"a\xffb"', "a\ufffdb"),
    ],
)
def test_values_are_what_a_database_can_store(text: bytes, value: object) -> None:
    assert facts_of(text) == value


@pytest.mark.parametrize(
    "text", [b"NaN", b"1e999", b"[" * 300 + b"]" * 300, b"[" * 100_000, b"9" * 5000, rb'["\u0000",' + b"[" * 300 + b"]" * 301, b"{"]
)
def test_what_is_no_storable_json_is_rejected(text: bytes) -> None:
    with pytest.raises(PayloadRejected, match="not JSON"):
        facts_of(text)


def test_PDB_09_a_payload_is_decoded_up_to_a_limit() -> None:
    packed = gzip.compress(b"x" * 100)
    assert decode_payload(packed, "gzip", 100) == b"x" * 100
    assert decode_payload(b"x" * 100, "identity", 100) == b"x" * 100
    for payload, coding, reason in [
        (packed, "gzip", "longer than 99 bytes"),
        (b"x" * 100, "identity", "longer than 99 bytes"),
        (packed[:-4], "gzip", "are truncated"),
        (b"plain", "gzip", "not gzip"),
    ]:
        with pytest.raises(PayloadRejected, match=reason):
            decode_payload(payload, coding, 100 if "truncated" in reason else 99)


def _catalog_of(contents: str, at: str, *, edge_to: str = "/b") -> bytes:
    files = [
        {"type": "File", "title": title, "exported": False, "file": None, "line": 1, "tags": ["file"], "parameters": {"content": contents}}
        for title in ("/a", "/b")
    ]
    edge = {"source": {"type": "File", "title": "/a"}, "target": {"type": "File", "title": edge_to}, "relationship": "before"}
    payload = {"certname": "n.test", "version": at, "environment": "production", "producer_timestamp": f"2026-01-01T00:00:{at}Z"}
    ids = {"transaction_uuid": at, "catalog_uuid": at, "code_id": None, "producer": "m", "job_id": None}
    return json.dumps(payload | ids | {"resources": files, "edges": [edge]}).encode()


def test_a_catalog_that_was_checked_before_is_the_same_command_as_one_that_was_not() -> None:
    checked = CheckedCatalogs()
    for at, contents in (("01", "one"), ("02", "one"), ("03", "two"), ("04", "one")):
        payload = _catalog_of(contents, at)
        plain = parse_payload("replace catalog", 9, payload, RECEIVED)
        command = parse_payload("replace catalog", 9, payload, RECEIVED, checked)
        assert isinstance(plain, ReplaceCatalog) and isinstance(command, ReplaceCatalog)
        assert command.hash == catalog_hash(plain)
        assert replace(command, resources=list(command.resources), edges=list(command.edges), hash=None) == plain
        assert isinstance(command.resources, DeferredSequence) is (at in ("02", "04"))


_HEAD = '"certname":"n.test","version":"1","code_id":null,"catalog_uuid":"u"'
_TAIL = '"job_id":null,"transaction_uuid":"t","environment":"production","producer_timestamp":"2026-01-01T00:00:00Z","producer":"m"'
_NOTIFY = '{"type":"Notify","title":"a]","exported":false,"file":null,"line":1,"tags":["notify"],"parameters":{"message":"],}"}}'
_RESOURCES, _EDGES = f'"resources":[{_NOTIFY}]', '"edges":[]'

TEXTS = {
    "as our masters send it": f"{{{_HEAD},{_RESOURCES},{_EDGES},{_TAIL}}}",
    "edges first": f"{{{_HEAD},{_EDGES},{_RESOURCES},{_TAIL}}}",
    "resources first": f"{{{_RESOURCES},{_EDGES},{_HEAD},{_TAIL}}}",
    "resources last": f"{{{_HEAD},{_TAIL},{_EDGES},{_RESOURCES}}}",
    "with blanks": f"{{ {_HEAD}, {_RESOURCES}, {_EDGES}, {_TAIL} }}\n",
    "a member between them": f'{{{_HEAD},{_RESOURCES},"producer":"other",{_EDGES},{_TAIL}}}',
    "a member twice, once between them": f'{{{_HEAD},{_RESOURCES},"version":"2",{_EDGES},{_TAIL}}}',
    "resources twice": f'{{{_HEAD},{_RESOURCES},{_EDGES},{_TAIL},"resources":[]}}',
    "resources twice, one of them before": f'{{"resources" :[],{_HEAD},{_RESOURCES},{_EDGES},{_TAIL}}}',
    "resources twice in a row": f'{{{_HEAD},{_RESOURCES},"resources":[],{_EDGES},{_TAIL}}}',
    "no edges": f"{{{_HEAD},{_RESOURCES},{_TAIL}}}",
    "the name within a text": f'{{{_HEAD},"x":"\\"resources\\":[",{_RESOURCES},{_EDGES},{_TAIL}}}',
    "a text that is cut": f'{{{_HEAD},"x":"y,{_RESOURCES},{_EDGES},":1,{_TAIL}}}',
    "a text that is cut twice": f'{{{_HEAD},"x":"y,{_RESOURCES},{_EDGES},"}}',
    "a name that is cut": f'{{{_HEAD},"x\\"resources":[],{_RESOURCES},{_EDGES},{_TAIL}}}',
    "within another object": f'{{{_HEAD},"x":{{"y":1,{_RESOURCES},{_EDGES},"z":2}},{_TAIL}}}',
    "a list behind them": f'{{{_HEAD},{_RESOURCES},{_EDGES},{_TAIL},"x":[]}}',
    "an object behind them": f'{{{_HEAD},{_RESOURCES},{_EDGES},{_TAIL},"x":{{}}}}',
    "a comma too many": f"{{{_HEAD},{_RESOURCES},{_EDGES},,{_TAIL}}}",
    "something behind it": f"{{{_HEAD},{_RESOURCES},{_EDGES},{_TAIL}}}}}",
    "two of them": f"{{{_HEAD},{_RESOURCES},{_EDGES},{_TAIL}}}{{{_HEAD},{_RESOURCES},{_EDGES},{_TAIL}}}",
    "nothing before them": f"{{{_RESOURCES},{_EDGES},{_TAIL}}}",
    "no member that is needed": f'{{"certname":"n.test",{_RESOURCES},{_EDGES},{_TAIL}}}',
    "no certname": f'{{"version":"1",{_RESOURCES},{_EDGES},{_TAIL}}}',
    "a resource too many": f'{{{_HEAD},"resources":[{_NOTIFY},{_NOTIFY}],{_EDGES},{_TAIL}}}',
    "resources that are none": f'{{{_HEAD},"resources":[1],{_EDGES},{_TAIL}}}',
    "bytes that are no text": f"{{{_HEAD},{_RESOURCES},{_EDGES},{_TAIL}}}".replace("a]", "\udcff]"),
    "a zero in a text": f"{{{_HEAD},{_RESOURCES},{_EDGES},{_TAIL}}}".replace("a]", "\\u0000]"),
    "a long number": f"{{{_HEAD},{_RESOURCES},{_EDGES},{_TAIL}}}".replace('"],}"', "9" * 40),
}


def _outcome(text: str, checked: CheckedCatalogs | None) -> object:
    """Return the catalog of a text as a whole, or why it is rejected."""
    try:
        command = parse_payload("replace catalog", 9, text.encode("utf-8", "surrogateescape"), RECEIVED, checked)
    except PayloadRejected as err:
        return str(err)
    assert isinstance(command, ReplaceCatalog)
    return replace(command, resources=list(command.resources), edges=list(command.edges), hash=None)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_whatever_the_form_of_a_catalog_it_is_the_same_with_and_without_what_was_checked_before(text: str) -> None:
    plain, checked = _outcome(text, None), CheckedCatalogs()
    _outcome(TEXTS["as our masters send it"], checked)
    for _ in range(2):
        assert _outcome(text, checked) == plain


def test_resources_and_edges_that_a_master_sends_again_are_not_even_parsed() -> None:
    types: Any = SimpleNamespace(find=lambda _: None)
    file = {"type": "File", "title": "/a", "exported": False, "file": None, "line": 1, "tags": ["file"], "parameters": {}}
    catalog = {"name": "n.test", "version": 1, "code_id": None, "catalog_uuid": "u", "resources": [file], "edges": []}
    stored = PackedCatalog.of(stored_catalog(catalog, types)).pack()
    when = datetime(2026, 1, 1, tzinfo=UTC)
    rest = {"job_id": None, "transaction_uuid": None, "environment": "production", "producer_timestamp": wire_time(when), "producer": "m"}
    command = catalog_command("n.test", stored, rest, when)
    assert isinstance(command.payload, PackedCatalog)
    packed, text = command.payload.pack(), command.unpacked()
    plain = parse_payload("replace catalog", 9, text, RECEIVED)
    known_texts, known_packed = CheckedCatalogs(), CheckedCatalogs()
    of_texts = [parse_payload("replace catalog", 9, text, RECEIVED, known_texts) for _ in range(2)]
    of_packed = [parse_packed(9, packed, 1000, known_packed) for _ in range(2)]
    for catalogs in (of_texts, of_packed):
        kinds = []
        for catalog in catalogs:
            assert isinstance(catalog, ReplaceCatalog)
            kinds.append(isinstance(catalog.resources, DeferredSequence))
            assert replace(catalog, resources=list(catalog.resources), edges=list(catalog.edges), hash=None) == plain
        assert kinds == [False, True]
    assert split_catalog(text) is not None
    assert [catalog.size for catalog in of_packed] == [len(text) + 1] * 2  # what is parsed only later takes as much memory then


@pytest.mark.parametrize("recorded", TERMINUS["catalogs"], ids=lambda catalog: catalog["certname"])
def test_resources_and_edges_that_a_puppetserver_sends_again_are_not_even_parsed(recorded: dict[str, Any]) -> None:
    payload = json.dumps(recorded, separators=(",", ":"), ensure_ascii=False).encode()
    plain, checked = parse_payload("replace catalog", 9, payload, RECEIVED), CheckedCatalogs()
    for is_known in (False, True):
        catalog = parse_payload("replace catalog", 9, payload, RECEIVED, checked)
        assert isinstance(catalog, ReplaceCatalog) and isinstance(catalog.resources, DeferredSequence) is is_known
        assert replace(catalog, resources=list(catalog.resources), edges=list(catalog.edges), hash=None) == plain
    assert split_catalog(payload) is not None


PACKED = PackedCatalog(f"{{{_HEAD},{_TAIL}}}".encode(), zlib.compress(f"{{{_RESOURCES},{_EDGES}}}".encode()))
NOT_PACKED = {
    b"": "no packed catalog",
    b"\0\0\0\x7f{}": "no packed catalog",
    PackedCatalog(PACKED.rest, b"nonsense").pack(): "cannot be unpacked",
    PACKED.pack()[:-3]: "ends too early",
    PackedCatalog(PACKED.rest, zlib.compress(b"{" + b" " * 2000)).pack(): "longer than 1000 bytes",
    PackedCatalog(PACKED.rest, zlib.compress(b"{")).pack(): "the payload is not JSON",
    PackedCatalog(b"{]", PACKED.content).pack(): "the payload is not JSON",
    PackedCatalog(b"[1]", PACKED.content).pack(): "the catalog must be a JSON object",
    PackedCatalog(b"{}", PACKED.content).pack(): "lacks the keys",
    PackedCatalog(PACKED.rest, zlib.compress(f"{{{_EDGES}}}".encode())).pack(): "other members",
    PackedCatalog(PACKED.rest[:-1] + b',"edges":[]}', PACKED.content).pack(): "twice",
}


@pytest.mark.parametrize(("packed", "reason"), NOT_PACKED.items(), ids=NOT_PACKED.values())
def test_PDB_09_a_packed_catalog_that_is_none_is_rejected(packed: bytes, reason: str) -> None:
    checked = CheckedCatalogs()
    parse_packed(9, PACKED.pack(), 1000, checked)
    for _ in range(2):
        with pytest.raises(PayloadRejected, match=reason):
            parse_packed(9, packed, 1000, checked)


def test_a_faulty_catalog_is_refused_each_time_whatever_was_checked_before() -> None:
    checked = CheckedCatalogs()
    parse_payload("replace catalog", 9, _catalog_of("one", "01"), RECEIVED, checked)
    for _ in range(2):
        with pytest.raises(PayloadRejected, match="is not in the catalog"):
            parse_payload("replace catalog", 9, _catalog_of("one", "02", edge_to="/nosuch"), RECEIVED, checked)
    with pytest.raises(PayloadRejected, match="producer_timestamp"):
        parse_payload("replace catalog", 9, _catalog_of("one", "xx"), RECEIVED, checked)


def test_the_catalogs_that_were_not_sent_for_longest_are_checked_again() -> None:
    checked = CheckedCatalogs(most=2)
    for contents in ("one", "two", "one", "three"):
        parse_payload("replace catalog", 9, _catalog_of(contents, "01"), RECEIVED, checked)
    commands = [parse_payload("replace catalog", 9, _catalog_of(contents, "02"), RECEIVED, checked) for contents in ("one", "three", "two")]
    kinds = [isinstance(command, ReplaceCatalog) and isinstance(command.resources, DeferredSequence) for command in commands]
    assert kinds == [True, True, False]

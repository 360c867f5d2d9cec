"""What a PuppetDB gets of facts and reports, compared with what the reference's terminus sent."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from master.puppetdb.commands import PuppetDbCommand
from master.puppetdb.facts import facts_command
from master.puppetdb.report import in_milliseconds, stored_report
from master.puppetdb.termini import catalog_command
from shared.models.facts import Facts
from shared.models.report import Report
from shared.wire.packed_catalogs import PackedCatalog

RECORDED = json.loads((Path(__file__).parents[2] / "data" / "puppetdb" / "terminus.json").read_text())
PRODUCER = "master.example.com"
TRUSTED = RECORDED["facts"]["body"]["values"]["trusted"]
WHEN = datetime(2026, 11, 22, 12, 59, 0, 670_900, UTC)


def own_facts() -> dict[str, Any]:
    return {name: value for name, value in RECORDED["facts"]["body"]["values"].items() if name != "trusted"}


def test_facts_are_sent_as_the_reference_sends_them() -> None:
    command = facts_command(Facts(name="web1.example.com", values=own_facts()), TRUSTED, "production", PRODUCER, WHEN)
    recorded = RECORDED["facts"]["body"]
    sent = json.loads(command.unpacked())
    assert datetime.fromisoformat(sent.pop("producer_timestamp")) == datetime.fromisoformat(recorded["producer_timestamp"])
    assert sent == {name: value for name, value in recorded.items() if name != "producer_timestamp"}
    targets = (command.target(command.unpacked()), RECORDED["facts"]["path"])
    without_checksum = [re.sub("checksum=[0-9a-f]{40}&", "checksum=&", target) for target in targets]
    assert without_checksum[0] == without_checksum[1]


def test_the_packages_of_a_node_are_kept_apart_from_its_facts() -> None:
    packages = [["ssh", "1", "apt"]]
    facts = Facts(name="n", values={"a": 1, "_puppet_inventory_1": {"packages": packages}})
    command = facts_command(facts, {}, "production", PRODUCER, WHEN)
    sent = json.loads(command.unpacked())
    assert sent["package_inventory"] == packages and sent["values"] == {"a": 1, "trusted": {}}


def test_a_fact_called_trusted_never_counts() -> None:
    command = facts_command(Facts(name="n", values={"trusted": "forged"}), TRUSTED, "e", PRODUCER, WHEN)
    assert json.loads(command.unpacked())["values"] == {"trusted": TRUSTED}


def test_bytes_that_are_no_text_are_replaced_and_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    command = facts_command(Facts(name="n", values={"bad": "a\udcffb"}), {}, "e", PRODUCER, WHEN)
    assert json.loads(command.unpacked())["values"]["bad"] == "a\ufffdb"
    assert caplog.messages == [
        "Error encoding a 'replace facts' command for host 'n' ignoring invalid UTF-8 byte sequences in data to be sent to PuppetDB, "
        "see debug logging for more info"
    ]


def test_the_checksum_is_that_of_the_whole_command() -> None:
    command = PuppetDbCommand.create("deactivate node", 3, "n", b'{"certname":"n"}', WHEN)
    whole = b'{"command":"deactivate node","version":3,"certname":"n","payload":{"certname":"n"}}'
    assert f"checksum={hashlib.sha1(whole).hexdigest()}&" in command.target(command.unpacked())


def test_a_catalog_gets_the_fields_of_its_request() -> None:
    rest = {"job_id": None, "transaction_uuid": "t", "environment": "production", "producer_timestamp": "now", "producer": PRODUCER}
    stored: dict[str, Any] = {"certname": "n", "resources": [{"type": "File", "title": "/ü"}], "edges": []}
    command = catalog_command("n", PackedCatalog.of(stored).pack(), rest, WHEN)
    assert json.loads(command.unpacked()) == stored | rest
    assert (command.wire_name, command.version) == ("replace_catalog", 9)


def report_behind(recorded: dict[str, Any], **changed: Any) -> Report:
    """The report that an agent sent, from which the reference made a command."""
    metrics: dict[str, Any] = {}
    for metric in recorded["metrics"]:
        values = metrics.setdefault(metric["category"], {"name": metric["category"], "label": "", "values": []})["values"]
        values.append([metric["name"], "", metric["value"]])
    statuses = {
        f"{resource['resource_type']}[{resource['resource_title']}]": {
            **resource,
            "resource": f"{resource['resource_type']}[{resource['resource_title']}]",
            "title": resource["resource_title"],
            "time": resource["timestamp"],
            "events": [
                {**event, "time": event["timestamp"], "desired_value": event["new_value"], "previous_value": event["old_value"]}
                for event in resource["events"]
            ],
        }
        for resource in recorded["resources"]
    }
    statuses["Notify[unchanged]"] = {"resource": "Notify[unchanged]", "title": "unchanged", "resource_type": "Notify"}
    same = ("job_id", "puppet_version", "report_format", "environment", "transaction_uuid", "status", "noop", "noop_pending", "logs")
    more = ("corrective_change", "catalog_uuid", "code_id", "cached_catalog_status", "configuration_version")
    data = {name: recorded[name] for name in (*same, *more)}
    parts = {"host": recorded["certname"], "time": recorded["start_time"], "metrics": metrics, "resource_statuses": statuses}
    return Report.from_data(data | parts | changed)


@pytest.mark.parametrize("recorded", [report["body"] for report in RECORDED["reports"]], ids=lambda body: body["end_time"])
def test_a_report_is_sent_as_the_reference_sends_it(recorded: dict[str, Any]) -> None:
    when = datetime.fromisoformat(recorded["producer_timestamp"])
    sent = stored_report(report_behind(recorded), every_resource=False, producer=PRODUCER, when=when)
    end, recorded_end = (datetime.fromisoformat(data.pop("end_time")) for data in (sent, dict(recorded)))
    assert timedelta() <= recorded_end - end <= timedelta(milliseconds=1)  # the start had more digits once
    assert sent == {name: value for name, value in recorded.items() if name != "end_time"}


def test_a_report_may_have_all_resources() -> None:
    report = report_behind(RECORDED["reports"][0]["body"])
    names = [resource["resource_title"] for resource in stored_report(report, every_resource=True, producer="m", when=WHEN)["resources"]]
    assert names[-1] == "unchanged" and len(names) == 1 + len(RECORDED["reports"][0]["body"]["resources"])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("absent", "absent"),
        (["0", None], '["0", nil]'),
        ({"a": [1, True]}, '{"a"=>[1, true]}'),
        (5, "5"),
        (False, "false"),
    ],
)
def test_values_of_events_are_text(value: Any, text: str) -> None:
    event = {"time": "2026-11-22T13:03:32.171+00:00", "status": "success", "desired_value": value, "previous_value": value}
    statuses = {"A[a]": {"resource": "A[a]", "title": "a", "resource_type": "A", "events": [event]}}
    sent = stored_report(
        report_behind(RECORDED["reports"][0]["body"], resource_statuses=statuses), every_resource=False, producer="m", when=WHEN
    )
    assert [(event["new_value"], event["old_value"]) for event in sent["resources"][0]["events"]] == [(text, text)]


@pytest.mark.parametrize(
    ("time", "later", "text"),
    [
        ("2026-11-22T12:58:27.673119000+00:00", 0, "2026-11-22T12:58:27.673+00:00"),
        ("2026-11-22T12:58:27.999999999+01:00", 0.000000001, "2026-11-22T12:58:28.000+01:00"),
        ("2026-11-22T23:59:59Z", 1.5, "2026-11-23T00:00:00.500Z"),
        ("", 0, None),
    ],
)
def test_times_have_milliseconds(time: str, later: float, text: str | None) -> None:
    assert in_milliseconds(time, later) == text


def test_names_too_long_for_puppetdbs_index_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    for size in (2487, 2492, 2700):
        title = "x" * size
        statuses = {"File[x]": {"resource": "File[x]", "title": title, "resource_type": "File", "skipped": True, "file": "f", "line": 1}}
        report = report_behind(RECORDED["reports"][0]["body"], resource_statuses=statuses)
        stored_report(report, every_resource=False, producer="m", when=WHEN)
    assert [message.partition(" Values")[0] for message in caplog.messages] == [
        "resource_event on fail1.example.com is very large.",
        "resource_event on fail1.example.com could not be saved.",
    ]

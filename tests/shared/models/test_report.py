"""Reports of all formats, read and written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from shared.data import plainjson, plainyaml
from shared.errors import BadData
from shared.models.report import REPORT, Event, Log, Report, ResourceStatus, iso_time, metrics_of
from shared.wire.dialects import LEGACY, MODERN

# Shapes taken from reports of Puppet 3.8.7 (ZAML), 4 to 6 (psych) and 7.23.0.
YAML_38 = b"""--- !ruby/object:Puppet::Transaction::Report
  metrics:
    resources: !ruby/object:Puppet::Util::Metric
      name: resources
      label: Resources
      values:
        - - total
          - Total
          - 20
        - - failed
          - Failed
          - 1
    changes: !ruby/object:Puppet::Util::Metric
      name: changes
      label: Changes
      values:
        - - total
          - Total
          - 2
  logs:
    - !ruby/object:Puppet::Util::Log
      level: !ruby/sym notice
      tags:
        - notice
        - file
      message: created
      source: /Stage[main]/Main/File[/x]/ensure
      time: 2026-11-20 21:48:31.123456789 +00:00
  resource_statuses:
    File[/x]: !ruby/object:Puppet::Resource::Status
      resource: File[/x]
      file: /site.pp
      line: 1
      evaluation_time: 0.5
      change_count: 1
      out_of_sync_count: 1
      tags: !ruby/object:Puppet::Util::TagSet
        hash:
          file: true
          class: true
      time: 2026-11-20 21:48:31.123456 +00:00
      events:
        - !ruby/object:Puppet::Transaction::Event
          audited: false
          property: ensure
          previous_value: !ruby/sym absent
          desired_value: !ruby/sym file
          historical_value:
          message: created
          name: !ruby/sym file_created
          status: success
          time: 2026-11-20 21:48:31.5 +00:00
      out_of_sync: true
      changed: true
      resource_type: File
      title: /x
      skipped:
      failed:
      containment_path: ["Stage[main]", Main, "File[/x]"]
  host: a3.test
  time: 2026-11-20 21:48:30.123456789 +00:00
  kind: apply
  report_format: 4
  puppet_version: "3.8.7"
  configuration_version: 1795213844
  transaction_uuid: 0b6f
  environment: production
  status: changed
"""


def a_report() -> Report:
    now = iso_time(datetime(2026, 11, 21, 1, 2, 3, 456789, tzinfo=UTC))
    event = Event(
        name="file_created", property="ensure", previous_value="absent", desired_value="file", message="created", status="success", time=now
    )
    changed = ResourceStatus(
        title="/x", resource="File[/x]", resource_type="File", changed=True, out_of_sync=True, change_count=1, out_of_sync_count=1,
        events=[event], tags=["file"], time=now, evaluation_time=0.25, containment_path=["Stage[main]", "File[/x]"], provider_used="posix",
    )  # fmt: skip
    quiet = ResourceStatus(title="q", resource="Notify[q]", resource_type="Notify", time=now)
    restart = ResourceStatus(title="r", resource="Exec[r]", resource_type="Exec", time=now, failed_to_restart=True, restarted=True)
    statuses = {status.resource: status for status in (changed, quiet, restart)}
    return Report(
        name="n1",
        time=now,
        configuration_version="abc",
        status="changed",
        puppet_version="7.23.0",
        environment="production",
        transaction_completed=True,
        logs=[Log(level="notice", message="two\nlines", time=now, tags=["notice"])],
        metrics=metrics_of(statuses.values(), {"total": 1.0}),
        resource_statuses=statuses,
    )


def test_a_38_yaml_report_is_read_as_plain_data() -> None:
    report = Report.from_data(plainyaml.loads(YAML_38))
    status = report.resource_statuses["File[/x]"]
    assert (report.host, report.report_format, report.time) == ("a3.test", 4, "2026-11-20T21:48:30.123456789+00:00")
    assert (status.failed, status.changed, status.tags) == (False, True, ["file", "class"])
    assert (status.events[0].name, status.events[0].previous_value) == ("file_created", "absent")
    assert (report.logs[0].level, report.metrics["resources"].number("failed"), report.exit_bits) == ("notice", 1, 6)


@pytest.mark.parametrize("dialect", [MODERN, LEGACY])
def test_what_is_written_is_read_back(dialect: Any) -> None:
    report = a_report()
    for format in dialect.formats_of(REPORT):
        again = dialect.load(REPORT, dialect.dump(REPORT, report, format), format)
        assert again.logs == report.logs and again.metrics == report.metrics
        assert list(again.resource_statuses) == list(report.resource_statuses)
        assert again.resource_statuses["File[/x]"].events == report.resource_statuses["File[/x]"].events
        assert again.report_format == dialect.report_format


def test_format_4_has_only_what_38_knows() -> None:
    data = a_report().to_data(LEGACY)
    assert set(data) == {
        *("host", "time", "configuration_version", "transaction_uuid", "report_format", "puppet_version", "kind", "status"),
        *("environment", "logs", "metrics", "resource_statuses"),
    }
    assert "provider_used" not in data["resource_statuses"]["File[/x]"]
    assert data["resource_statuses"]["Exec[r]"]["failed"] is True


def test_format_12_leaves_out_keys_that_are_nil_and_counters_of_no_wire() -> None:
    data = a_report().to_data(MODERN)
    assert "job_id" not in data and "kind" not in data and data["noop_pending"] is False
    assert "restarted" not in data["resource_statuses"]["File[/x]"]
    assert data["resource_statuses"]["File[/x]"]["events"][0]["redacted"] is None


@pytest.mark.parametrize("legacy", [False, True])
def test_rubys_yaml_is_read_back_and_carries_the_tags(legacy: bool) -> None:
    report = a_report()
    text = report.to_ruby_yaml(legacy=legacy)
    again = Report.from_data(plainyaml.loads(text))
    assert again.logs == report.logs and again.resource_statuses["File[/x]"].events == report.resource_statuses["File[/x]"].events
    assert text.startswith(b"--- !ruby/object:Puppet::Transaction::Report\n")
    assert (b"level: !ruby/sym notice" in text) is legacy
    assert (b"time: 2026-11-21 01:02:03.456789000 +00:00" in text) is legacy


def test_metrics_count_states_events_and_seconds() -> None:
    metrics = a_report().metrics
    assert metrics["resources"].values[0] == ("total", "Total", 3)
    assert {name: number for name, _, number in metrics["resources"].values if number} == {
        "total": 3,
        "failed_to_restart": 1,
        "restarted": 1,
        "changed": 1,
        "out_of_sync": 1,
    }
    assert metrics["time"].values == [("file", "File", 0.25), ("total", "Total", 1.0)]
    assert metrics["events"].values == [("total", "Total", 1), ("failure", "Failure", 0), ("success", "Success", 1)]
    assert a_report().exit_bits == 6


@pytest.mark.parametrize(
    "when", ["2026-11-20T21:52:30.189967086+00:00", "2026-11-20 21:52:30.189967086 +0000", "2026-11-20 21:52:30.189967086 Z"]
)
def test_times_keep_their_digits_in_every_form(when: str) -> None:
    assert Log(level="notice", message="", time=when).time == "2026-11-20T21:52:30.189967086+00:00"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "Not a report: it names no host"),
        ({"host": 5}, "Not a report: it names no host"),
        ({"host": "n", "resource_statuses": [1]}, "Not a report: resource_statuses is not a map of reasonable size"),
        ({"host": "n", "logs": [{"level": "notice"}]}, "Not a Report: Field required at 'logs.0.message'"),
        ({"host": "n", "metrics": {"time": {"name": "time", "values": [["a", "b", "c"]]}}}, "Not a Report: "),
    ],
)
def test_what_is_no_report_is_refused_by_its_first_wrong_field(data: Any, message: str) -> None:
    with pytest.raises(BadData) as caught:
        Report.from_data(data)
    assert caught.value.message.startswith(message)


def test_a_tag_that_is_not_allowed_is_refused() -> None:
    with pytest.raises(BadData, match="not allowed"):
        plainyaml.loads(b"--- !ruby/object:Gem::Requirement\nhost: x\n")


def test_older_names_are_read() -> None:
    text = plainjson.dumps({"host": "n", "master_used": "m:8140", "status": "unchanged", "report_format": 10, "job_id": None})
    report = Report.from_data(plainjson.loads(text))
    assert (report.server_used, report.job_id, report.metrics) == ("m:8140", None, {})
    assert report.exit_bits == -1

"""
A report: the result of one run, resource by resource.

Formats 4 (3.8) to 12 (7 and 8) are read into the same model, from JSON, PSON or Ruby-tagged YAML (which arrives here as plain
data, see plainyaml). Times are ISO 8601 text, with as many digits as they came with. Source: protocol reference 3.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ..data import plainyaml
from ..data.plainyaml import OldSymbol, RubyObject, YamlTimestamp
from ..errors import BadData
from ..indirector.core import Indirection, Model
from ..wire.dialects import Dialect

LEGACY_FORMAT = 4
FORMAT = 12
MAX_RESOURCES = 1_000_000
LEVELS = ("debug", "info", "notice", "warning", "err", "alert", "emerg", "crit")

_YAML_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d+)?) ?(Z|[+-]\d\d:?\d\d)?")


def iso_time(when: datetime) -> str:
    """Return a time as reports write it: nanoseconds, offset with a colon."""
    text = when.isoformat(timespec="microseconds")
    return f"{text[:26]}000{text[26:] or '+00:00'}"


def _time(value: Any) -> Any:
    """Return the ISO text of a time in any form that a peer may have written."""
    if isinstance(value, datetime):
        return iso_time(value)
    match = _YAML_TIME.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    offset = "+00:00" if match[3] in (None, "Z") else match[3]
    return f"{match[1]}T{match[2]}{offset if ':' in offset else f'{offset[:3]}:{offset[3:]}'}"


def _tags(value: Any) -> Any:
    """Return a list of tags; Ruby's sets arrive as maps."""
    if isinstance(value, Mapping):
        inner = value.get("hash", value)
        return list(inner) if isinstance(inner, Mapping) else value
    return value if value is not None else []


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    @field_validator("time", mode="before", check_fields=False)
    @classmethod
    def _read_time(cls, value: Any) -> Any:
        return _time(value)

    @field_validator("tags", mode="before", check_fields=False)
    @classmethod
    def _read_tags(cls, value: Any) -> Any:
        return _tags(value)


class Log(_Part):
    """One log line of the run."""

    level: str
    message: str
    source: str = "Puppet"
    tags: list[str] = Field(default_factory=list)
    time: str = ""
    file: str | None = None
    line: int | None = None


class Metric(_Part):
    """Numbers of one kind, each a triple of name, label and number."""

    name: str
    label: str = ""
    values: list[tuple[str, str, float | int]] = Field(default_factory=list)

    @classmethod
    def of(cls, name: str, numbers: Mapping[str, float | int]) -> Self:
        return cls(name=name, label=label(name), values=[(key, label(key), number) for key, number in numbers.items()])

    def number(self, name: str) -> float | int:
        """Return one of the numbers; 0 when there is no such."""
        return next((number for key, _, number in self.values if key == name), 0)


class Event(_Part):
    """Something that happened to a resource, or would have (noop); `property` is None for the resource as a whole."""

    audited: bool = False
    property: str | None = None
    previous_value: Any = None
    desired_value: Any = None
    historical_value: Any = None
    message: str | None = None
    name: str | None = None
    status: str | None = None
    time: str = ""
    redacted: bool | None = None
    corrective_change: bool | None = False


class ResourceStatus(_Part):
    """The result of one resource; `evaluation_time` in seconds."""

    title: str
    file: str | None = None
    line: int | None = None
    resource: str
    resource_type: str
    provider_used: str | None = None
    containment_path: list[str] = Field(default_factory=list)
    evaluation_time: float | None = None
    tags: list[str] = Field(default_factory=list)
    time: str = ""
    failed: bool = False
    failed_to_restart: bool = False
    restarted: bool = Field(False, exclude=True)  # counted in the metrics, not on the wire
    scheduled: bool = Field(False, exclude=True)
    changed: bool = False
    out_of_sync: bool = False
    skipped: bool = False
    change_count: int = 0
    out_of_sync_count: int = 0
    events: list[Event] = Field(default_factory=list)
    corrective_change: bool = False

    @field_validator("failed", "failed_to_restart", "changed", "out_of_sync", "skipped", "corrective_change", mode="before")
    @classmethod
    def _nil_is_false(cls, value: Any) -> Any:
        return False if value is None else value  # 3.8 leaves flags that were never set nil

    @property
    def unchanged(self) -> bool:
        """Return whether `exclude_unchanged_resources` leaves this status out."""
        return not (self.failed or self.failed_to_restart or self.out_of_sync or self.skipped)


class Report(Model):
    """The report of one run; `name` is the node's certname, `host` on the wire."""

    time: str = ""
    configuration_version: int | str | None = None
    transaction_uuid: str | None = None
    report_format: int = FORMAT
    puppet_version: str = ""
    kind: str = "apply"  # or `inspect`; known to formats below 12
    status: str = "failed"
    transaction_completed: bool = False
    noop: bool | None = False
    noop_pending: bool | None = False
    environment: str | None = None
    logs: list[Log] = Field(default_factory=list)
    metrics: dict[str, Metric] = Field(default_factory=dict)
    resource_statuses: dict[str, ResourceStatus] = Field(default_factory=dict)
    corrective_change: bool | None = False
    server_used: str | None = None
    catalog_uuid: str | None = None
    code_id: str | None = None
    job_id: str | None = None
    cached_catalog_status: str | None = None

    @field_validator("time", mode="before")
    @classmethod
    def _read_time(cls, value: Any) -> Any:
        return _time(value)

    @property
    def host(self) -> str:
        return self.name

    # --- reading

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """Return a report of any format, 4 to 12, from plain data; BadData names the first field that is wrong."""
        if not isinstance(data, dict) or not isinstance(data.get("host"), str):
            raise BadData("Not a report: it names no host")
        statuses = data.get("resource_statuses") or {}
        if not isinstance(statuses, dict) or len(statuses) > MAX_RESOURCES:
            raise BadData("Not a report: resource_statuses is not a map of reasonable size")
        known = {key: value for key, value in data.items() if value is not None and key not in ("host", "name", "expiration")}
        known |= {"name": data["host"], "resource_statuses": {ref: status for ref, status in statuses.items() if status}}
        for name, part in (("logs", Log), ("metrics", Metric), ("resource_statuses", ResourceStatus)):
            if name in known:
                known[name] = cls._parts(part, known[name], name)
        if "server_used" not in known and "master_used" in known:
            known["server_used"] = known["master_used"]
        return super().from_data(known)

    @classmethod
    def _parts(cls, part: type[_Part], values: Any, *place: str | int) -> Any:
        """Return the parts of a list or map, each made in a step of its own: a report is long, and pydantic holds all threads in a step."""
        if isinstance(values, list):
            return [cls._part(part, value, *place, index) for index, value in enumerate(values)]
        return {key: cls._part(part, value, *place, key) for key, value in values.items()} if isinstance(values, dict) else values

    @classmethod
    def _part(cls, part: type[_Part], value: Any, *place: str | int) -> _Part:
        if part is ResourceStatus and isinstance(value, dict) and value.get("events"):
            value = value | {"events": cls._parts(Event, value["events"], *place, "events")}
        try:
            return part.model_validate(value)
        except ValidationError as err:
            raise cls.fault(err, *place) from err

    # --- writing

    def to_data(self, dialect: Dialect) -> Any:
        """Return plain data of the format that the dialect's peers read."""
        return self.legacy_data() if dialect.report_format == LEGACY_FORMAT else self.modern_data()

    def modern_data(self) -> dict[str, Any]:
        """Return the form of formats 5 to 12; a report in one of these formats has its own number, as servers store it."""
        data: dict[str, Any] = {
            "host": self.name,
            "time": self.time,
            "configuration_version": self.configuration_version,
            "transaction_uuid": self.transaction_uuid,
            "report_format": FORMAT if self.report_format <= LEGACY_FORMAT else self.report_format,
            "puppet_version": self.puppet_version,
            "status": self.status,
            "transaction_completed": self.transaction_completed,
            "noop": self.noop,
            "noop_pending": self.noop_pending,
            "environment": self.environment,
            "logs": [log.model_dump() for log in self.logs],
            "metrics": {name: _metric(metric) for name, metric in self.metrics.items()},
            "resource_statuses": {ref: status.model_dump() for ref, status in self.resource_statuses.items()},
            "corrective_change": self.corrective_change,
        }
        optional = ("server_used", "catalog_uuid", "code_id", "job_id", "cached_catalog_status")
        return data | {name: getattr(self, name) for name in optional if getattr(self, name) is not None}

    def legacy_data(self) -> dict[str, Any]:
        """Return the form of format 4, of 3.8."""
        return {
            "host": self.name,
            "time": self.time,
            "configuration_version": self.configuration_version,
            "transaction_uuid": self.transaction_uuid,
            "report_format": LEGACY_FORMAT,
            "puppet_version": self.puppet_version,
            "kind": self.kind,
            "status": self.status,
            "environment": self.environment,
            "logs": [log.model_dump() for log in self.logs],
            "metrics": {name: _metric(metric) for name, metric in self.metrics.items() if name in _LEGACY_METRICS},
            "resource_statuses": {ref: _legacy_status(status) for ref, status in self.resource_statuses.items()},
        }

    def to_ruby_yaml(self, *, legacy: bool = False) -> bytes:
        """
        Return the document that report readers of third parties expect, with Ruby's tags.

        Format 12 tags only the document, as psych writes a report; format 4 tags every part and writes symbols, as 3.8 does.
        """
        if not legacy:
            return plainyaml.dumps(RubyObject("Puppet::Transaction::Report", self.modern_data()))
        return plainyaml.dumps(_tagged_legacy(self.legacy_data()))

    def to_summary(self, *, last_run: int, run_mode: str = "agent", initial_environment: str | None = None) -> dict[str, Any]:
        """Return the sections of last_run_summary.yaml; `last_run` in seconds since the epoch."""
        summary: dict[str, Any] = {
            "version": {"config": self.configuration_version, "puppet": self.puppet_version},
            "application": {
                "run_mode": run_mode,
                "initial_environment": initial_environment or self.environment,
                "converged_environment": self.environment,
            },
        }
        for name, metric in self.metrics.items():
            summary[name] = {key: number for key, _, number in metric.values}
            if name != "time":
                summary[name].setdefault("total", 0)
        summary.setdefault("time", {})["last_run"] = last_run
        return summary

    @property
    def exit_bits(self) -> int:
        """Return the bits of `--detailed-exitcodes`: 2 for changes, 4 for failures; -1 when the run produced no metrics."""
        if "resources" not in self.metrics or "changes" not in self.metrics:
            return -1
        resources = self.metrics["resources"]
        failed = resources.number("failed") > 0 or resources.number("failed_to_restart") > 0
        return (2 if self.metrics["changes"].number("total") > 0 else 0) | (4 if failed else 0)


def label(name: str) -> str:
    """Return a name such as `failed_to_restart` in words for people."""
    return name.replace("_", " ").capitalize()


_LEGACY_METRICS = ("resources", "time", "changes", "events")
_LEGACY_STATUS = (
    *("title", "file", "line", "resource", "resource_type", "containment_path", "evaluation_time", "tags", "time"),
    *("failed", "changed", "out_of_sync", "skipped", "change_count", "out_of_sync_count"),
)
_LEGACY_EVENT = ("audited", "property", "previous_value", "desired_value", "historical_value", "message", "name", "status", "time")


def _metric(metric: Metric) -> dict[str, Any]:
    return {"name": metric.name, "label": metric.label, "values": [list(value) for value in metric.values]}


def _legacy_status(status: ResourceStatus) -> dict[str, Any]:
    data = {name: getattr(status, name) for name in _LEGACY_STATUS}
    # In 3.8 a failed restart also counts as failed.
    data["failed"] = status.failed or status.failed_to_restart
    return data | {"events": [{name: getattr(event, name) for name in _LEGACY_EVENT} for event in status.events]}


def _tagged_legacy(data: dict[str, Any]) -> RubyObject:
    def timed(part: dict[str, Any]) -> dict[str, Any]:
        return part | {"time": timestamp(part["time"])}

    logs = [RubyObject("Puppet::Util::Log", timed(log) | {"level": OldSymbol(log["level"])}) for log in data["logs"]]
    statuses: dict[str, RubyObject] = {}
    for ref, status in data["resource_statuses"].items():
        events = [
            RubyObject("Puppet::Transaction::Event", timed(event) | {"name": OldSymbol(event["name"]) if event["name"] else None})
            for event in status["events"]
        ]
        statuses[ref] = RubyObject("Puppet::Resource::Status", timed(status) | {"events": events})
    metrics = {name: RubyObject("Puppet::Util::Metric", metric) for name, metric in data["metrics"].items()}
    return RubyObject("Puppet::Transaction::Report", timed(data) | {"logs": logs, "metrics": metrics, "resource_statuses": statuses})


def timestamp(time: str) -> YamlTimestamp | None:
    """Return a time as the text that Ruby writes in YAML; None for ''."""
    return YamlTimestamp(f"{time[:10]} {time[11:-6]} {time[-6:]}") if time else None


STATES = ("skipped", "failed", "failed_to_restart", "restarted", "changed", "out_of_sync", "scheduled", "corrective_change")


def metrics_of(statuses: Iterable[ResourceStatus], times: Mapping[str, float]) -> dict[str, Metric]:
    """Return the four metrics of a finished run; `times`: seconds by phase, in the order to show."""
    all_statuses = list(statuses)
    resources: dict[str, int] = {"total": len(all_statuses)} | {
        state: sum(1 for s in all_statuses if getattr(s, state)) for state in STATES
    }
    seconds: dict[str, float] = {}
    events: dict[str, int] = {"total": 0, "failure": 0, "success": 0}
    for status in all_statuses:
        if status.evaluation_time is not None:
            kind = status.resource_type.lower()
            seconds[kind] = seconds.get(kind, 0.0) + status.evaluation_time
        for event in status.events:
            events["total"] += 1
            events[event.status or ""] = events.get(event.status or "", 0) + 1
    return {
        "resources": Metric.of("resources", resources),
        "time": Metric.of("time", seconds | dict(times)),
        "changes": Metric.of("changes", {"total": sum(s.change_count for s in all_statuses)}),
        "events": Metric.of("events", events),
    }


REPORT = Indirection(
    name="report",
    model=Report,
    formats=("json", "pson", "yaml"),
    document_type="",
    ruby_class="Puppet::Transaction::Report",
    limit="max_report_body",
    doc="The result of one run of an agent.",
)

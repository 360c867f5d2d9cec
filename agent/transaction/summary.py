"""The report of a run, made from its log and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.models.report import FORMAT, Report, ResourceStatus, iso_time, label, metrics_of

from ..state.runlog import RunLog
from .run import ApplyResult


@dataclass(frozen=True, slots=True)
class ReportHeader:
    """The fields of a report about the run as a whole; `started` is in UTC, `version` is Puppet's, not ours."""

    host: str
    started: datetime
    environment: str
    version: str
    transaction_uuid: str | None = None
    configuration_version: int | str | None = None
    catalog_uuid: str | None = None
    code_id: str | None = None
    job_id: str | None = None
    server_used: str | None = None
    cached_catalog_status: str | None = None
    noop: bool = False
    report_format: int = FORMAT
    all_resources: bool = True  # False: without unchanged resources


def report_of(run: ReportHeader, log: RunLog, applied: ApplyResult | None, times: dict[str, float] | None = None) -> Report:
    """
    Return the finished report.

    Args:
        applied: The result of the transaction; None: there was none, which makes the run failed.
        times: Seconds by phase before and after the transaction (`config_retrieval`, `plugin_sync`, …, `total` last).
    """
    statuses: dict[str, ResourceStatus] = applied.statuses if applied else {}
    phases = (times or {}) | (applied.times if applied else {})
    if "total" in phases:
        phases["total"] = phases.pop("total")
    metrics = metrics_of(statuses.values(), phases)
    return Report(
        name=run.host,
        time=iso_time(run.started),
        configuration_version=run.configuration_version,
        transaction_uuid=run.transaction_uuid,
        report_format=run.report_format,
        puppet_version=run.version,
        status=_status(applied, statuses),
        transaction_completed=bool(applied and applied.completed),
        noop=run.noop,
        noop_pending=any(event.status == "noop" for status in statuses.values() for event in status.events),
        environment=run.environment,
        logs=log.for_report(),
        metrics=metrics,
        resource_statuses=statuses
        if run.all_resources
        else {ref: status_of_ref for ref, status_of_ref in statuses.items() if not status_of_ref.unchanged},
        corrective_change=any(status.corrective_change for status in statuses.values()),
        server_used=run.server_used,
        catalog_uuid=run.catalog_uuid,
        code_id=run.code_id,
        job_id=run.job_id,
        cached_catalog_status=run.cached_catalog_status,
    )


def _status(applied: ApplyResult | None, statuses: dict[str, ResourceStatus]) -> str:
    if applied is None or not applied.completed or applied.generation_failed:
        return "failed"
    if any(status.failed or status.failed_to_restart for status in statuses.values()):
        return "failed"
    return "changed" if any(status.change_count for status in statuses.values()) else "unchanged"


def summary_text(summary: Mapping[str, Mapping[str, Any]]) -> str:
    """
    Return the sections of last_run_summary.yaml as a table, for `--summarize`.

    The lines of a section are sorted by value, as text, with the total last, as Puppet prints them.
    """
    lines = []
    for section in sorted(summary):
        lines.append(f"{label(section)}:")
        for name, value in sorted(summary[section].items(), key=lambda item: (item[0] == "total", str(item[1]))):
            if value != 0:
                value_text = f"{value:.2f}" if isinstance(value, float) else value
                lines.append(f"   {label(name) + ':':>15} {value_text}")
    return "\n".join(lines)

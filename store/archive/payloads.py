"""Rows of the query API as payloads of the commands that store them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TypeAlias

from ..commands.commands import ReplaceCatalog, StoreReport
from ..jsontext import Json

Row: TypeAlias = Mapping[str, Json]
Payload: TypeAlias = dict[str, Json]

_REPORT_FIELDS = tuple(field.name for field in fields(StoreReport) if field.name not in ("events", "logs", "metrics"))
_CATALOG_FIELDS = tuple(field.name for field in fields(ReplaceCatalog) if field.name not in ("resources", "edges", "hash", "size"))
_RESOURCE_FIELDS = ("type", "title", "exported", "tags", "parameters", "file", "line")
_EVENT_FIELDS = ("status", "timestamp", "property", "name", "new_value", "old_value", "message", "corrective_change")


def facts_payload(factset: Row, packages: Iterable[Row]) -> Payload:
    """Return the facts of a node as `replace facts` in version 5, from a row of factsets and the node's rows of package_inventory."""
    payload: Payload = {name: factset[name] for name in ("certname", "environment", "producer_timestamp", "producer")}
    payload["values"] = {str(fact["name"]): fact["value"] for fact in _data_of(factset["facts"])}
    inventory: list[Json] = [[package["package_name"], package["version"], package["provider"]] for package in packages]
    if inventory:
        payload["package_inventory"] = inventory
    return payload


def catalog_payload(catalog: Row) -> Payload:
    """Return a row of catalogs as `replace catalog` in version 9."""
    payload: Payload = {name: catalog[name] for name in _CATALOG_FIELDS}
    payload["resources"] = [
        {name: resource[name] for name in _RESOURCE_FIELDS if resource.get(name) is not None} for resource in _data_of(catalog["resources"])
    ]
    payload["edges"] = [
        {
            "source": {"type": edge["source_type"], "title": edge["source_title"]},
            "target": {"type": edge["target_type"], "title": edge["target_title"]},
            "relationship": edge["relationship"],
        }
        for edge in _data_of(catalog["edges"])
    ]
    return payload


def inputs_payload(inputs: Row) -> Payload:
    """Return a row of catalog_inputs as `replace catalog inputs` in version 1."""
    return {name: inputs[name] for name in ("certname", "producer_timestamp", "catalog_uuid", "inputs")}


def report_payload(report: Row) -> Payload:
    """Return a row of reports as `store report` in version 8."""
    payload: Payload = {name: report.get(name) for name in _REPORT_FIELDS}
    payload["type"] = payload["type"] or "agent"
    for name in ("logs", "metrics"):
        part = report[name]
        payload[name] = part.get("data") if isinstance(part, Mapping) else None
    payload["resources"] = _resources(_data_of(report["resource_events"]))
    return payload


def _resources(events: Iterable[Row]) -> list[Json]:
    """Return the resources of a report, each with its events; the rows of skipped ones become resources without events."""
    resources: dict[tuple[Json, Json], dict[str, Json]] = {}
    for event in events:
        key = (event["resource_type"], event["resource_title"])
        resource = resources.setdefault(
            key,
            {
                "resource_type": event["resource_type"],
                "resource_title": event["resource_title"],
                "timestamp": event["timestamp"],
                "file": event["file"],
                "line": event["line"],
                "containment_path": event["containment_path"] or [],
                "corrective_change": event["corrective_change"],
                "skipped": False,
                "events": [],
            },
        )
        listed = resource["events"]
        assert isinstance(listed, list)
        if event["status"] == "skipped":
            resource["skipped"] = True
        else:
            listed.append({name: event[name] for name in _EVENT_FIELDS})
    return list(resources.values())


def expiration_payload(node: Row) -> Payload | None:
    """Return the expiration of a node's row as `configure expiration` in version 1; None if the row has none."""
    updated = node.get("expires_facts_updated")
    if updated is None:
        return None
    return {"certname": node["certname"], "producer_timestamp": updated, "expire": {"facts": node["expires_facts"]}}


def deactivation_payload(node: Row) -> Payload | None:
    """Return the deactivation of a row of nodes as `deactivate node` in version 3; None for a node that is not deactivated."""
    deactivated = node["deactivated"]
    return None if deactivated is None else {"certname": node["certname"], "producer_timestamp": deactivated}


def _data_of(part: Json) -> Sequence[dict[str, Json]]:
    """Return the rows of a part that is shown as `{"href", "data"}`; none where it has no data."""
    data = part.get("data") if isinstance(part, dict) else None
    return [row for row in data if isinstance(row, dict)] if isinstance(data, list) else []

"""What a report says about a rollout: its changes, held against those that the preview foresaw for the node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from shared.models.report import Report, ResourceStatus
from shared.types import builtin_types

from .machine import RunReported

_WHOLE: Final = ""
"""Stands for all of a resource: it appears, disappears, or differs each time."""
_MAX_TEXT: Final = 500
_MAX_CHANGES: Final = 200  # of a report; more make no difference


def prediction_of(version: str, preview: Mapping[str, Any]) -> dict[str, Any]:
    """Return the prediction for a version as plain data, from the result of a preview (docs/preview.md)."""
    resources: dict[str, dict[str, list[str]]] = {}
    entries = [*(change for change in preview["changes"] if change["kind"] in ("resource", "parameter")), *preview["unstable"]]
    for entry in entries:
        attribute = entry["parameter"] or _WHOLE
        resources.setdefault(entry["subject"], {}).setdefault(attribute, []).extend(entry["nodes"])
    return {"version": version, "nodes": sorted(preview["nodes"]), "resources": resources}


@dataclass(frozen=True, slots=True)
class Prediction:
    """
    The changes that a preview foresaw.

    Attributes:
        nodes: The nodes of the preview; about others nothing is known.
        resources: By resource and attribute ('': all of it) the nodes on which it changes.
    """

    nodes: frozenset[str]
    resources: Mapping[str, Mapping[str, frozenset[str]]]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Prediction:
        """Return the prediction in plain data, see `prediction_of`."""
        resources = {ref: {name: frozenset(nodes) for name, nodes in by_name.items()} for ref, by_name in data["resources"].items()}
        return cls(frozenset(data["nodes"]), resources)

    def attributes(self, node: str, ref: str) -> list[str]:
        """Return the attributes of a resource that change on a node."""
        return [name for name, nodes in self.resources.get(ref, {}).items() if node in nodes]

    def foresees(self, node: str, ref: str, attribute: str | None) -> bool:
        """
        Return whether a change of a resource's attribute was foreseen on a node.

        A changed parameter that is no property, such as the source of a file or the command of an exec, explains all of its resource's
        changes, and so does one of a type that is not known here.
        """
        properties = _properties(ref.partition("[")[0].lower())
        return any(name == attribute or name not in properties for name in self.attributes(node, ref))


@cache
def _properties(type_name: str) -> frozenset[str]:
    """Return the names of a type's properties; none of a type that is not known."""
    types = builtin_types()
    return frozenset(each.name for each in types[type_name].declaration.properties) if type_name in types else frozenset()


def run_reported(report: Report, version: str, prediction: Prediction | None) -> RunReported:
    """Return what a report of a run with this version means; without a prediction no change is unforeseen. Takes a while: use a thread."""
    node = report.host
    changes: list[str] = []
    unforeseen: list[str] = []
    has_noop = False
    for status, attribute, kind in _changes(report):
        has_noop = has_noop or kind == "noop"
        text = change_text(status.resource, attribute)
        changes.append(text)
        if prediction is not None and node in prediction.nodes and not _is_foreseen(prediction, node, status, attribute):
            unforeseen.append(text)
    failed = report.status == "failed"
    return RunReported(
        node,
        version,
        failed=failed,
        changed=report.status == "changed" or bool(changes),
        noop=has_noop and not report.noop,
        message=_failure(report)[:_MAX_TEXT] if failed else "",
        changes=tuple(dict.fromkeys(changes))[:_MAX_CHANGES],
        unforeseen=tuple(dict.fromkeys(unforeseen))[:_MAX_CHANGES],
    )


def change_text(ref: str, attribute: str | None) -> str:
    """Return the text for a change of a resource."""
    return f"{ref} {attribute or ''}".rstrip()[:_MAX_TEXT]


def _changes(report: Report) -> Iterator[tuple[ResourceStatus, str | None, str]]:
    """Yield the changes that repair nothing: the resource, its property, and the event's status."""
    for status in report.resource_statuses.values():
        for event in status.events:
            if event.status in ("success", "noop") and not event.corrective_change and not event.audited:
                yield status, event.property, event.status


def _is_foreseen(prediction: Prediction, node: str, status: ResourceStatus, attribute: str | None) -> bool:
    if prediction.foresees(node, status.resource, attribute):
        return True
    # What a recursive file contains is in the report, but not in the catalog.
    kind = status.resource.partition("[")[0] + "["
    parents = (ref for ref in status.containment_path[:-1] if ref.startswith(kind))
    return any(prediction.attributes(node, ref) for ref in parents)


def _failure(report: Report) -> str:
    """Return the first failure in a report: of a resource, else an error in its log."""
    for status in report.resource_statuses.values():
        if status.failed or status.failed_to_restart:
            message = next((event.message for event in status.events if event.status == "failure" and event.message), "")
            return f"{status.resource}: {message}" if message else f"{status.resource} failed"
    return next((log.message for log in report.logs if log.level in ("err", "alert", "emerg", "crit")), "")

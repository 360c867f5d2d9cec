"""Results of previews as data (docs/preview.md), made up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

NOTHING: dict[str, Any] = {
    "container": None, "old": None, "new": None, "diff": None, "lines": 0, "secret": False, "parameters": None, "varies": False,
    "truncated": False, "places": {"old": None, "new": None},
}  # fmt: skip


def change(subject: str, nodes: Sequence[str], *, kind: str = "parameter", action: str = "changed", **more: Any) -> dict[str, Any]:
    """Return a change; what is not said of it is nothing."""
    return {"kind": kind, "action": action, "subject": subject, "parameter": None, **NOTHING, **more, "nodes": sorted(nodes)}


def message(text: str, nodes: Sequence[str], **more: Any) -> dict[str, Any]:
    """Return an error or warning of one side."""
    return {"message": text, "file": None, "line": None, "hint": "", "state": "new", **more, "nodes": sorted(nodes)}


def result(states: Mapping[str, str], changes: Sequence[Mapping[str, Any]] = (), **more: Any) -> dict[str, Any]:
    """Return the result of a preview of a branch; `states` are those of the nodes."""
    counted = Counter(states.values())
    counts = {state: counted[state] for state in ("unaffected", "unchanged", "changed", "failed", "fixed")}
    compiled = len(states) - counts["unaffected"]
    return {
        "format": 1,
        "from": {"name": "main", "root": "/srv/main", "revision": "a" * 40, "subject": "Serve time from pool.ntp.org"},
        "to": {"name": "my-branch", "root": "/srv/my-branch", "revision": "b" * 40, "subject": "Use our own time servers"},
        "environment": "production",
        "counts": {"nodes": len(states), **counts, "compiled": compiled, "compilations": 2 * compiled},
        "nodes": dict(states),
        "changes": list(changes),
        "errors": [],
        "warnings": [],
        "unstable": [],
        "time": "2026-11-28T02:10:00+00:00",
        "seconds": 12.3,
        **more,
    }

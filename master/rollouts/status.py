"""The status of a rollout as data, for `--json`, the endpoint, the page, and the programs of a site."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final

from .machine import (
    BAD,
    COMPLETING,
    NODE_STATES,
    PAUSED,
    PROGRESSING,
    STOPPED,
    Rollout,
    due,
)

FORMAT: Final = 1
"""Raised when a member is renamed or removed."""


def status_of(rollout: Rollout) -> dict[str, Any]:
    """Return the status of a rollout: its waves with the number of nodes in each state, its problems, and what happens next."""
    plan = rollout.plan
    counts: list[Counter[str]] = [Counter() for _ in plan.waves]
    for node in rollout.nodes.values():
        counts[node.wave][node.status] += 1
    opened = sum(1 for _ in rollout.open_nodes())
    return {
        "format": FORMAT,
        "environment": plan.environment,
        "status": rollout.status,
        "reason": rollout.reason,
        "ref": plan.ref,
        "before": plan.before,
        "after": plan.after,
        "began": _time(rollout.began),
        "at": _time(rollout.at),
        "noop": rollout.is_active and rollout.current.noop,
        "on_failure": "rollback" if plan.rolls_back else "stop",
        "nodes": len(rollout.nodes),
        "bad": rollout.bad,
        "allowed": plan.max_failed.of(opened),
        "waves": [
            {
                "name": wave.name,
                "query": wave.query or None,
                "percent": wave.percent,
                "state": _state(rollout, number),
                "nodes": counts[number].total(),
                **{state: counts[number][state] for state in NODE_STATES},
            }
            for number, wave in enumerate(plan.waves)
        ],
        "problems": _problems(rollout),
        "next": _next(rollout),
        "log": [{"time": _time(at), "text": text} for at, text in rollout.log],
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _state(rollout: Rollout, wave: int) -> str:
    current = rollout.current.wave
    if wave > current:
        return "closed"
    return "done" if wave < current or rollout.status in (COMPLETING, "completed") else "open"


def _problems(rollout: Rollout) -> list[dict[str, Any]]:
    """Return the problems of bad nodes, each once with its nodes; those of most nodes first."""
    nodes: dict[tuple[str, str, bool], list[str]] = {}
    for name, node in sorted(rollout.nodes.items()):
        for problem in node.problems if node.status in BAD else ():
            # The same error on two nodes often differs in the node's name only.
            nodes.setdefault((node.status, problem.replace(name, "NODE"), node.accepted), []).append(name)
    ordered = sorted(nodes.items(), key=lambda item: (item[0][2], -len(item[1]), item[0]))
    return [{"state": state, "message": text, "accepted": accepted, "nodes": names} for (state, text, accepted), names in ordered]


def _next(rollout: Rollout) -> dict[str, Any]:
    """Return what happens next: the action, seconds until it can happen at the earliest, and the nodes that it waits for."""
    steps = rollout.plan.steps
    if rollout.status == PROGRESSING:
        is_last = rollout.step + 1 == len(steps)
        following = None if is_last else rollout.plan.waves[steps[rollout.step + 1].wave].name
        action = "check" if due(rollout).check else "complete" if is_last else "open"
        return {"action": action, "wave": following, "seconds": round(rollout.remaining), "pending": rollout.pending}
    action = {PAUSED: "resume", STOPPED: "resume or abort", COMPLETING: "switch"}.get(rollout.status, "")
    return {"action": action, "wave": None, "seconds": 0, "pending": rollout.pending if rollout.is_active else 0}

"""A preview's result for people: on a terminal, and as Markdown for a merge request. Both take the result as data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shared.process.log import escape_controls

NAMES = 6
"""Nodes that a line names; of more only the first and the last."""
CHANGES_IN_MARKDOWN = 100
"""Changes in Markdown: merge requests do not take longer texts."""
_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
_COLORS = {"+": "\x1b[32m", "-": "\x1b[31m", "~": "\x1b[36m", "!": "\x1b[1;31m"}
_PLAIN = "\x1b[0m"


def text_lines(result: Mapping[str, Any], *, colored: bool = False) -> Iterator[str]:
    """Yield the lines of a result for a terminal."""

    def paint(line: str) -> str:
        sign = line.lstrip()[:1]
        return f"{_COLORS[sign]}{line}{_PLAIN}" if colored and sign in _COLORS else line

    for error in result["errors"]:
        yield paint(f"! {_heading_of(error, 'error')}: {_message_text(error)} ({_nodes_text(error['nodes'])})")
    for warning in result["warnings"]:
        if warning["state"] != "old":
            yield paint(f"! {_heading_of(warning, 'warning')}: {_message_text(warning)} ({_nodes_text(warning['nodes'])})")
    for change in result["changes"]:
        yield paint(f"{_SIGNS[change['action']]} {_change_text(change)} ({_nodes_text(change['nodes'])})")
        for line in _details(change):
            yield paint(f"    {line}")
    for value in result["unstable"]:
        yield f"? {_subject_text(value)} differs each time: {value['reason']} ({_nodes_text(value['nodes'])})"
    yield summary(result)


def markdown(result: Mapping[str, Any]) -> str:
    """Return a result in Markdown."""
    lines = [f"### Catalogs: `{_code(result['from']['name'])}` → `{_code(result['to']['name'])}`", "", summary(result), ""]
    for kind in ("errors", "warnings"):
        for message in result[kind]:
            if kind == "errors" or message["state"] != "old":
                nodes = _nodes_text(message["nodes"])
                lines.append(f"- **{_heading_of(message, kind[:-1])}**: `{_code(_message_text(message))}` ({nodes})")
    if lines[-1]:
        lines.append("")
    changes = result["changes"]
    for change in changes[:CHANGES_IN_MARKDOWN]:
        details = list(_details(change))
        title = f"`{_SIGNS[change['action']]} {_code(_change_text(change))}` ({_nodes_text(change['nodes'])})"
        if not details:
            lines += [f"- {title}", ""]
            continue
        fence = "`" * max(3, 1 + max(_longest_run(line) for line in details))
        opened = title.replace("&", "&amp;").replace("<", "&lt;").replace("`", "")
        lines += [f"<details><summary>{opened}</summary>", "", f"{fence}diff", *details, fence, "", "</details>", ""]
    if len(changes) > CHANGES_IN_MARKDOWN:
        lines += [f"… and {len(changes) - CHANGES_IN_MARKDOWN} more changes", ""]
    lines += [f"- `{_code(_subject_text(value))}` differs each time: {value['reason']}" for value in result["unstable"]]
    return "\n".join(lines).rstrip("\n") + "\n"


def summary(result: Mapping[str, Any]) -> str:
    """Return the sentence about all nodes."""
    counts = result["counts"]
    states = [f"{counts[state]:,} {state}" for state in ("changed", "unchanged", "failed", "fixed") if counts[state]]
    compiled = f"{_counted(counts['compiled'], 'node')} compiled on both sides"
    detail = f": {', '.join(states)}" if states else ""
    number = counts["unaffected"]
    changes = _counted(len(result["changes"]), "change")
    elsewhere = len(result.get("elsewhere", ()))
    left_out = f" {_counted(elsewhere, 'node')} {'is' if elsewhere == 1 else 'are'} left out, in another environment." if elsewhere else ""
    return f"{compiled}{detail}. {number:,} skipped (not affected), {changes}.{left_out}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _heading_of(message: Mapping[str, Any], noun: str) -> str:
    return {"new": f"new {noun}", "old": f"{noun} as before", "fixed": f"{noun} no longer there"}[message["state"]]


def _message_text(message: Mapping[str, Any]) -> str:
    place = ":".join(str(part) for part in (message["file"], message["line"]) if part is not None)
    return escape_controls(f"{message['message']} at {place}" if place else message["message"])


def _nodes_text(nodes: Sequence[str]) -> str:
    names = nodes if len(nodes) <= NAMES else [nodes[0], "…", nodes[-1]]
    return f"{_counted(len(nodes), 'node')}: {', '.join(names).replace(', …, ', ' … ')}"


def _subject_text(value: Mapping[str, Any]) -> str:
    return escape_controls(value["subject"] if value["parameter"] is None else f"{value['subject']} {value['parameter']}")


def _change_text(change: Mapping[str, Any]) -> str:
    kind, subject = change["kind"], escape_controls(change["subject"])
    if kind == "class":
        return f"class {subject}"
    if kind == "containment":
        return f"{escape_controls(change['container'])} contains {subject}"
    if kind == "order":
        return f"{escape_controls(change['container'])} {'notifies' if change['parameter'] == 'notify' else 'comes before'} {subject}"
    if kind == "resource":
        return f"{subject}{_place_text(change)}{', with other parameters on some nodes' if change['varies'] else ''}"
    text = f"{subject} {escape_controls(change['parameter'])}"
    if change["secret"]:
        return f"{text}: a sensitive value"
    return f"{text}: {_counted(change['lines'], 'line')}" if change["lines"] else text


def _place_text(change: Mapping[str, Any]) -> str:
    place = change["places"]["new"] or change["places"]["old"]
    return f" at {escape_controls(place)}" if place else ""


def _details(change: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines below a change: its diff, its values or its parameters."""
    if change["diff"] is not None:
        yield from (escape_controls(line) for line in change["diff"])
        if change["truncated"]:
            yield "…"
    elif change["kind"] == "parameter" and not change["secret"]:
        for sign, value in (("-", change["old"]), ("+", change["new"])):
            if value is not None:
                yield f"{sign} {_value_text(value)}"
    elif change["parameters"]:
        sign = _SIGNS[change["action"]]
        yield from (f"{sign} {escape_controls(name)} => {_value_text(value)}" for name, value in change["parameters"].items())


def _value_text(value: Any) -> str:
    return escape_controls(json.dumps(value, ensure_ascii=False))


def _code(text: str) -> str:
    """Return a text that can be between backquotes."""
    return text.replace("`", "'").replace("\n", " ")


def _longest_run(line: str) -> int:
    """Return the length of the longest run of backquotes."""
    longest = run = 0
    for character in line:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest

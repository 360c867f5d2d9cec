"""The status of a rollout for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from shared.process.log import escape_controls

STATES: Final = ("waiting", "running", "good", "changed", "failed", "silent", "unforeseen")
_COLORS: Final = {"failed": "\x1b[31m", "silent": "\x1b[31m", "unforeseen": "\x1b[33m", "!": "\x1b[1;31m"}
_PLAIN: Final = "\x1b[0m"
_NAMES: Final = 6


def status_lines(status: Mapping[str, Any], *, colored: bool = False, width: int | None = None) -> Iterator[str]:
    """Yield the lines of a status, cut to `width` characters."""
    yield headline(status)[:width]
    yield f"from {status['before']} to {status['after']}, since {_local(status['began'])}"[:width]
    yield ""
    yield from _table(status["waves"], colored=colored)
    if status["problems"]:
        yield ""
    for problem in status["problems"]:
        note = ", accepted" if problem["accepted"] else ""
        line = f"! {problem['state']}{note}: {escape_controls(problem['message'])} ({_nodes(problem['nodes'])})"[:width]
        yield f"{_COLORS['!']}{line}{_PLAIN}" if colored and not problem["accepted"] else line
    if following := next_text(status):
        yield ""
        yield f"Next: {following}"[:width]


def headline(status: Mapping[str, Any]) -> str:
    """Return the sentence about a rollout."""
    waves = status["waves"]
    number = sum(wave["state"] != "closed" for wave in waves)
    place = f", wave {waves[number - 1]['name']} ({number} of {len(waves)}{', noop' if status['noop'] else ''})"
    reason = f": {escape_controls(status['reason'])}" if status["reason"] else ""
    is_open = status["status"] in ("progressing", "paused")
    version = status["ref"] or status["after"]
    return f"{status['environment']}: the rollout of {version} is {status['status']}{place if is_open else ''}{reason}"


def next_text(status: Mapping[str, Any]) -> str:
    """Return what happens next and when; '' when nothing does."""
    following, environment = status["next"], status["environment"]
    wave, pending = following["wave"], following["pending"]
    match following["action"]:
        case "":
            return ""
        case "resume":
            return f"puppet rollout resume {environment}"
        case "resume or abort":
            return f"puppet rollout resume {environment} accepts the bad nodes and goes on; abort gives all nodes the old version back"
        case "switch":
            return f"the environment's link is switched to {status['after']}"
        case "check":
            return "the check program decides"
        case action:
            what = f"wave {wave} opens" if action == "open" else "the rollout completes"
            when = f" in {duration_text(following['seconds'])}" if following["seconds"] else " at once"
            left = f", once {_counted(pending, 'node')} {'has' if pending == 1 else 'have'} reported" if pending else ""
            return f"{what}{when if following['seconds'] or not pending else ''}{left}"


def duration_text(seconds: float) -> str:
    """Return a duration as people say it: `45 s`, `12 min`, `3 h 20 min`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _table(waves: Sequence[Mapping[str, Any]], *, colored: bool) -> Iterator[str]:
    width = max(4, *(len(wave["name"]) for wave in waves))
    yield f"{'wave':<{width}}  nodes  {'  '.join(STATES)}"
    for wave in waves:
        cells = [_cell(state, wave[state], colored=colored) for state in STATES]
        state = "" if wave["state"] == "closed" else wave["state"]
        yield f"{escape_controls(wave['name']):<{width}}  {wave['nodes']:>5}  {'  '.join(cells)}  {state}".rstrip()


def _cell(state: str, number: int, *, colored: bool) -> str:
    text = f"{number or '-':>{len(state)}}"
    return f"{_COLORS[state]}{text}{_PLAIN}" if colored and number and state in _COLORS else text


def _nodes(names: Sequence[str]) -> str:
    shown = [*names[:_NAMES], "…"] if len(names) > _NAMES else names
    return f"{_counted(len(names), 'node')}: {', '.join(shown)}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _local(time: str) -> str:
    return datetime.fromisoformat(time).astimezone().strftime("%Y-%m-%d %H:%M")

"""The status of a rollout as a page with the look of a preview's: a whole document without a script, which refers to nothing outside it."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any, Final

from master.preview.page import page_style, source_of

from .text import STATES, headline, next_text

_STYLE: Final = """
table { width: 100%; border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: right; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
tr.closed { color: var(--faint); }
svg { display: block; width: 12rem; height: 10px; border-radius: 5px; background: var(--panel); }
svg .good { fill: var(--fixed); } svg .running, svg .unforeseen { fill: var(--accent); } svg .silent { fill: var(--failed); }
svg .waiting { fill: var(--quietest); }
.silent { color: var(--failed); } .unforeseen { color: var(--accent); }
"""


def render_status(status: Mapping[str, Any]) -> str:
    """Return the page of a status."""
    style = page_style() + _STYLE
    policy = f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src {source_of(style)}"
    cells = "".join(f"<th>{state}</th>" for state in STATES)
    problems = "".join(map(_problem, status["problems"])) or '<p class="nothing">No problems.</p>'
    following = next_text(status)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Rollout: {escape(status["environment"])}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>Rollout <small>{escape(status["environment"])} → {escape(status["ref"] or status["after"])}</small></h1>
<p id="summary">{escape(headline(status))}.{f" Next: {escape(following)}." if following else ""}
<br>From <code>{escape(status["before"])}</code> to <code>{escape(status["after"])}</code>, since {escape(status["began"])};
as of {escape(status["at"])}.</p>
</header>
<table><tr><th>wave</th><th></th><th>nodes</th>{cells}</tr>{"".join(map(_wave, status["waves"]))}</table>
<main>{problems}</main>
</body>
</html>
"""


def _wave(wave: Mapping[str, Any]) -> str:
    cells = "".join(f'<td class="{state if wave[state] else ""}">{wave[state] or ""}</td>' for state in STATES)
    query = f' title="{escape(wave["query"])}"' if wave["query"] else ""
    return f'<tr class="{wave["state"]}"><td{query}>{escape(wave["name"])}</td><td>{_bar(wave)}</td><td>{wave["nodes"]}</td>{cells}</tr>'


def _bar(wave: Mapping[str, Any]) -> str:
    parts, at = [], 0.0
    for state in (each for each in STATES if wave[each]):
        width = wave[state] / wave["nodes"] * 1000
        parts.append(f'<rect class="{state}" x="{at:.1f}" width="{width:.1f}" height="14"></rect>')
        at += width
    return f'<svg viewBox="0 0 1000 14" preserveAspectRatio="none" role="img" aria-label="States of the nodes">{"".join(parts)}</svg>'


def _problem(problem: Mapping[str, Any]) -> str:
    nodes = ", ".join(map(escape, problem["nodes"]))
    state = f"{problem['state']}{' (accepted)' if problem['accepted'] else ''}"
    return (
        f'<details class="entry" open><summary><span class="action {problem["state"]}">{state}</span>'
        f'<span class="subject">{escape(problem["message"])}</span><span class="count">{len(problem["nodes"])}</span></summary>'
        f'<div class="body"><p>{nodes}</p></div></details>'
    )

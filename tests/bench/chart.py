"""
The chart of docs/performance.md, from the numbers of `make bench`: `make chart` reads docs/performance.json, writes docs/performance.svg.

Bars say how many times better this is than the reference, on a logarithmic axis; what is held is marked on its bar.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.bench.server import BIG_FILES, CATALOGS, REALISTIC

DOCS = Path(__file__).parent.parent.parent / "docs"
NUMBERS, CHART = DOCS / "performance.json", DOCS / "performance.svg"

WIDTH, LEFT, RIGHT, TOP, ROW, GAP = 900, 330, 70, 84, 21, 30  # pixels
LEAST = 0.8  # of the axis
TICKS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500)
TITLE = "Times the reference, on one machine"
SUBTITLE = "more is better; a logarithmic axis. The reference: Debian 12's puppetserver 7.9.5 and puppet 7.23"

Pair = tuple[float, float]  # ours, the reference's


@dataclass(frozen=True, slots=True)
class Bar:
    """`limits`: must and aim, in times; `less`: a smaller number is the better one."""

    title: str
    of: Callable[[dict[str, Any]], Pair]
    less: bool = True
    limits: Pair | None = None

    def times(self, numbers: dict[str, Any]) -> float:
        ours, reference = self.of(numbers)
        return reference / ours if self.less else ours / reference


def _server(key: str) -> Callable[[dict[str, Any]], Pair]:
    return lambda numbers: (numbers["server"]["ours"][key], numbers["server"]["puppetserver"][key])


def _compile(case: str, what: str) -> Callable[[dict[str, Any]], Pair]:
    return lambda numbers: (numbers["compile"][case][f"ours_{what}"], numbers["compile"][case][f"reference_{what}"])


def _agent(what: str) -> Callable[[dict[str, Any]], Pair]:
    return lambda numbers: (numbers[f"ours_{what}"], numbers[f"theirs_{what}"])


def _alone(case: str, what: str) -> Callable[[dict[str, Any]], Pair]:
    return lambda numbers: (numbers["alone"][case][f"ours_{what}"], numbers["alone"][case][f"theirs_{what}"])


COMPILES, AGENT = (3.0, 6.0), (5.0, 6.0)
BARS: dict[str, tuple[Bar, ...]] = {
    "The master that listens, beside puppetserver with 2 JRubies, warm": (
        Bar("catalogs/s of a realistic node", _server("realistic catalogs, 4 at once"), False, REALISTIC),
        Bar("the same, nothing changed", _server("the same, nothing changed, 4 at once"), False),
        Bar("start to first answer", _server("start")),
        Bar("idle memory", _server("idle_rss")),
        Bar("memory under load", _server("loaded_rss")),
        *(Bar(f"catalogs/s of {n} resources", _server(f"catalogs of {n}, 4 at once"), False, CATALOGS) for n in (10, 100, 1000)),
        Bar("catalogs/s, nothing changed", _server("the same of 100, nothing changed, 4 at once"), False, CATALOGS),
        Bar("file_metadata/s", _server("file_metadata, 4 at once"), False),
        Bar("file_content of 10 kB/s", _server("file_content 10 kB, 4 at once"), False),
        Bar("file_content of 10 MB/s", _server("file_content 10 MB, 2 at once"), False, BIG_FILES),
        Bar("request to certificate/s", _server("request to certificate, 4 at once"), False),
    ),
    "One compile, beside puppet on MRI": (
        Bar("60 modules, warm", _compile("modules", "warm"), limits=COMPILES),
        Bar("60 modules, cold", _compile("modules", "cold")),
        Bar("500 Hiera keys, warm", _compile("data", "warm"), limits=COMPILES),
        Bar("functions and a back end in Ruby, warm", _compile("ruby", "warm"), limits=COMPILES),
        Bar("20,000 resources, warm", _compile("loop", "warm"), limits=COMPILES),
    ),
    "The agent, beside puppet agent": (
        Bar("unchanged run, wall", _agent("wall"), limits=AGENT),
        Bar("unchanged run, processor", _agent("cpu"), limits=AGENT),
        Bar("unchanged run, peak memory", _agent("peak")),
        Bar("500 file sources, wall", _alone("sources", "wall"), limits=COMPILES),
        Bar("puppet facts, wall", _alone("facts", "wall"), limits=COMPILES),
    ),
}
STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .title { font-size: 17px; font-weight: 600 } .group { font-weight: 600 } .small { font-size: 12px; fill: #59636e }
    .paper { fill: #ffffff } .grid { stroke: #d1d9e0 } .one { stroke: #59636e; stroke-width: 1.5 }
    .bar { fill: #8c959f } .good { fill: #2f81c7 } .fair { fill: #8dbde3 } .poor { fill: #d1622b }
    .must, .aim { stroke: #1f2328; stroke-width: 2 } .aim { stroke-dasharray: 3 2 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 } .small { fill: #9198a1 } .paper { fill: #0d1117 } .grid { stroke: #30363d } .one { stroke: #9198a1 }
      .bar { fill: #6e7681 } .good { fill: #4493d8 } .fair { fill: #2b5f8f } .poor { fill: #db6d28 }
      .must, .aim { stroke: #f0f6fc }
    }
"""


def shown(times: float) -> str:
    return f"{times:.0f}" if times >= 20 else f"{times:.1f}"


def judged(bar: Bar, times: float) -> str:
    """The class of its rectangle."""
    if bar.limits is None:
        return "bar"
    must, aim = bar.limits
    return "good" if times >= aim else "fair" if times >= must else "poor"


def chart(numbers: dict[str, Any]) -> str:
    """The picture, as SVG; light or dark as its reader likes it."""
    most = max(bar.times(numbers) for bars in BARS.values() for bar in bars) * 1.1
    wide = WIDTH - LEFT - RIGHT

    def across(times: float) -> float:
        return LEFT + wide * math.log(max(times, LEAST) / LEAST) / math.log(most / LEAST)

    bottom = TOP + sum(GAP + ROW * len(bars) for bars in BARS.values())
    return "\n".join([*_head(bottom + 56), *_axis(across, most, bottom), *_bars(numbers, across), *_legend(bottom + 36), "</svg>\n"])


def _head(height: int) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        f"  <title>{escape(TITLE)}</title>",
        f"  <style>{STYLE}  </style>",
        f'  <rect class="paper" width="{WIDTH}" height="{height}" rx="6"/>',
        _text(20, 30, TITLE, "title"),
        _text(20, 50, SUBTITLE, "small"),
    ]


def _axis(across: Callable[[float], float], most: float, bottom: float) -> Iterator[str]:
    for tick in TICKS:
        if tick <= most:
            at = across(tick)
            style = "one" if tick == 1 else "grid"
            yield f'  <line class="{style}" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 10}" y2="{bottom}"/>'
            yield _text(at, bottom + 16, f"{tick} ×", "small", "middle")


def _bars(numbers: dict[str, Any], across: Callable[[float], float]) -> Iterator[str]:
    y = TOP
    for title, bars in BARS.items():
        yield f'  <rect class="paper" x="18" y="{y - 6}" width="{8 * len(title)}" height="19"/>'  # over the lines of the axis
        yield _text(20, y + 8, title, "group")
        y += GAP - 10
        for bar in bars:
            times = bar.times(numbers)
            start, end = sorted((across(1), across(times)))
            yield _text(LEFT - 10, y + 14, bar.title, "", "end")
            yield f'  <rect class="{judged(bar, times)}" x="{start:.1f}" y="{y + 3}" width="{end - start:.1f}" height="{ROW - 7}" rx="2"/>'
            for name, limit in zip(("must", "aim"), bar.limits or (), strict=False):
                yield f'  <line class="{name}" x1="{across(limit):.1f}" x2="{across(limit):.1f}" y1="{y + 1}" y2="{y + ROW - 2}"/>'
            furthest = max(end, *map(across, bar.limits or (1,)))
            yield _text(furthest + 6, y + 14, f"{shown(times)} ×")
            y += ROW
        y += 10


def _legend(y: float) -> Iterator[str]:
    x = 20.0
    for style, words in (("good", "aim met"), ("fair", "must met"), ("poor", "missed"), ("bar", "nothing to hold")):
        yield f'  <rect class="{style}" x="{x}" y="{y - 10}" width="12" height="12" rx="2"/>'
        yield _text(x + 18, y, words, "small")
        x += 34 + 7 * len(words)
    for style, words in (("must", "must"), ("aim", "aim")):
        yield f'  <line class="{style}" x1="{x}" x2="{x}" y1="{y - 12}" y2="{y + 3}"/>'
        yield _text(x + 8, y, words, "small")
        x += 54


def _text(x: float, y: float, words: str, style: str = "", anchor: str = "") -> str:
    more = "".join(f' {name}="{value}"' for name, value in (("class", style), ("text-anchor", anchor)) if value)
    return f'  <text x="{x:.1f}" y="{y:.0f}"{more}>{escape(words)}</text>'


def main(arguments: Sequence[str]) -> int:
    """The chart from docs/performance.json, or from the file that is named, which then takes its place."""
    if arguments:
        NUMBERS.write_text(json.dumps(rounded(json.loads(Path(arguments[0]).read_text())), indent=1) + "\n")
    CHART.write_text(chart(json.loads(NUMBERS.read_text())))
    return 0


def rounded(value: Any) -> Any:
    """Four digits of every number: more are noise."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

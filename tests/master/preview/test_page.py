"""A preview as one page of HTML. What a person sees of it: tests/interop/test_preview_page.py."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from master.preview.page import render_html
from tests.support.preview_results import change, result

PIECES = [
    *"</script>!-&\"'`$[]{}\
 é𝄞",
    "</script",
    "<!--",
    "]]>",
    "${title}",
    "$data",
]
HOSTILE = st.lists(st.sampled_from(PIECES)).map("".join)


class Elements(HTMLParser):
    """The elements of a document with their attributes, and the texts of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.texts:
            self.texts[-1] += data


def elements(page: str) -> Elements:
    parser = Elements()
    parser.feed(page)
    parser.close()
    return parser


def data_of(page: str) -> dict[str, Any]:
    """What the page's program reads."""
    parsed = elements(page)
    (text,) = (text for (tag, attributes), text in zip(parsed.seen, parsed.texts, strict=True) if attributes.get("id") == "data")
    data: dict[str, Any] = json.loads(text)
    return data


@given(HOSTILE, HOSTILE)
def test_whatever_a_catalog_contains_is_data_of_the_page_and_never_a_part_of_it(name: str, text: str) -> None:
    plain = elements(render_html(result({"web1": "changed"}, [change("File[/a]", ["web1"], old="x", new="y")])))
    found = result({name: "changed"}, [change(f"File[{text}]", [name], old=text, new=[{text: text}])])
    found["to"]["name"] = text
    page = render_html(found)
    assert elements(page).seen == plain.seen
    (entry,) = data_of(page)["changes"]
    assert (entry["subject"], entry["old"], entry["new"]) == (f"File[{text}]", text, [{text: text}])


def test_the_page_lets_nothing_be_loaded_and_no_other_script_run() -> None:
    page = render_html(result({"web1": "unchanged"}))
    (policy,) = (attributes["content"] for tag, attributes in elements(page).seen if attributes.get("http-equiv"))
    assert policy is not None
    words = dict(part.split(" ", 1) for part in policy.split("; "))
    assert words["default-src"] == "'none'"
    assert re.fullmatch(r"'sha256-[A-Za-z0-9+/]{43}='", words["script-src"]) and re.fullmatch(
        r"'sha256-[A-Za-z0-9+/]{43}='", words["style-src"]
    )
    assert not re.findall(r"(?:src|href|url)\s*[=(]", page.split('<script type="application/json"', maxsplit=1)[0])


@given(st.sets(st.integers(0, 60)))
def test_the_nodes_of_a_change_are_runs_of_places_in_the_list_of_nodes(places: set[int]) -> None:
    names = [f"web{number:02}" for number in range(61)]
    data = data_of(render_html(result(dict.fromkeys(names, "changed"), [change("File[/a]", [names[place] for place in places])])))
    runs = data["changes"][0]["nodes"]
    pairs = list(zip(runs[::2], runs[1::2], strict=True))
    assert sorted(number for first, last in pairs for number in range(first, last + 1)) == sorted(places)
    assert [name for name, _ in data["nodes"]] == names


def test_a_change_of_all_of_many_nodes_takes_no_place_for_each() -> None:
    names = [f"web{number:05}.example.com" for number in range(20_000)]
    changes = [change(f"File[/{number}]", names) for number in range(100)]
    assert len(render_html(result(dict.fromkeys(names, "changed"), changes))) < 1_000_000

"""
The page of a preview of 5,000 nodes in a real browser: it shows what a preview found, and lets a person look for it.

What a page that went wrong looks like is in the folder `preview*/pages` of pytest's base folder: `--basetemp` says where.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from master.preview.page import render_html
from tests.interop.clients import CHROMIUM, NEEDS_BROWSER, answers_of, served
from tests.support.preview_results import change, message, result

pytestmark = [*NEEDS_BROWSER, pytest.mark.works_with("Preview", "its page in Chromium")]

NODES = [f"web{number:04}.example.com" for number in range(5000)]
MARKUP = "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">"


def found(error_state: str) -> dict[str, Any]:
    """A change of all sorts among many, on some of 5,000 nodes, one of which fails."""
    affected = NODES[:700]
    states = dict.fromkeys(NODES, "unaffected") | dict.fromkeys(affected, "changed")
    states |= {NODES[700]: "failed", NODES[701]: "fixed", NODES[702]: "unchanged"}
    diff = ["@@ -1,3 +1,3 @@", " driftfile /var/lib/ntp/drift", "-server 0.pool.ntp.org", f"+server ntp1.example.com {MARKUP}"]
    place = {"old": "modules/ntp/manifests/init.pp:12", "new": "modules/ntp/manifests/init.pp:14"}
    changes = [
        change("File[/etc/ntp.conf]", affected[:412], parameter="content", diff=diff, lines=2, places=place, varies=True),
        change("Package[ntpsec]", affected[100:400], kind="resource", action="added", parameters={"ensure": "installed", "tag": ["time"]}),
        change("File[/etc/ntp.keys]", affected[:40], parameter="content", secret=True),
        change("ntp::legacy", affected[:12], kind="class", action="removed"),
        change("Service[ntp]", affected[:7], parameter="ensure", old="running", new="stopped"),
        change("Service[ntp]", affected[:7], kind="order", action="removed", container="File[/etc/ntp.conf]"),
        *(change(f"File[/srv/{number}]", affected[number::50], kind="resource", action="removed") for number in range(300)),
    ]
    error = message(
        "Could not find class ::ntp::server", [NODES[700]], file="manifests/site.pp", line=4, hint="Is the module there?", state=error_state
    )
    unstable = [{"subject": "File[/etc/motd]", "parameter": "content", "reason": "generate() is called", "nodes": NODES[:3]}]
    return result(states, changes, errors=[error], unstable=unstable)


@dataclass(frozen=True)
class Look:
    """What is done on the page, and what it must then show and not show."""

    texts: tuple[str, ...]
    fill: dict[str, str] = field(default_factory=dict)
    click: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    page: str = "preview.html"
    link: str = ""
    press: tuple[str, str] | tuple[()] = ()
    scheme: str = ""


FIRST = "details.entry:first-of-type > summary"
OF_ALL_SORTS = (
    "6 of 306 changes", "-server 0.pool.ntp.org", "- running + stopped", "ensure => installed",
    "The values differ. They are sensitive and therefore not shown.",
)  # fmt: skip
LOOKS = {
    "start": Look(
        (
            "Preview main (aaaaaaaaaaaa) → my-branch (bbbbbbbbbbbb)", "my-branch Use our own time servers", "2026-11-28 02:10 UTC",
            "703 nodes compiled on both sides, 4,297 skipped (not affected)",
            "700 changed 1 failed 1 fixed", "By change (306)", "By node (5,000)", "Errors and warnings (1)",
            "changed File[/etc/ntp.conf] content 2 lines 412 nodes", "changed File[/etc/ntp.keys] content (sensitive) 40 nodes",
            "removed class ntp::legacy 12 nodes", "Show more (206 changes left)",
        ),
        hidden=("server ntp1.example.com",),
    ),
    "diff": Look(
        (f"-server 0.pool.ntp.org +server ntp1.example.com {MARKUP}", "Declared in main: modules/ntp/manifests/init.pp:12",
         "Values differ from node to node; these are of web0000.example.com.", "372 more nodes …"),
        click=(FIRST,),
    ),
    "all-nodes-of-a-change": Look(("web0411.example.com",), click=(FIRST, ".nodes .more"), hidden=("more nodes …",)),
    "searched-text": Look(
        ("1 of 306 changes", "File[/etc/ntp.conf] content"), fill={"#search": "pool.ntp.org driftfile"}, hidden=("/srv/",)
    ),
    "added-only": Look(
        ("1 of 306 changes", "added Package[ntpsec]", "ensure => installed", '"time"'),
        fill={"select#action": "added"}, hidden=("/etc/ntp",),
    ),
    "classes-only": Look(("1 of 306 changes", "class ntp::legacy"), fill={"select#kind": "class"}),
    "searched-node": Look(("added Package[ntpsec]", "8 of 306 changes"), fill={"#search": "web0399"}, hidden=("/etc/ntp.keys",)),
    "more": Look(("Show more (106 changes left)", "File[/srv/150]"), click=(".more",)),
    "nodes": Look(("changed web0000.example.com", "5,000 nodes", "Show more (4,900 nodes left)"), click=("[data-view=nodes]",)),
    "node": Look(
        ("1 of 5,000 nodes", "changed web0000.example.com", "File[/etc/ntp.conf] content", "File[/srv/0]", "generate() is called"),
        click=(FIRST, ".nodes button", "details.entry details.entry:last-of-type > summary"),
    ),
    "unaffected-node": Look(
        ("The change cannot affect its catalog.",), fill={"#search": "web4999"}, click=("[data-view=nodes]",)
    ),
    "failed-node": Look(
        ("1 of 5,000 nodes", "failed web0700", "Could not find class ::ntp::server"),
        fill={"#search": "web0700"}, click=("[data-view=nodes]",),
    ),
    "new-errors": Look(
        ("new Could not find class ::ntp::server 1 node", "manifests/site.pp:4", "Is the module there?", "Only in my-branch"),
        page="errors.html", scheme="light",
    ),
    "old-errors": Look(("old Could not find class ::ntp::server 1 node", "On both sides"), click=("[data-view=messages]",)),
    "few-changes": Look(("- running + stopped", "Use our own time servers"), page="few.html"),
    "light": Look(OF_ALL_SORTS, fill={"#search": "ntp"}, hidden=("/srv/",), scheme="light"),
    "dark": Look(OF_ALL_SORTS, fill={"#search": "ntp"}, hidden=("/srv/",), scheme="dark"),
    "nodes-of-a-state": Look(("1 of 5,000 nodes", "fixed web0701.example.com"), click=("#states li:nth-child(5) button",)),
    "a-link": Look(
        ("1 of 306 changes", "-server 0.pool.ntp.org", "Show 306 changes"),
        click=(FIRST, "details.entry:first-of-type .link"),
        hidden=("/srv/",),
    ),
    "a-linked-node": Look(("1 of 5,000 nodes", "changed web0003.example.com"), link="#node=web0003.example.com"),
    "the-next-tab-by-its-key": Look(("5,000 nodes",), press=("[data-view=changes]", "ArrowRight")),
    "unstable": Look(("unstable File[/etc/motd] content 3 nodes",), click=("[data-view=unstable]",)),
    "nothing-matches": Look(("0 of 306 changes", "Nothing matches."), fill={"#search": "no such text"}),
}  # fmt: skip


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a browser saw, by the names of the looks."""
    folder = tmp_path_factory.mktemp("preview")
    (folder / "pages").mkdir()
    few = change("Service[ntp]", NODES[:7], parameter="ensure", old="running", new="stopped")
    pages = {"preview": found("old"), "errors": found("new"), "few": result(dict.fromkeys(NODES[:7], "changed"), [few])}
    for name, data in pages.items():
        (folder / f"{name}.html").write_text(render_html(data), "utf-8")
    visits = [
        {"name": name, "path": f"/{look.page}?{name}{look.link}", "until": look.texts, "fill": look.fill, "click": look.click,
         "press": look.press, "scheme": look.scheme}
        for name, look in LOOKS.items()
    ]  # fmt: skip
    with served(folder) as base:
        asked = {"chromium": CHROMIUM, "folder": str(folder / "pages"), "base": base, "visits": visits}
        answer: dict[str, Any] = answers_of("browser.py", asked)
    return answer


@pytest.mark.smoke
@pytest.mark.parametrize("name", LOOKS)
def test_a_page_of_5000_nodes_shows_what_is_looked_for(seen: dict[str, Any], name: str) -> None:
    assert seen[name]["complaints"] == [], seen[name]["text"]
    assert seen[name]["violations"] == []
    assert [text for text in LOOKS[name].texts if text not in seen[name]["text"]] == []
    assert [text for text in LOOKS[name].hidden if text in seen[name]["text"]] == []

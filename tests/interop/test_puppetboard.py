"""
Puppetboard 7.0.4, unmodified, in a real browser, on our store: each of its pages shows what is stored, and nothing goes wrong.

What a page that went wrong looks like is in the folder `puppetboard*/pages` of pytest's base folder: `--basetemp` says where.
"""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.interop.clients import (
    CHROMIUM,
    DATASET,
    NEEDS_BROWSER,
    STORES,
    StoreAddress,
    answers_of,
    python_of_clients,
    server,
    store_on_port,
    submit,
)
from tests.support.ports import reserved_port
from tests.support.smoke import with_smoke

pytestmark = [*NEEDS_BROWSER, pytest.mark.works_with("The built-in store", "Puppetboard 7.0.4 in Chromium")]

# The data set is old; what it says last is not too old for Puppetboard.
SETTINGS = """
PUPPETDB_HOST = "{host}"
PUPPETDB_PORT = {port}
SECRET_KEY = "not secret, but as long as the real ones"
OFFLINE_MODE = True
ENABLE_CATALOG = True
ENABLE_CLASS = True
UNRESPONSIVE_HOURS = 24 * 365 * 50
GRAPH_FACTS = ["kernel"]
"""


@dataclass(frozen=True)
class Page:
    """A page, what is done there, and what it must then show; `drawn` are texts of its drawings. @HASH@: web1's last report."""

    path: str
    texts: tuple[str, ...]
    drawn: tuple[str, ...] = ()
    fill: dict[str, str] = field(default_factory=dict)
    click: tuple[str, ...] = ()


def query(text: str, *texts: str, endpoint: str = "pql", click: tuple[str, ...] = ()) -> Page:
    """The page with the query tab, once a query was submitted there."""
    return Page("/query", texts, fill={"#query": text, "select#endpoints": endpoint}, click=(*click, ".submit.button"))


WEB1 = "web1.example.com"
PAGES = {
    "overview": Page(
        "/*/",
        (
            "2 nodes with status failed", "3 nodes with status changed", "1 node with status unchanged", "6 nodes unreported",
            "12 Population", "50 Resources managed", "4 Avg. resources/node", "Nodes, except with status unchanged (11)",
            "FAILED 1010 web1.example.com", "CHANGED 0201 web2.example.com", "UNREPORTED NONE win1.example.com",
        ),
        drawn=("failed", "changed", "unchanged"),
    ),
    "overview-of-an-environment": Page("/", ("4 Population", "41 Resources managed", "10 Avg. resources/node")),
    "daily-reports": Page("/*/daily_reports_chart.json", ('"changed":0', '"unchanged":1')),
    "nodes": Page("/*/nodes", ("CHANGED 0100 mail1.example.com", "FAILED 1010 web1.example.com", "catonly.example.com")),
    "failed-nodes": Page("/*/nodes?status=failed", ("repfail.example.com", WEB1)),
    "node": Page(
        f"/node/{WEB1}",
        ("Certname web1.example.com", "Showing 1 to 3 of 3 entries", "FAILED 9 1 0 1 0", "numstr 42", "Showing 1 to 31 of 31"),
    ),
    "reports": Page("/*/reports", ("NOOP 11 0 0 0 1 web2.example.com config-v2 7.23.0", "Showing 1 to 12 of 12 entries")),
    "reports-of-a-node": Page(f"/*/reports/{WEB1}", ("UNCHANGED 9 0 0 0 0 web1.example.com", "Showing 1 to 3 of 3 entries")),
    "report": Page(
        f"/*/report/{WEB1}/@HASH@",
        (
            "web1.example.com 1762761600", "0:00:40", "err File[/etc/nginx/nginx.conf] change failed: No space left",
            "Skipping because of failed dependencies", "File[/etc/nginx/nginx.conf] failure {md5}bbb {md5}ccc", "resources failed 1",
            "time config_retrieval 0.75",
        ),
    ),
    "facts": Page("/*/facts", ("uptime_seconds", "os.family"), click=(".fact-parent-container:has(a:text-is('os')) .fact-toggle",)),
    "fact": Page(
        "/*/fact/kernel",
        ("factsonly.example.com FreeBSD", "win1.example.com windows", "Showing 1 to 9 of 9 entries"),
        drawn=("77.8%", "11.1%", "Linux", "windows", "FreeBSD"),
    ),
    "fact-with-a-value": Page("/*/fact/kernel/%22Linux%22", ("kernel : Linux", WEB1, "Showing 1 to 7 of 7 entries")),
    "part-of-a-fact": Page("/*/fact/os.family", ("os.family", "web1.example.com Debian", "win1.example.com windows")),
    "inventory": Page("/*/inventory", ("win1 10.0.4.1 windows amd64 8.4.0", "web1 10.0.0.1 Debian amd64 7.23.0", "Showing 1 to 9 of 9")),
    "catalogs": Page("/*/catalogs", ("catonly.example.com", WEB1, "Showing 1 to 6 of 6 entries")),
    "catalog": Page(
        f"/*/catalog/{WEB1}",
        ("web1.example.com 1762848000 f11f1b89", "Sshkey[web1.example.com]", "File[/etc/nginx/nginx.conf] subscription-of Service[nginx]"),
    ),
    "catalogs-to-compare": Page(f"/*/catalogs/compare/{WEB1}", ("web2.example.com", "Showing 1 to 6 of 6 entries")),
    "compared-catalogs": Page(
        f"/*/catalogs/compare/{WEB1}...web2.example.com",
        ("Comparing Against web1.example.com web2.example.com", "File[/tmp/only2]", "Sshkey[web1.example.com] Stage[main] Resources"),
    ),
    "radiator": Page("/*/radiator", ("2 Failed", "6 Unreported", "3 Changed", "1 Unchanged", "12 Total")),
    "failures": Page("/*/failures", ("web1.example.com", "change failed: No space left", "repfail.example.com")),
    "classes": Page("/*/classes", ("Nginx 2 1 0 1", "Postgresql::Server 1 0 1 0", "Showing 1 to 4 of 4 entries")),
    "metrics": Page("/*/metrics", ("puppetlabs.puppetdb.population:name=num-nodes", "puppetlabs.puppetdb.mq:name=global.processed")),
    "metric": Page("/*/metric/puppetlabs.puppetdb.population:name=num-nodes", ("num-nodes", "Value 12")),
    "query": query('nodes[certname] { certname ~ "^web" }', "Number of results: 2", "certname web1.example.com web2.example.com"),
    "query-in-json": query("nodes[count()] {}", '"count": 12', click=("#rawjson",)),
    "query-of-nodes": query('["=", "latest_report_status", "failed"]', "Number of results: 2", "repfail.example.com", endpoint="nodes"),
    "query-without-rows": query('nodes { certname = "none" }', "Zero results"),
    "query-that-is-wrong": query("nodes { certname = web1 }", "Invalid query", "PQL parse error at line 1, column 20"),
}  # fmt: skip


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What a browser saw on each page; all of them are looked at by one browser, one after the other."""
    folder = tmp_path_factory.mktemp("puppetboard")
    with store_on_port(folder / "store") as port:
        submit(port, todays_report())
        last = last_report(port, WEB1)
        yield visit(folder, StoreAddress(port), {name: page.path.replace("@HASH@", last) for name, page in PAGES.items()})


def visit(folder: Path, store: StoreAddress, paths: dict[str, str]) -> dict[str, Any]:
    """What a browser sees on some of the pages, by their names, while Puppetboard asks that store."""
    pictures = folder / "pages"
    pictures.mkdir()
    with reserved_port() as web:
        base = f"http://127.0.0.1:{web}"
        board = python_of_clients("-m", "flask", "--app", str(Path(__file__).with_name("board.py")), "run", "--port", str(web))
        settings = SETTINGS.format(host="localhost" if store.credentials else "127.0.0.1", port=store.port)
        if files := store.credentials:
            words = {"SSL_VERIFY": files.ca, "CERT": files.certificate, "KEY": files.key}
            settings += "".join(f"PUPPETDB_{name} = {str(path)!r}\n" for name, path in words.items())
        (folder / "settings.py").write_text(settings)
        environment = {"PUPPETBOARD_SETTINGS": str(folder / "settings.py"), "TZ": "UTC"}
        visits = [
            {"name": name, "path": path, "until": page.texts, "drawings": page.drawn, "fill": page.fill, "click": page.click}
            for name, path in paths.items()
            for page in [PAGES[name]]
        ]
        with server(board, f"{base}/static/favicon.svg", folder / "board.txt", **environment):
            seen: dict[str, Any] = answers_of("browser.py", {"chromium": CHROMIUM, "folder": str(pictures), "base": base, "visits": visits})
        return seen


def todays_report() -> dict[str, Any]:
    """A report that the data set has, as of now."""
    (case,) = (each for each in DATASET if each["command"] == "store report" and each["certname"] == "stage1.example.com")
    now = datetime.now(UTC).isoformat()
    return case | {"payload": case["payload"] | dict.fromkeys(("start_time", "end_time", "producer_timestamp"), now)}


def last_report(port: int, certname: str) -> str:
    """The hash of a node's last report."""
    text = f'reports[hash] {{ certname = "{certname}" and latest_report? = true }}'
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/pdb/query/v4?{urllib.parse.urlencode({'query': text})}", timeout=30) as answer:
        (row,) = json.loads(answer.read())
        return str(row["hash"])


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_is_stored(seen: dict[str, Any], name: str) -> None:
    check_page(PAGES[name], seen[name])


@pytest.mark.parametrize("kind", with_smoke(STORES, "postgresql"))
def test_pages_show_the_same_over_tls_and_from_postgresql(tmp_path: Path, kind: str) -> None:
    names = ("nodes", "fact", "inventory", "catalog", "query")
    paths = {name: PAGES[name].path for name in names}
    with STORES[kind](tmp_path / "store") as store:
        seen = visit(tmp_path, store, paths)
    for name in names:
        check_page(PAGES[name], seen[name])


def check_page(page: Page, found: dict[str, Any]) -> None:
    assert (found["status"], found["complaints"]) == (200, []), found["text"]
    assert [text for text in page.texts if text not in found["text"]] == [], found["text"]
    assert [text for text in page.drawn if text not in found["drawn"]] == []

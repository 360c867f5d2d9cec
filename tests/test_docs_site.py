"""The documentation's site: it builds without a warning, has every page, and needs no network to be read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.support.documentation import ROOT

pytestmark = pytest.mark.slow


class Loaded(HTMLParser):
    """Collects the addresses that a browser loads with a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("script", "img", "iframe") or (tag == "link" and values.get("rel") not in ("canonical", "next", "prev")):
            self.addresses.append(values.get("src") or values.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    subprocess.run([sys.executable, ROOT / "packaging/docs/pages.py", folder / "pages"], check=True, timeout=300)
    configuration = (ROOT / "packaging/docs/mkdocs.yml").read_text().replace("../../build/docs/", f"{folder}/")
    (folder / "mkdocs.yml").write_text(configuration)
    command = [sys.executable, "-m", "mkdocs", "build", "--config-file", folder / "mkdocs.yml"]  # with --quiet no warning counts
    done = subprocess.run(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def test_every_page_and_the_reference_are_in_the_site(site: Path) -> None:
    pages = {str(path.relative_to(ROOT / "docs").with_suffix(".html")) for path in (ROOT / "docs").glob("*.md")}
    generated = {f"reference/{name}.html" for name in ("commands", "settings", "functions", "metaparameters", "http", "pql")}
    assert {*pages, *generated, "index.html"} <= {str(path.relative_to(site)) for path in site.rglob("*.html")}
    for name, text in (
        ("commands", "puppet preview"),
        ("settings", "deploy_repository"),
        ("functions", "lookup"),
        ("pql", "latest_report_status"),
    ):
        assert text in (site / f"reference/{name}.html").read_text()
    assert "puppet-ca/v1/certificate_request" in (site / "reference/http.html").read_text()
    assert "motd" in (site / "search/search_index.json").read_text()


def test_a_page_loads_nothing_from_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        parser = Loaded()
        parser.feed(page.read_text())
        assert parser.addresses and not [each for each in parser.addresses if re.match(r"(https?:)?//", each)], page
    assert not [sheet for sheet in site.rglob("*.css") if re.search(r"(url\(|@import )[\"']?(https?:)?//", sheet.read_text())]

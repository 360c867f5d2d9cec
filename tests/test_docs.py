"""The examples of the documentation do what it says."""

from __future__ import annotations

import asyncio
import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from bunraku.puppet import main
from master.observability.metrics import Metrics
from master.process import describe_logs
from master.service.crl_refresh import CrlRefresh
from master.service.state_queue import StateQueue
from master.wiring import running
from shared.process.logqueue import LogQueues
from shared.state.database import StateDatabase
from tests.gate import caches
from tests.support import compatibility_page
from tests.support.bare import RELEASES
from tests.support.documentation import block, blocks
from tests.support.markdown import long_lines
from tests.support.pair import NAME, Pair

ROOT = Path(__file__).parent.parent
EXTENDING = (ROOT / "docs" / "extending.md").read_text()
ENVIRONMENT = "code/environments/production"


def files_of_the_module() -> dict[str, str]:
    """Return the files that the page on extensions shows, by their paths in an environment."""
    return {each.name: each.body for each in blocks("docs/extending.md") if "/" in each.name}


def test_every_place_of_the_table_has_an_example() -> None:
    places = re.findall(r"^\| `(lib/[^`]*)`", EXTENDING, re.M)
    files = [name.removeprefix("modules/lights/") for name in files_of_the_module() if name.endswith(".py")]
    patterns = {place: re.sub(r"<\w+>", r"\\w+", place.replace(".", r"\.")) for place in places}
    of_places = {place: [file for file in files if re.fullmatch(pattern, file)] for place, pattern in patterns.items()}
    assert len(places) == 7
    assert [place for place, examples in of_places.items() if not examples] == []
    assert sorted(file for examples in of_places.values() for file in examples) == sorted(files)


@pytest.mark.slow
async def test_the_module_of_extending_does_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTER_bulbs", "41")
    monkeypatch.setenv("FACTER_panel_folder", str(tmp_path / "panel"))
    pair = Pair(tmp_path, manifest="")
    for name, body in files_of_the_module().items():
        pair.write(f"{ENVIRONMENT}/{name}", body)
    pair.write(f"{ENVIRONMENT}/hiera.yaml", block("docs/extending.md", "yaml", "hiera.yaml").body)
    pair.write(f"{ENVIRONMENT}/data/inventory.yaml", "lights::spare: '%{facts.bulbs} bulbs'\n")
    pair.write(f"{ENVIRONMENT}/manifests/site.pp", "notice(lookup('lights::spare'))\n")
    pair.write("auth.conf", block("docs/extending.md", "conf", "auth.conf").body)
    async with pair.mastered(node_terminus="hallway"):
        first, second = await pair.run(), await pair.run()
        await asyncio.to_thread(assert_console_says, "".join(each.body for each in blocks("docs/extending.md", "console")), pair)
    assert first.report is not None
    assert second.report is not None
    assert [line.message for line in first.report.logs if line.level in ("err", "warning")] == []
    said = [f"{line.level.capitalize()}: {line.source}: {line.message}" for line in first.report.logs]
    for line in block("docs/extending.md", "text").body.splitlines():
        assert line in said
    assert {path.name: path.read_text() for path in (tmp_path / "panel").iterdir()} == {"ground_door": "20\n", "ground_stairs": "42\n"}
    assert (first.code, second.code) == (2, 0)


def assert_console_says(transcript: str, pair: Pair) -> None:
    """Call the commands of a transcript, beside the pair's agent; each must print what the transcript has."""
    agent, capture = pair.root / "agent", io.TextIOWrapper(io.BytesIO(), "utf-8")
    folders = [f"--{name}={agent / place}" for name, place in (("confdir", ""), ("vardir", "var"), ("logdir", "log"), ("rundir", "run"))]
    server = ["--server=localhost", f"--masterport={pair.port}", f"--certname={NAME}"]
    own = {"lamps": ["--panel", str(pair.root / "panel")], "fuse": server}
    expected = []
    with redirect_stdout(capture):
        for line in transcript.splitlines():
            expected.append(line)
            if line.startswith("$ puppet "):
                print(line)
                words = shlex.split(line.removeprefix("$ puppet "))
                assert main([words[0], *folders, *own[words[0]], *words[1:]]) == 0
    capture.flush()
    assert capture.buffer.getvalue().decode().splitlines() == expected  # type: ignore[attr-defined]


PLACES = re.compile(r"`((?:shared|certs|httpd|store|master|agent|bunraku|tests|docs|packaging|examples)/[\w./-]*)`")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    """Both in code (`master/wiring.py`) and in links; sections of other pages are checked as well."""
    text = page.read_text()
    missing = [name for name in PLACES.findall(text) if not (ROOT / name).exists()]
    for target, section in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([\w-]+))?\)", text):
        file = (page.parent / target) if target else page
        if not file.exists() or (section and section not in headings(file)):
            missing.append(f"{target}#{section}")
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_that_can_be_wrapped_have_less_than_120_characters(page: Path) -> None:
    assert long_lines(page.read_text()) == [], f"call python -m tests.support.markdown {page.relative_to(ROOT)}"


def test_the_first_pages_stay_short() -> None:
    assert (ROOT / "README.md").stat().st_size <= 6000
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) < 120


def headings(page: Path) -> set[str]:
    """Return the anchors that a page's headings have on the web: lower case, hyphens for spaces, without punctuation."""
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", page.read_text(), re.M)}


def test_the_bare_systems_of_the_full_run_have_the_packages_that_readme_names() -> None:
    text = (ROOT / "README.md").read_text().replace("\n", " ")
    match = re.search(r"On Debian (\d+) or (\d+), first install ([^.]*)\.", text)
    assert match is not None and [match[1], match[2]] == list(RELEASES.values())
    for release in RELEASES:
        assert caches.CACHES[f"bare-{release}"].arguments == (release, ",".join(re.findall(r"`([^`]+)`", match[3])))


@pytest.mark.slow
def test_the_list_of_tests_is_made_of_their_marks() -> None:
    assert compatibility_page.PAGE.read_text() == compatibility_page.page(), "call make compatibility-page"


async def forbidden() -> bytes:
    raise AssertionError("nobody is to be asked")


@pytest.mark.slow
async def test_the_page_on_operation_names_every_metric(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "operation.md").read_text()
    async with running(Pair(tmp_path, manifest="").master_settings()) as master:
        text = master.metrics.text()
    here = Metrics()
    CrlRefresh(master.http.tls.files, forbidden, "the CA").describe(here)  # which only a master that is no CA has
    describe_logs(here, LogQueues())  # which only a process of its own has
    StateQueue(StateDatabase.open("postgresql://nobody@127.0.0.1:1/none"), None, []).describe(here)  # which only a shared state has
    known = set(re.findall(r"^# TYPE (\S+)", text + here.text(), re.M))
    assert set(re.findall(r"`((?:puppet|process)_\w+)`", page)) == known

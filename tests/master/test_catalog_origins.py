"""Where catalogs come from is counted, written down by a running master, and told by `puppet master --check`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from master.checks import remembering
from master.checks.findings import Finding, run_check
from master.observability.catalog_origins import LAST, MAX_REASONS, CatalogOrigins
from master.observability.metrics import Metrics
from master.service.origins_file import OriginsFile
from shared.errors import BadData
from shared.settings import MasterSettings, load
from tests.support.waiting import until

CLOCK = ("apache/templates/_logging.erb line 12", "Time.now")


def settings_in(folder: Path, **changed: object) -> MasterSettings:
    return load(MasterSettings, section="master", flags={"vardir": str(folder), "confdir": str(folder / "conf"), **changed})


def noted(*catalogs: tuple[str, list[tuple[str, str]]]) -> CatalogOrigins:
    origins = CatalogOrigins()
    for origin, reasons in catalogs:
        origins.note(origin, reasons)
    return origins


def found(settings: MasterSettings) -> list[Finding]:
    return run_check("compiling", lambda: remembering.check(settings))


def test_the_metrics_count_catalogs_by_origin_and_by_what_keeps_them_from_memory() -> None:
    metrics = Metrics()
    noted(("memory", []), ("node", [CLOCK, CLOCK]), ("new", [CLOCK])).describe(metrics)
    lines = metrics.text().splitlines()
    assert 'puppet_catalogs_total{origin="memory"} 1' in lines
    assert 'puppet_catalogs_total{origin="answers"} 0' in lines
    assert 'puppet_catalogs_uncacheable_total{place="apache/templates/_logging.erb line 12",reason="Time.now"} 2' in lines


def test_there_are_few_reasons_in_the_metrics_however_many_there_are() -> None:
    metrics = Metrics()
    noted(*(("new", [("", f"reason {number}")]) for number in range(MAX_REASONS * 3))).describe(metrics)
    lines = [line for line in metrics.text().splitlines() if line.startswith("puppet_catalogs_uncacheable_total")]
    assert len(lines) == MAX_REASONS + 1
    assert f'puppet_catalogs_uncacheable_total{{place="",reason="others"}} {MAX_REASONS * 2}' in lines


def test_only_the_last_catalogs_are_told_of() -> None:
    origins = noted(*[("new", [CLOCK])] * 5, *[("memory", [])] * LAST)
    assert (origins.last().origins, origins.last().reasons, origins.total) == ({"memory": LAST}, [], LAST + 5)


def test_a_check_tells_how_many_catalogs_came_from_memory_and_the_first_reasons_why_not(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    OriginsFile.of(settings).write(noted(("memory", []), ("memory", []), ("node", []), ("new", [CLOCK, ("", "x")]), ("new", [CLOCK])))
    assert found(settings) == [
        Finding(
            "compiling",
            "notice",
            "Of the last 5 catalogs 2 came from memory, 2 were the first of their node in a process, 1 for changed facts or classes;"
            " 2 of them have to be compiled each time",
            "They call code whose result cannot be cached (number of catalogs): "
            "apache/templates/_logging.erb line 12: Time.now (2); x (1).",
        )
    ]


def test_a_check_has_no_more_than_ten_reasons(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    OriginsFile.of(settings).write(noted(*(("new", [("", f"reason {number}")]) for number in range(13))))
    assert found(settings)[0].hint.endswith("; and 3 more.")


def test_a_check_says_nothing_before_the_first_catalog_and_without_a_memory(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    assert found(settings) == []
    OriginsFile.of(settings).write(CatalogOrigins())
    assert found(settings) == []
    OriginsFile.of(settings).write(noted(("new", [])))
    assert [finding.message for finding in found(settings)] == [
        "Of the last 1 catalogs 0 came from memory, 1 were the first of their node in a process"
    ]
    assert found(settings_in(tmp_path, catalog_memo="0")) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"origins": 1}', '{"origins": {}, "uncacheable": 0, "reasons": [1]}', "null"])
def test_a_file_that_no_master_wrote_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    file = OriginsFile.of(settings_in(tmp_path))
    file.path.parent.mkdir(parents=True)
    file.path.write_text(text)
    with pytest.raises(BadData) as caught:
        file.read()
    assert str(file.path) in str(caught.value)


def test_the_file_is_written_again_only_when_there_were_catalogs(tmp_path: Path) -> None:
    file, origins = OriginsFile(tmp_path / "state" / "o.json"), noted(("memory", []))
    file.write(origins)
    file.path.unlink()
    file.write(origins)
    assert not file.path.exists()
    origins.note("memory", [])
    file.write(origins)
    last = file.read()
    assert last is not None
    assert last.origins == {"memory": 2}


def test_a_file_that_cannot_be_written_is_logged_and_no_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "state").write_text("")
    OriginsFile(tmp_path / "state" / "o.json").write(noted(("memory", [])))
    assert "Could not write" in caplog.text


async def test_a_running_master_writes_it_again_and_again(tmp_path: Path) -> None:
    file, origins = OriginsFile(tmp_path / "o.json"), noted(("memory", []))
    task = asyncio.create_task(file.keep_written(origins, every=0.01))
    try:
        await until(lambda: (last := file.read()) is not None and last.total == 1)
        origins.note("memory", [])
        await until(lambda: (last := file.read()) is not None and last.total == 2)
    finally:
        task.cancel()

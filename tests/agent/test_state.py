"""What an agent remembers between runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.facts.facterconf import FactCache, FacterConf
from agent.run.lock import DisabledLock
from agent.run.retrieval import LastEnvironments
from agent.servers.server import DialectCache
from agent.servers.websources import DownloadCache
from agent.state.runlog import RunLog
from agent.state.statefiles import StateFile, TransactionStore, write_classes, write_report, write_resources, write_summary
from shared.data import plainyaml
from shared.errors import ConfigError
from shared.indirector.termini import Json
from shared.models.catalog import CATALOG, Catalog
from shared.models.report import Report, metrics_of
from shared.process.daemon import PidFile
from shared.ral.catalog import resources_of
from shared.types import builtin_types

NOW = datetime(2026, 11, 21, 0, 50, 6, 595668, tzinfo=UTC)
# Written by Puppet 7.23.0.
PUPPET_STATE = """---
File[/tmp/pr/conf]:
  :checked: 2026-11-21 00:48:34.595668387 +00:00
  :synced: 2026-11-21 00:48:34.595842677 +00:00
File[/old]:
  :checked: 2026-01-01 00:00:00.000000000 +00:00
File[/a]:
  :checked: 2026-11-21 00:48:34.595951000 +00:00
  :content: "{md5}d41d8cd98f00b204e9800998ecf8427e"
  :ensure: :absent
"""


async def test_puppets_own_state_file_is_read_and_written_in_its_form(tmp_path: Path) -> None:
    path, log = tmp_path / "state.yaml", RunLog()
    path.write_text(PUPPET_STATE)
    state = StateFile(path)
    await state.load(log)
    assert state.last_checked("File[/tmp/pr/conf]") == datetime(2026, 11, 21, 0, 48, 34, 595668, tzinfo=UTC)
    assert state.entry("File[/a]")["ensure"] == "absent"
    state.entry("Notify[x]")["checked"] = NOW
    await state.store(log, NOW)
    text = path.read_text()
    assert "Notify[x]:\n  :checked: 2026-11-21 00:50:06.595668000 +00:00\n" in text
    assert "  :ensure: :absent\n" in text
    assert "File[/old]" not in text  # not checked for longer than statettl
    assert path.stat().st_mode & 0o777 == 0o660


async def test_a_file_of_nothing_but_times_is_read_the_same_by_its_lines(tmp_path: Path) -> None:
    path, log = tmp_path / "state.yaml", RunLog()
    state = StateFile(path)
    refs = ["File[/x]", "Exec[it's: # odd]", "Exec[two\nlines]", "Notify[0644]", "Exec[" + "long " * 300 + "]"]
    for ref in refs:
        state.entry(ref).update(checked=NOW, synced=NOW)
    await state.store(log, NOW)
    again = StateFile(path)
    await again.load(log)
    assert [again.entry(ref) for ref in refs] == [{"checked": NOW, "synced": NOW}] * len(refs)
    assert not log.lines


async def test_entries_of_38_with_tagged_symbols_are_read(tmp_path: Path) -> None:
    path = tmp_path / "state.yaml"
    path.write_text("--- \n  File[/srv/a3]: \n    !ruby/sym checked: 2026-11-20 21:55:13.381031 +00:00\n")
    state = StateFile(path)
    await state.load(RunLog())
    assert state.last_checked("File[/srv/a3]").astimezone(UTC).hour == 21


async def test_what_was_never_checked_counts_as_checked_at_the_epoch() -> None:
    assert StateFile(None).last_checked("File[/x]").timestamp() == 0


@pytest.mark.parametrize("content", ["", "\x00\x01garbage", "- a list", "--- !ruby/object:Gem::Installer {}\n", "a: &a [*a]"])
async def test_a_broken_file_is_moved_aside_and_begun_anew(tmp_path: Path, content: str) -> None:
    """R-35"""
    path, log = tmp_path / "state.yaml", RunLog()
    path.write_text(content)
    state, store = StateFile(path), TransactionStore(tmp_path / "store.yaml")
    (tmp_path / "store.yaml").write_text(content)
    await state.load(log)
    await store.load(log)
    state.entry("File[/x]")["checked"] = NOW
    await state.store(log, NOW)
    await store.store(log)
    assert "File[/x]" in path.read_text()
    if content:
        assert (tmp_path / "state.yaml.bad").read_text() == content
        assert [line.message.split("(")[0] for line in log.lines] == [
            f"State file {path} is corrupt ",
            f"Transaction store file {tmp_path}/store.yaml is corrupt ",
        ]


async def test_a_folder_that_is_missing_is_an_error_in_the_log_and_no_more(tmp_path: Path) -> None:
    log = RunLog()
    state = StateFile(tmp_path / "nosuch" / "state.yaml")
    state.entry("x")["checked"] = NOW
    await state.store(log, NOW)
    assert log.lines[-1].message == f"Could not write {tmp_path}/nosuch/state.yaml: No such file or directory"


async def test_the_store_keeps_what_was_skipped_and_forgets_what_is_gone(tmp_path: Path) -> None:
    path, log = tmp_path / "store.yaml", RunLog()
    store = TransactionStore(path)
    for ref in ("File[/kept]", "File[/gone]"):
        store.remember(ref, "mode", ["0644"])
    await store.store(log)
    again = TransactionStore(path)
    await again.load(log)
    assert again.system_value("File[/gone]", "mode") == ["0644"]
    again.carry_over("File[/kept]")
    await again.store(log)
    assert plainyaml.loads(path.read_bytes()) == {"resources": {"File[/kept]": {"parameters": {"mode": {"system_value": ["0644"]}}}}}


async def test_the_last_run_files_have_puppets_forms(tmp_path: Path) -> None:
    log = RunLog()
    report = Report(
        name="n1", configuration_version=7, puppet_version="7.23.0", environment="production", metrics=metrics_of([], {"total": 1.5})
    )
    await write_report(tmp_path / "report.yaml", report.to_ruby_yaml(), log)
    await write_summary(tmp_path / "summary.yaml", report.to_summary(last_run=1795222115), log)
    assert (tmp_path / "report.yaml").read_text().startswith("--- !ruby/object:Puppet::Transaction::Report\nhost: n1\n")
    assert (tmp_path / "report.yaml").stat().st_mode & 0o777 == 0o640
    summary = plainyaml.loads((tmp_path / "summary.yaml").read_bytes())
    assert summary["version"] == {"config": 7, "puppet": "7.23.0"}
    assert summary["time"] == {"total": 1.5, "last_run": 1795222115}
    assert summary["events"] == {"total": 0, "failure": 0, "success": 0}
    assert summary["application"]["converged_environment"] == "production"


async def test_classes_and_managed_resources_are_listed(tmp_path: Path) -> None:
    log = RunLog()
    wire = [
        {"type": "Class", "title": "main", "kind": "class"},
        {"type": "Notify", "title": "Hello There", "kind": "compilable_type"},
        {"type": "Schedule", "title": "x", "kind": "compilable_type"},
    ]
    resources = resources_of(Catalog.from_data({"name": "n", "classes": ["settings", "a::b"], "resources": wire}), builtin_types())
    await write_classes(tmp_path / "classes.txt", resources.classes, log)
    await write_resources(tmp_path / "resources.txt", resources, log)
    assert (tmp_path / "classes.txt").read_text() == "settings\na::b\n"
    assert (tmp_path / "resources.txt").read_text() == "notify[hello there]\n"


def test_the_log_keeps_a_bounded_number_of_lines_and_says_how_many_are_missing() -> None:
    printed: list[str] = []
    log = RunLog(max_lines=2, printers=[lambda line: printed.append(line.message)])
    for number in range(5):
        log.notice(str(number))
    log.info("below the level")
    assert printed == ["0", "1", "2", "3", "4"]
    assert [line.message for line in log.for_report()] == ["0", "1", "3 further log lines are not in this report"]


def test_verbose_is_info_and_bytes_that_are_no_text_are_replaced() -> None:
    log = RunLog(level="info")
    log.log("verbose", "a\udcffb", tags=["file", "info"])
    assert (log.lines[0].level, log.lines[0].message, log.lines[0].tags) == ("info", "a?b", ["info", "file"])


def test_the_ttl_can_be_switched_off() -> None:
    assert not StateFile(None, ttl=timedelta(0)).ttl


READERS: dict[str, Callable[[Path], object]] = {
    "transaction store": lambda path: asyncio.run(TransactionStore(path).load(RunLog())),
    "state": lambda path: asyncio.run(StateFile(path).load(RunLog())),
    "catalog": lambda path: Json(CATALOG, path.parent).read(path.stem),
    "environments of the last run": LastEnvironments.read,
    "dialects of servers": lambda path: DialectCache.load("auto", path),
    "downloads": lambda path: DownloadCache(path).get("http://x/"),
    "facts": lambda path: FactCache(FacterConf(ttls={path.name: 3600}), path.parent).load(),
    "process": lambda path: PidFile(path).running(),
    "lock that disables runs": lambda path: DisabledLock(path).reason(),
}


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir], ids=["a FIFO", "a device", "a folder"])
@pytest.mark.parametrize("reader", READERS)
def test_a_file_of_the_agents_own_that_is_no_regular_file_holds_nobody(reader: str, make: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    make(path)
    with suppress(ConfigError):
        READERS[reader](path)


@pytest.mark.parametrize("change", [DisabledLock.enable, lambda lock: lock.disable("why")], ids=["enable", "disable"])
def test_a_folder_in_place_of_the_lock_that_disables_runs_is_named(change: Callable[[DisabledLock], object], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=str(tmp_path)):
        change(DisabledLock(tmp_path))

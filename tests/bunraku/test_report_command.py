"""`puppet report`: to which server a report goes, and what the stored ones say."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bunraku.commands.report import submit
from shared.errors import PeerError
from shared.models.report import Report
from tests.support.command_line import Puppet, Said
from tests.support.fake_server import Reply
from tests.support.scripted_master import NAME, Scripted

REPORT = Report.from_data({"host": NAME, "time": "2026-11-20T12:00:00.0+00:00", "status": "unchanged", "environment": "production"})


@pytest.mark.parametrize(
    "settings",
    [
        {"server": "localhost", "masterport": "<port>"},
        {"server_list": "localhost:1,localhost:<port>"},
        {"server_list": "localhost:1", "report_server": "localhost", "report_port": "<port>"},
    ],
    ids=["the master", "one of a list", "a server of its own, whatever becomes of the list"],
)
async def test_a_report_goes_to(tmp_path: Path, settings: dict[str, Any]) -> None:
    site = Scripted(tmp_path, {"/status/": Reply(body=b"running")})
    async with site.master.running():
        given = {name: value.replace("<port>", str(site.master.port)) for name, value in settings.items()}
        await submit(REPORT, site.settings(**{"server": "unused.test", "masterport": "1", **given}))
    assert site.asked()[-1] == f"PUT /puppet/v3/report/{NAME}"


async def test_no_server_of_the_list_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PeerError, match="Could not select a functional puppet server from server_list: 'localhost:1'"):
        await submit(REPORT, Scripted(tmp_path).settings(masterport="1", server_list="localhost:1"))


STATUSES = {"db1": "failed", "web1": "changed", "web2": "unchanged"}


@pytest.fixture
def stored(puppet: Puppet, tmp_path: Path) -> None:
    """Reports of three nodes, as our master and as Puppet's write them, an older failed one of web1, and facts of a fourth node."""
    now = datetime.now(UTC)
    for hours, node in enumerate(STATUSES, 1):
        write_report(tmp_path, node, now - timedelta(hours=hours), STATUSES[node])
    write_report(tmp_path, "web1", now - timedelta(days=2), "failed")
    facts = tmp_path / "vardir/yaml/facts"
    facts.mkdir(parents=True)
    (facts / "new1.yaml").write_text("---\nname: new1\nvalues: {}\n")


def write_report(root: Path, node: str, when: datetime, status: str, name: str = "") -> Path:
    folder = root / "vardir/reports" / node
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (name or f"{when:%Y%m%d%H%M}.yaml")
    message = "  message: |\n    status: forged\n"
    path.write_text(
        f"--- !ruby/object:Puppet::Transaction::Report\nhost: {node}\nlogs:\n- level: info\n{message}status: {status}\nenvironment: 'e1'\n"
    )
    return path


def nodes_of(said: Said) -> list[tuple[str, str]]:
    assert (said.code, said.err) == (0, "")
    return [(each["node"], each["status"]) for each in json.loads(said.out)]


def test_the_last_run_of_each_node_is_listed_the_most_silent_first(puppet: Puppet, stored: None) -> None:
    listed = [("new1", "none"), ("web2", "unchanged"), ("web1", "changed"), ("db1", "failed")]
    assert nodes_of(puppet("report", "list", "--json")) == listed
    lines = puppet("report", "list").out.splitlines()
    assert [tuple(line.split()[1::-1]) for line in lines] == listed
    assert lines[0].endswith("never") and lines[1].endswith("(3 hours ago)   e1")


def test_those_that_failed_and_those_that_are_silent_can_be_asked_for(puppet: Puppet, stored: None) -> None:
    assert nodes_of(puppet("report", "list", "--failed", "--json")) == [("db1", "failed")]
    assert nodes_of(puppet("report", "list", "--silent-for", "90m", "--json")) == [
        ("new1", "none"),
        ("web2", "unchanged"),
        ("web1", "changed"),
    ]
    assert len(nodes_of(puppet("report", "list", "--failed", "--silent-for=150m", "--json"))) == 3
    wrong = puppet("report", "list", "--silent-for", "soon")
    assert wrong.code == 1 and "Could not set --silent-for: Invalid duration format 'soon'" in wrong.err


def test_the_newest_of_a_minute_counts_and_what_is_no_report_does_not(puppet: Puppet, tmp_path: Path) -> None:
    when = datetime(2026, 11, 1, tzinfo=UTC)
    for name, status in (("202611010000.yaml", "a"), ("202611010000-2.yaml", "b"), ("202611010000-10.yaml", "changed")):
        write_report(tmp_path, "web1", when, status, name)
    write_report(tmp_path, "web1", when, "no", "999999999999x.yaml")
    (tmp_path / "vardir/reports/web1/209901010000.yaml").symlink_to("/etc/passwd")
    (tmp_path / "vardir/reports/.hidden name").mkdir()
    assert nodes_of(puppet("report", "list", "--json")) == [("web1", "changed")]


def test_a_report_of_one_giant_line_takes_no_memory_and_says_nothing(puppet: Puppet, tmp_path: Path) -> None:
    path = write_report(tmp_path, "web1", datetime(2026, 11, 1, tzinfo=UTC), "changed")
    path.write_text("x: " + "status: failed" * 100_000 + "\nenvironment: e1\n")
    assert nodes_of(puppet("report", "list", "--json")) == [("web1", "unknown")]


def test_without_reports_it_says_why_there_are_none(puppet: Puppet) -> None:
    said = puppet("report", "list")
    assert (said.code, said.out) == (0, "") and "No agent has sent one yet, or this is not the master." in said.err
    assert "does not have store" in puppet("report", "list", "--reports", "log").err

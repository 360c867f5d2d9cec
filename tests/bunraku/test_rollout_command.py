"""`puppet rollout`: its command line, the options of a control repository, and what people see of a status."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import pytest

from bunraku.commands.report import stored_runs
from bunraku.commands.rollout import redraw
from bunraku.rollouts.start import RolloutWishes, last_changes, last_runs, wishes_in
from bunraku.rollouts.text import duration_text, headline, status_lines
from master.rollouts.machine import BadNodesLimit, RolloutCommand, RolloutEvent, RolloutPlan, RunReported, advance, begin
from master.rollouts.status import status_of
from master.rollouts.storage import RolloutFiles
from master.rollouts.waves import Wave, parse_waves
from shared.errors import ConfigError
from shared.settings import MasterSettings, load
from tests.support.command_line import Puppet

PLAN = RolloutPlan(
    "production", "1a2b", "3c4d", (Wave("canary", query="nodes { }", members=frozenset({"web1", "web2"})), Wave("all", 100.0)), ref="main"
)


def status(*events: RolloutEvent, seconds: float = 60, **more: Any) -> dict[str, Any]:
    """Return the status of a rollout to five nodes after these events."""
    rollout = begin(replace(PLAN, **more), ["web1", "web2", "db1", "db2", "db3"], 1000.0)
    return status_of(advance(rollout, events, 1000.0 + seconds))


def test_a_status_shows_the_waves_the_problems_and_what_comes_next() -> None:
    failed = [RunReported(name, "3c4d", failed=True, message=f"File[/etc/{name}]: no space") for name in ("web1", "web2")]
    lines = list(status_lines(status(RunReported("web1", "3c4d", changed=True))))
    assert lines[0] == "production: the rollout of main is progressing, wave canary (1 of 2)"
    assert lines[3:6] == [
        "wave    nodes  waiting  running  good  changed  failed  silent  unforeseen",
        "canary      2        1        -     -        1       -       -           -  open",
        "all         3        3        -     -        -       -       -           -",
    ]
    assert lines[-1] == "Next: wave all opens in 29 min, once 1 node has reported"
    lines = list(status_lines(status(*failed)))
    assert lines[0] == "production: the rollout of main is stopped: 2 bad nodes, 0 allowed (wave canary)"
    assert "! failed: File[/etc/NODE]: no space (2 nodes: web1, web2)" in lines, "the same error is one line"
    assert lines[-1].startswith("Next: puppet rollout resume production accepts the bad nodes")


@pytest.mark.parametrize(
    ("events", "more", "end"),
    [
        (
            [RunReported("web1", "3c4d"), RunReported("web2", "3c4d")],
            {"wait": 0},
            "Next: the rollout completes, once 3 nodes have reported",
        ),
        ([RunReported("web1", "3c4d"), RunReported("web2", "3c4d")], {"wait": 0, "check": "/bin/ok"}, "Next: the check program decides"),
        ([RolloutCommand("pause", "lunch")], {}, "Next: puppet rollout resume production"),
    ],
)
def test_what_comes_next_is_a_sentence(events: list[RolloutEvent], more: dict[str, Any], end: str) -> None:
    assert list(status_lines(status(*events, **more)))[-1] == end


def test_an_ended_rollout_has_no_next_step_and_control_characters_are_shown() -> None:
    ended = status(RolloutCommand("abort", "it \x1b[31m was wrong"))
    assert headline(ended) == "production: the rollout of main is aborted: it \\x1b[31m was wrong"
    assert not list(status_lines(ended))[-1].startswith("Next")


@pytest.mark.parametrize(("seconds", "text"), [(45, "45 s"), (600, "10 min"), (12000, "3 h 20 min")])
def test_durations_are_said_as_people_say_them(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_a_control_repository_names_the_options_of_its_rollouts(tmp_path: Path) -> None:
    assert wishes_in(tmp_path) == RolloutWishes()
    (tmp_path / "rollout.yaml").write_text(
        "waves:\n- canary: nodes[certname] { certname ~ '^test' }\n- 10%\n- 100%\nwait: 1h\nmax_failed: 2%\nrun_now: true\n"
    )
    waves = parse_waves("canary: nodes[certname] { certname ~ '^test' }; 10%; 100%")
    assert wishes_in(tmp_path) == RolloutWishes(waves, 3600.0, BadNodesLimit(percent=2.0), run_now=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "is not a map"),
        ("wave: 1", "There is no 'wave'"),
        ("waves: [10%]", "the last wave is 100%"),
        ("wait: soon", "Invalid duration"),
        ("max_failed: many", "'many' is neither a number of nodes nor a percentage"),
        ("on_failure: shrug", "on_failure is stop or rollback"),
        ("run_now: 1", "run_now are true or false"),
        ("check: /bin/true", "There is no 'check'"),
        ("a: [", "rollout.yaml of the control repository"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "rollout.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"rollout\.yaml") as raised:
        wishes_in(tmp_path)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "'rollout' has no default action"),
        (["begin", "production"], "begin"),
        (["start"], "takes 1 argument"),
        (["start", "production", "--waves", "10%"], "the last wave is 100%"),
        (["start", "production", "--max-failed", "x"], "neither a number"),
        (["start", "production", "--check", "true"], "'true' is not the path of a program"),
        (["pause", "production"], "There is no rollout of production"),
        (["status", "production"], "There is no rollout of production"),
        (["status", "a", "b"], "takes fewer environments"),
    ],
)
def test_a_wrong_command_line_is_refused(puppet: Puppet, tmp_path: Path, words: list[str], message: str) -> None:
    said = puppet("rollout", *words, f"--environmentpath={tmp_path}")
    assert said.code == 1 and message in said.err


def test_rollouts_are_listed_and_their_end_is_the_exit_code(puppet: Puppet, tmp_path: Path) -> None:
    path = f"--environmentpath={tmp_path}"
    assert puppet("rollout", "status", path).out == "There are no rollouts\n"
    files = RolloutFiles([tmp_path])
    files.save(begin(PLAN, ["web1"], 1000.0), 0)
    assert puppet("rollout", "list", path).out == "production: the rollout of main is progressing, wave canary (1 of 2)\n"
    said = puppet("rollout", "abort", "production", "--reason", "wrong", path)
    assert (said.code, said.out) == (0, "production: the rollout of main is aborted: wrong\n")
    assert puppet("rollout", "status", path).code == 4
    said = puppet("rollout", "watch", "production", path)
    assert said.code == 4 and "aborted" in said.out
    (listed,) = json.loads(puppet("rollout", "list", "--json", path).out)
    assert (listed["format"], listed["status"]) == (1, "aborted")


def test_the_page_of_a_status_shows_what_nodes_say_as_text(puppet: Puppet, tmp_path: Path) -> None:
    failed = RunReported("web1", "3c4d", failed=True, message="<script>alert(1)</script>")
    RolloutFiles([tmp_path]).save(advance(begin(PLAN, ["web1", "db1"], 1000.0), [failed], 1001.0), 0)
    said = puppet("rollout", "status", "production", f"--environmentpath={tmp_path}", "--html", str(tmp_path / "page.html"))
    assert said.code == 4 and "The page is" in said.err
    page = (tmp_path / "page.html").read_text()
    assert "&lt;script&gt;" in page and "<script" not in page and "http" not in page.replace("http-equiv", "")
    assert '<rect class="failed" x="0.0" width="1000.0"' in page and "the rollout of main is stopped" in page


def test_a_status_is_redrawn_in_place_and_fits_the_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "30")
    failed = [RunReported(name, "3c4d", failed=True, message=f"{name} {'x' * 200}") for name in ("web1", "web2")]
    drawn = redraw(status(), 0)
    assert redraw(status(*failed), drawn) == drawn + 2, "a line with the problem, and one before it"
    first, _, second = capsys.readouterr().out.partition(f"\x1b[{drawn}A")
    assert first.count("\n") == drawn and second.count("\n") == drawn + 2
    assert max(len(line) for line in second.splitlines() if "xxx" in line) < 60 + 20
    monkeypatch.setenv("LINES", "8")
    assert redraw(status(*failed), 0) == 7


@dataclass
class Answer:
    body: bytes
    url: str = "http://store"
    is_success: bool = True
    problem: str = ""


class FakeStore:
    """A store that answers queries by their first word."""

    def __init__(self, **rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    async def get(self, path: str) -> Answer:
        query = unquote_plus(path.partition("?query=")[2])
        return Answer(json.dumps(self.rows[query.partition("[")[0]]).encode())


async def test_the_last_runs_of_nodes_come_from_the_store_or_else_from_the_stored_reports(tmp_path: Path) -> None:
    store: Any = FakeStore(
        nodes=[
            {"certname": "web1", "latest_report_status": "failed", "report_timestamp": "2026-11-28T02:10:00.000Z"},
            {"certname": "web2", "latest_report_status": None, "report_timestamp": None},
        ],
        events=[{"certname": "web1", "resource_type": "Exec", "resource_title": "apt", "property": "returns"}],
    )
    flags = {"confdir": str(tmp_path), "vardir": str(tmp_path), "reportdir": str(tmp_path / "reports")}
    settings = load(MasterSettings, section="master", flags={**flags, "storeconfigs": "true"})
    runs = await last_runs(store, settings, ["web1", "web2", "web3"], stored_runs)
    assert runs == {"web1": ("failed", datetime(2026, 11, 28, 2, 10, tzinfo=UTC)), "web2": ("", None), "web3": ("", None)}
    assert await last_changes(store) == {"web1": ["Exec[apt] returns"]}

    (tmp_path / "reports/web1").mkdir(parents=True)
    (tmp_path / "reports/web1/202611280210.yaml").write_text("status: changed\n")
    files = load(MasterSettings, section="master", flags={**flags, "store": "none"})
    runs = await last_runs(store, files, ["web1", "web2"], stored_runs)
    assert runs == {"web1": ("changed", datetime(2026, 11, 28, 2, 10, tzinfo=UTC)), "web2": ("none", None)}

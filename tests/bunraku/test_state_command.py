"""`puppet state move`: a master's state goes to PostgreSQL and comes back."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from sqlalchemy import delete, func, select

from master.rollouts.machine import RolloutPlan, begin
from master.rollouts.rows import RolloutRows
from master.rollouts.storage import RolloutFiles
from master.rollouts.waves import Wave
from shared.filesystem.bucket import Bucket
from shared.settings import MasterSettings, load
from shared.state.database import StateDatabase
from shared.state.tables import bucket_files, facts, reports
from tests.support.command_line import Puppet, Said

pytestmark = pytest.mark.slow

REPORT = "--- !ruby/object:Puppet::Transaction::Report\nhost: {host}\nstatus: {status}\n"


@pytest.fixture
def site(puppet: Puppet, tmp_path: Path) -> Path:
    """The files of a master: a CA with two certificates, facts of two nodes, reports, also of one minute, and a filebucket."""
    for name in ("web1.test", "web2.test"):
        assert puppet("cert", "generate", name, "--key_type", "ec").code == 0
        folder = tmp_path / "vardir/reports" / name
        folder.mkdir(parents=True)
        for number, stamp in enumerate(("202611200900", "202611200900-1", "202611200900-2", "202611210900", "202611210900-1")):
            status = "failed" if number > 2 else f"changed{number}"  # the last two are the same
            (folder / f"{stamp}.yaml").write_text(REPORT.format(host=name, status=status))
        stored = tmp_path / "vardir/yaml/facts"
        stored.mkdir(parents=True, exist_ok=True)
        (stored / f"{name}.yaml").write_text(f"--- !ruby/object:Puppet::Node::Facts\nname: {name}\nvalues:\n  os: {{name: Debian}}\n")
    bucket = Bucket(tmp_path / "vardir/bucket")
    for content, path in ((b"one", "etc/motd"), (b"one", "etc/issue"), (b"2" * 3_000_000, "large"), (b"without a path", None)):
        bucket.add([content], path=path)
    Bucket(tmp_path / "vardir/bucket", algorithm="md5").add([b"old"], path="etc/passwd")
    return tmp_path


def move(puppet: Puppet, *words: str) -> Said:
    return puppet("state", "move", "--user=root", *words)


def counts(url: str) -> list[int]:
    database = StateDatabase.open(url, keep_alive=False)
    return [
        database.transact(lambda c, t=table: c.scalar(select(func.count()).select_from(t))) or 0 for table in (facts, reports, bucket_files)
    ]


def kept(site: Path) -> dict[str, str]:
    """The digests of all reports and files in the bucket, by path, and the stored facts."""
    roots = [site / "vardir" / name for name in ("reports", "bucket")]
    paths = [path for root in roots for path in sorted(root.rglob("*")) if path.is_file() and path.name != ".usage"]
    return {str(path.relative_to(site)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_a_state_goes_to_postgresql_and_back_without_losing_anything(puppet: Puppet, site: Path, state_url: str) -> None:
    before = kept(site)
    said = move(puppet, "--to", state_url, "--json")
    assert said.code == 0 and said.err == "", said.err
    result = json.loads(said.out)
    moved = {kind["kind"]: (kind["entries"], kind["copied"]) for kind in result["moved"]}
    assert moved == {"facts": (2, 2), "nodes": (0, 0), "reports": (10, 10), "files by sha256": (4, 4), "files by md5": (1, 1)}
    assert result["setting"] == {"state": state_url} and "2 certificates" in result["ca"][0]
    assert counts(state_url) == [2, 10, 4]
    assert kept(site) == before, "the files stay"
    listed = puppet("report", "list", "--state", state_url, "--json")
    assert [(run["node"], run["status"]) for run in json.loads(listed.out)] == [("web1.test", "failed"), ("web2.test", "failed")]
    assert "web1.test" in puppet("cert", "list", "--all", "--state", state_url).out

    for folder in ("reports", "bucket", "yaml"):
        (site / "vardir" / folder).rename(site / f"old-{folder}")
    back = move(puppet, "--to", "files", "--state", state_url)
    assert (back.code, back.err) == (0, ""), back.err
    assert "reports: 10 are in the new place, 10 of them copied now\n" in back.out and "    state = files\n" in back.out
    assert kept(site) == before
    assert "os" in (site / "vardir/yaml/facts/web1.test.yaml").read_text()
    assert "web1.test" in puppet("cert", "list", "--all").out


def test_a_move_goes_on_where_it_was_interrupted_and_leaves_what_is_newer(puppet: Puppet, site: Path, state_url: str) -> None:
    assert move(puppet, "--to", state_url).code == 0
    database = StateDatabase.open(state_url, keep_alive=False)
    database.transact(lambda connection: connection.execute(delete(reports).where(reports.c.certname == "web2.test")))
    newer = facts.update().where(facts.c.name == "web1.test").values(body=b'{"name":"web1.test","values":{"a":1}}')
    database.transact(lambda connection: connection.execute(newer))
    moved = {kind["kind"]: kind for kind in json.loads(move(puppet, "--to", state_url, "--json").out)["moved"]}
    assert moved["reports"] == {"kind": "reports", "entries": 10, "copied": 5, "newer": 0}
    assert moved["facts"] == {"kind": "facts", "entries": 1, "copied": 0, "newer": 1}


def test_a_file_that_is_damaged_stays_behind_with_a_warning(puppet: Puppet, site: Path, state_url: str) -> None:
    (contents,) = (path for path in (site / "vardir/bucket").rglob("contents") if path.read_bytes() == b"without a path")
    contents.chmod(0o640)
    contents.write_bytes(b"other bytes")
    said = move(puppet, "--to", state_url)
    assert said.code == 0 and "is damaged, and is not moved" in said.err
    assert counts(state_url)[2] == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "needs --to"),
        (["--to", "sqlite"], "Invalid state"),
        (["--to", "files"], "names no database to move from"),
        (["--to", "postgresql://b/x", "--from", "postgresql://a/x"], "not moved from one database to another"),
    ],
)
def test_places_that_make_no_move_are_errors(puppet: Puppet, words: list[str], message: str) -> None:
    said = move(puppet, *words)
    assert said.code == 1 and message in said.err


def test_nothing_is_moved_while_a_master_runs_here(puppet: Puppet, site: Path, state_url: str) -> None:
    settings = load(MasterSettings, section="master", flags={name: str(site / name) for name in ("vardir", "rundir")})
    settings.pidfile.parent.mkdir(parents=True, exist_ok=True)
    settings.pidfile.write_text("1")
    said = move(puppet, "--to", state_url)
    assert said.code == 1 and "A master runs on this host, as process 1" in said.err


@pytest.mark.parametrize("to_files", [False, True], ids=["to the database", "to files"])
def test_nothing_is_moved_during_a_rollout_which_would_be_forgotten(puppet: Puppet, tmp_path: Path, state_url: str, to_files: bool) -> None:
    database = StateDatabase.open(state_url, keep_alive=False)
    storage = RolloutRows(database, "localhost") if to_files else RolloutFiles([tmp_path])
    storage.save(begin(RolloutPlan("production", "old", "new", (Wave("all", 100.0),)), ["web1"], 1000.0), 0)
    words = ["--to", "files", "--from", state_url] if to_files else ["--to", state_url]
    said = move(puppet, *words, f"--environmentpath={tmp_path}")
    assert said.code == 1 and "A rollout of production is progressing" in said.err and "puppet rollout abort production" in said.err

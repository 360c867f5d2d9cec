"""A site of thirty nodes moves from puppetserver 7.9.5 to this master and back with `puppet migrate`; its agents notice nothing."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.puppetserver import PUPPETSERVER_7, configured, running
from tests.support.ports import reserved_port
from tests.support.processes import Done, MasterProcess, OurAgent

pytestmark = [pytest.mark.interop, pytest.mark.slow]

NODES = 30


def agent(root: Path, port: int, name: str) -> OurAgent:
    (root / name).mkdir(exist_ok=True)
    return OurAgent(root / name, port, f"{name}.example.com", facts={"stage_root": str(root / name / "stage")})


def further_nodes(facts: Path, template: str) -> None:
    """Write facts of further nodes, which are those of one that has run."""
    text = (facts / f"{template}.example.com.json").read_text("utf-8")
    for number in range(len(list(facts.glob("*.json"))), NODES):
        (facts / f"node{number}.example.com.json").write_text(text.replace(template, f"node{number}"))


def migrate(process: MasterProcess, old: Path, *words: str) -> Done:
    return process.puppet("migrate", *words, "--from", str(old / "conf"))


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder that the server's own user can enter."""
    with tempfile.TemporaryDirectory(prefix="migration-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(bool(PUPPETSERVER_7.why_not()), reason=PUPPETSERVER_7.why_not())
def test_a_site_moves_and_moves_back(root: Path) -> None:
    old, new = root / "old", root / "new"
    old.mkdir()
    with reserved_port() as port:
        configured(PUPPETSERVER_7, old, port, 1)
        (old / "puppetserver").symlink_to(old)  # where its package has conf.d
        with running(old, port):
            for name in ("web1", "web2", "classified1"):
                assert agent(root, port, name).test().code == 2
            further_nodes(old / "var" / "server_data" / "facts", "web2")
            assert "Stop it first" in migrate(MasterProcess(new), old, "run", "--force")

        process = MasterProcess(new, port=port)
        checked = migrate(process, old, "check", "--json")
        assert checked.code == 0, checked.text
        found = json.loads(checked.text[checked.text.index("{") :])
        assert found["ok"] and found["catalogs"]["counts"] | {"nodes": NODES, "unchanged": NODES} == found["catalogs"]["counts"]
        assert not new.exists()

        done = migrate(process, old, "run")
        assert done.code == 0, done.text
        moved = MasterProcess(new, port=port)
        try:
            moved.start()
            assert agent(root, port, "web1").test().code == 0
            assert agent(root, port, "later").test().code == 2
            moved.revoke("web2.example.com")
            assert "Stop it first" in migrate(moved, old, "undo")
            moved.stop()
        finally:
            moved.kill()
        back = migrate(process, old, "undo")
        assert back.code == 0, back.text
        assert not (new / "conf" / "puppet.conf").exists()
        with running(old, port):
            assert agent(root, port, "later").test().code == 0
            assert agent(root, port, "web2").test().code == 1

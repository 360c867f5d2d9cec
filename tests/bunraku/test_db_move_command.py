"""`puppet db move`, from its command line to what it prints."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bunraku.stores import moving
from store.database.engine import Database
from store.writing.writer import DatabaseWriter
from tests.support.command_line import Puppet, Said
from tests.support.store_commands import facts_command, received


async def fill(path: Path) -> None:
    """Write the facts of a node."""
    path.parent.mkdir(parents=True, exist_ok=True)
    database = Database.open(f"sqlite:///{path}")
    await database.migrate()
    await DatabaseWriter(database).write(received(facts_command(1, {"a": {"b": 1}})))
    await database.close()


def move(puppet: Puppet, *words: str) -> Said:
    return puppet("db", "move", "--user=root", *words)


def test_a_move_says_which_setting_to_change(puppet: Puppet, tmp_path: Path) -> None:
    asyncio.run(fill(tmp_path / "vardir/store/store.sqlite"))
    target = f"sqlite:///{tmp_path}/other.sqlite"
    said = move(puppet, "--from", "sqlite", "--to", target)
    assert (said.code, said.err) == (0, "")
    first, *_, setting, last = said.out.splitlines()
    assert f"/vardir/store/store.sqlite and {target} hold the same 6 rows in 15 tables" in first
    assert setting == f"    store = {target}" and last.startswith("and start them.")


def test_a_move_into_the_folder_of_the_store_makes_it(puppet: Puppet, tmp_path: Path) -> None:
    asyncio.run(fill(tmp_path / "old.sqlite"))
    said = move(puppet, "--from", f"sqlite:///{tmp_path}/old.sqlite", "--to", "sqlite")
    assert said.code == 0 and "\n    store = sqlite\n" in said.out
    folder = tmp_path / "vardir/store"
    assert (folder.stat().st_mode & 0o777, (folder / "store.sqlite").stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_move_as_json(puppet: Puppet, tmp_path: Path) -> None:
    asyncio.run(fill(tmp_path / "vardir/store/store.sqlite"))
    words = ("--from", "sqlite", "--to", f"sqlite:///{tmp_path}/other.sqlite", "--json")
    result, again = json.loads(move(puppet, *words).out), json.loads(move(puppet, *words).out)
    assert (result["resumed"], result["copied"], result["setting"]) == (False, 6, {"store": f"sqlite:///{tmp_path}/other.sqlite"})
    assert result["tables"]["facts"]["rows"] == 1 and len(result["tables"]["facts"]["hash"]) == 32
    assert (again["resumed"], again["copied"], again["tables"]) == (True, 0, result["tables"])


def test_a_move_that_is_interrupted_says_how_it_goes_on(puppet: Puppet, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(moving, "move_database", interrupt)
    said = move(puppet, "--from", "sqlite", "--to", "postgresql://db.example.com/store")
    assert said.code == 1 and "interrupted" in said.err and "the same command goes on where this one stopped" in said.err


def test_no_password_is_printed(puppet: Puppet, tmp_path: Path) -> None:
    asyncio.run(fill(tmp_path / "vardir/store/store.sqlite"))
    said = move(puppet, "--from", "sqlite", "--to", f"postgresql://store:secret@/store?host={tmp_path}")
    assert said.code == 1 and "secret" not in said.err + said.out
    assert "Error: postgresql://store:***@/store" in said.err and "the same command goes on" in said.err


WRONG = {
    "no source": (["--to", "sqlite"], "puppet db move needs --from"),
    "no target": (["--from", "sqlite"], "puppet db move needs --to"),
    "another kind": (["--from", "sqlite", "--to", "mysql://host/store"], "--to: the address of a database begins with sqlite:///"),
    "no address": (["--from", "store", "--to", "sqlite"], "--from: the address of a database is sqlite:///PATH"),
    "an argument": (["--from", "sqlite", "--to", "sqlite", "x"], "puppet db move takes 0 arguments, but you gave 1"),
    "the same": (["--from", "sqlite", "--to", "sqlite"], "Source and target are the same database"),
    "nothing to move": (["--from", "sqlite", "--to", "postgresql:///store"], "There is no database"),
}


@pytest.mark.parametrize("words, message", WRONG.values(), ids=WRONG)
def test_a_move_that_cannot_begin_is_an_error(puppet: Puppet, words: list[str], message: str) -> None:
    said = move(puppet, *words)
    assert said.code == 1 and f"Error: {message}" in said.err


def test_options_of_another_action_are_refused(puppet: Puppet) -> None:
    said = puppet("db", "status", "--from", "sqlite")
    assert said.code == 1 and "puppet db status does not take --from" in said.err

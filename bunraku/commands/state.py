"""Move a master's state to PostgreSQL or to files."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

from shared.data.plainjson import dumps_pretty
from shared.errors import ConfigError, PuppetError
from shared.process import log as logs
from shared.process.cli import text
from shared.process.command import CommandSpec
from shared.process.daemon import hear_hangups
from shared.settings import MasterSettings, load
from shared.settings.store import state_place

from ..faces import JsonFaceOptions

_AGAIN = "Nothing is lost, and the same command goes on where this one stopped."


@dataclass(frozen=True, slots=True)
class StateOptions(JsonFaceOptions):
    """The command line of `puppet state`."""

    to: str = text("PLACE", "move: files, or a database as postgresql://USER@HOST/DATABASE")
    from_: str = text("PLACE", "move to files: the database; by default that of the setting state")


@CommandSpec(
    "state",
    StateOptions,
    (MasterSettings,),
    usage=["move --to postgresql://USER@HOST/DATABASE [--json]", "move --to files [--from postgresql://USER@HOST/DATABASE] [--json]"],
    actions={
        "move": "copy this master's certificate authority, facts, nodes, reports and filebucket to a database that several "
        "masters may share, or from there to its files; compare both, and print the setting to change. Everything stays in "
        "the old place, too, except the CA, which cannot be used there any more. Facts and nodes that are newer in the new "
        "place stay there. "
        "Repeat the command to continue an interrupted move",
    },
    text="Run it on a master that is stopped, as root or as the master's user.",
    notes="Exit codes: 0; 1 when not everything could be moved; 39 could not change to the user.",
).main
def main(options: StateOptions, flags: dict[str, Any]) -> int:
    if options.action != "move":
        raise options.unknown_action(main.action_docs)
    options.exactly(0)
    hear_hangups()
    settings = load(MasterSettings, section="master", flags=flags)
    logs.set_up(level=logs.level_of(settings), colour=settings.color)
    address, to_files = _places(options, settings)
    from master.moving.state import StateMove  # the whole master, with SQLAlchemy
    from store.cli import CHANGED_USER, become_service_account

    from ..progress import ProgressLine

    if not become_service_account(settings):
        return CHANGED_USER
    move = StateMove(settings, address, to_files=to_files)
    start = time.monotonic()
    steps: list[str] = []
    try:
        with ProgressLine() as line:
            moved = asyncio.run(move.run(lambda kind, done, total: line.show_part(kind, done, total, "groups")))
        # The CA at last, for it is not usable in two places.
        move.move_ca(steps.append)
    except KeyboardInterrupt as err:
        raise PuppetError("The move was interrupted", hint=_AGAIN) from err
    setting = "files" if to_files else _without_password(address)
    if options.as_json:
        result = {"moved": [asdict(kind) for kind in moved], "ca": steps, "setting": {"state": setting}}
        sys.stdout.buffer.write(dumps_pretty(result))
        return 0
    for kind in moved:
        newer = f"; {kind.newer} are newer there" if kind.newer else ""
        print(f"{kind.kind}: {kind.entries} are in the new place, {kind.copied} of them copied now{newer}")
    for step in steps:
        print(step)
    print(f"This took {time.monotonic() - start:.0f} s. Now change the setting in the section [server] of puppet.conf:")
    print(f"    state = {setting}")
    print("and start the master.")
    return 0


def _places(options: StateOptions, settings: MasterSettings) -> tuple[str, bool]:
    """Return the database, and whether the move goes from there to files; raise ConfigError."""
    if not options.to:
        raise ConfigError("puppet state move needs --to", hint="Write --to postgresql://USER@HOST/DATABASE, or --to files.")
    try:
        target, source = state_place(options.to), state_place(options.from_ or "files")
    except ValueError as err:
        raise ConfigError(str(err)) from err
    if target != "files":
        if source != "files":
            raise ConfigError("A state is not moved from one database to another", hint="pg_dump and pg_restore do that.")
        return target, False
    if source == "files":
        source = settings.state
    if source == "files":
        raise ConfigError("The setting state names no database to move from", hint="Write --from postgresql://USER@HOST/DATABASE.")
    return source, True


def _without_password(address: str) -> str:
    return re.sub(r"(//[^:@/]*:)[^@/]*@", r"\1***@", address)

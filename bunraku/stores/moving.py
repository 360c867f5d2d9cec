"""`puppet db move`: copy a store from one database to another."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import URL

from shared.data.plainjson import dumps_pretty
from shared.errors import ConfigError, PuppetError
from shared.filesystem.files import make_directory
from shared.process import log as logs
from shared.settings import MasterSettings, load
from store.cli import CHANGED_USER, become_service_account
from store.database.writers import parse_address
from store.moving.move import MoveResult, move_database

from ..progress import ProgressLine

_AGAIN = "Both databases are in order, and the same command goes on where this one stopped."


def move(source: str, target: str, flags: Mapping[str, Any], *, restart: bool, as_json: bool) -> int:
    """
    Copy a store; return the exit code.

    Args:
        source: `sqlite` for the file in store_dir, or the address of a database.
        target: The same.
        flags: The settings of the command line.
        restart: True: empty a target that an earlier call has begun to fill.
    Raises:
        PuppetError: The move was not done, or not to its end.
    """
    settings = load(MasterSettings, section="master", flags=flags)
    logs.set_up(level=logs.level_of(settings), colour=settings.color)
    first, second = _address_of(source, settings, "--from"), _address_of(target, settings, "--to")
    if not become_service_account(settings):
        return CHANGED_USER
    make_directory(settings.store_dir, mode=0o700, inherit=True)
    start = time.monotonic()
    try:
        with ProgressLine() as line:
            result = move_database(first, second, lambda label, done, total: line.show_part(label, done, total, "rows"), restart=restart)
    except KeyboardInterrupt as err:
        raise PuppetError("The move was interrupted", hint=_AGAIN) from err
    setting = _setting_of(second, settings)
    if as_json:
        sys.stdout.buffer.write(dumps_pretty(_as_json(result, setting)))
    else:
        _print_result(result, setting, time.monotonic() - start)
    return 0


def _address_of(text: str, settings: MasterSettings, option: str) -> URL:
    """Return the address of a database; ConfigError for none."""
    if not text:
        raise ConfigError(f"puppet db move needs {option}", hint="Write --from DATABASE --to DATABASE; see 'puppet db --help'.")
    if text == "sqlite":
        return URL.create("sqlite", database=str(_default_file(settings)))
    try:
        return parse_address(text)
    except ValueError as err:
        raise ConfigError(f"{option}: {err}", hint="Or write sqlite, for the file in store_dir.") from err


def _default_file(settings: MasterSettings) -> Path:
    return settings.store_dir / "store.sqlite"


def _setting_of(target: URL, settings: MasterSettings) -> str:
    """Return the value of the setting `store` for a database, without its password."""
    if target.drivername == "sqlite" and Path(target.database or "").resolve() == _default_file(settings).resolve():
        return "sqlite"
    return target.render_as_string(hide_password=True)


def _as_json(result: MoveResult, setting: str) -> dict[str, object]:
    return {
        "from": result.source,
        "to": result.target,
        "resumed": result.is_resumed,
        "copied": result.copied,
        "tables": {name: {"rows": digest.rows, "hash": digest.hash} for name, digest in result.tables.items()},
        "setting": {"store": setting},
    }


def _print_result(result: MoveResult, setting: str, seconds: float) -> None:
    rows = sum(digest.rows for digest in result.tables.values())
    earlier = f", of which earlier calls had copied {rows - result.copied}" if result.is_resumed else ""
    print(f"{result.source} and {result.target} hold the same {rows} rows in {len(result.tables)} tables{earlier} ({seconds:.0f} s)")
    print("Now let the masters and stores that used the first one use the second: in the section [server] of their puppet.conf")
    print(f"    store = {setting}")
    print("and start them. The first one is as it was; remove it when you no longer need it.")

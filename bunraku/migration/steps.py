"""The steps of a migration, each recorded before it is done so that it can be undone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from ca.setup.adoption import adopt
from certs.files.cadir import CaFiles
from certs.files.ssldir import SslDir
from shared.data import plainjson
from shared.errors import BadData, ConfigError, Conflict, NotFound
from shared.filesystem.files import make_directory, owner_in, read_regular, sync_directory, write_atomic
from shared.process.service import account_of, make_room
from shared.settings import MasterSettings

from .plan import PRIVATE_MODE, PUBLIC_MODE, MigrationPlan, PlannedFile

JOURNAL = "migration.json"
MAX_FILE = 64 * 2**20
"""Bytes of a file that is copied."""
_KEPT = ".before-migration"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Journal:
    """
    A migration that was done, as `migration.json` in confdir records it.

    Attributes:
        written: files that were written; `kept`: those of them that were there before, under their name and `.before-migration`.
        source_ca, cadir: the CA that was copied, and its copy; '' for none.
    """

    written: tuple[str, ...]
    kept: tuple[str, ...]
    source_ca: str = ""
    cadir: str = ""

    @classmethod
    def read(cls, confdir: Path) -> Self:
        """Return the journal; NotFound when no migration was done here, BadData when it cannot be read."""
        path = confdir / JOURNAL
        try:
            entry: Any = plainjson.loads(read_regular(path))
            return cls(tuple(entry["written"]), tuple(entry["kept"]), entry["source_ca"], entry["cadir"])
        except FileNotFoundError:
            raise NotFound(f"No migration is recorded in {path}", hint="There is nothing to undo.") from None
        except (KeyError, TypeError) as err:
            raise BadData(f"{path} is no record of a migration") from err

    def save(self, confdir: Path) -> None:
        write_atomic(confdir / JOURNAL, json.dumps(asdict(self), indent=1).encode(), mode=PRIVATE_MODE, owner=owner_in(confdir))


def check_possible(plan: MigrationPlan) -> None:
    """Raise Conflict when the server runs, so that its CA may sign while it is copied, or when a migration was done already."""
    if (plan.target.confdir / JOURNAL).exists():
        raise Conflict("A migration was done here already", hint="Undo it first: puppet migrate undo")
    if plan.adopts_ca and (sign := plan.server.running):
        raise Conflict(
            f"The server runs ({sign}), so its CA may sign while it is copied", hint="Stop it first: systemctl stop puppetserver"
        )


def migrate(plan: MigrationPlan, now: datetime, say: Say) -> None:
    """
    Write the configuration, the host's identity, data and the CA of a plan. The server's own files stay as they are.

    Raises:
        ConfigError: the CA cannot be copied. OSError.
    """
    target = plan.target
    if plan.adopts_ca:  # checks all of it before anything is written
        adopt(plan.server.settings.cadir, CaFiles.at(target.cadir), now=now, ssldir=SslDir.of(plan.server.settings), noop=True)
    make_directory(target.confdir)
    make_room(target)
    conf = target.confdir / "puppet.conf"
    copies = (*plan.files, *plan.identity, *plan.data)
    paths = [conf, *(file.target for file in copies)]
    kept = tuple(str(path) for path in paths if path.exists())
    ca = (str(plan.server.settings.cadir), str(target.cadir)) if plan.adopts_ca else ("", "")
    Journal(tuple(map(str, paths)), kept, *ca).save(target.confdir)
    for path in map(Path, kept):
        os.link(path, _kept(path))
    account = account_of(target)
    # It may hold passwords: nobody reads it who could not read the server's, but the master's account.
    source = plan.server.confdir / "puppet.conf"
    mode = PUBLIC_MODE & source.stat().st_mode if source.exists() else PUBLIC_MODE
    write_atomic(conf, plan.conf.encode(), mode=mode, owner=account or owner_in(target.confdir))
    say(f"Wrote {conf}")
    for kind, files in (("configuration", plan.files), ("key and certificates", plan.identity), ("facts and nodes", plan.data)):
        for file in files:
            _copy(file, account)
        if files:
            say(f"Copied {kind}: {_listed(files)}")
    if plan.adopts_ca:
        adoption = adopt(plan.server.settings.cadir, CaFiles.at(target.cadir), now=now, ssldir=SslDir.of(target), owner=account)
        say(f"Copied the CA to {target.cadir}: {len(adoption.signed)} certificates, {adoption.revoked} revoked")


def undo(target: MasterSettings, is_running: bool, now: datetime, say: Say) -> None:
    """
    Put back what a migration replaced, and give the server the CA as it is now, with all that was signed and revoked since.

    Args:
        is_running: whether this master runs, so that its CA may sign.
    Raises:
        NotFound: no migration was done here. Conflict: the master runs. ConfigError: the CA cannot be copied back. OSError.
    """
    journal = Journal.read(target.confdir)
    if is_running:
        raise Conflict("This master runs, so its CA may sign while it is copied", hint="Stop it first: systemctl stop puppet-master")
    if journal.cadir and CaFiles.at(Path(journal.cadir)).cacert.exists():
        _give_back(Path(journal.cadir), Path(journal.source_ca), target, now)
        say(f"Copied the CA back to {journal.source_ca}; the folder as it was before is {_aside(Path(journal.source_ca), now)}")
        moved = Path(journal.cadir).rename(_aside(Path(journal.cadir), now))
        say(f"Moved {journal.cadir} to {moved}")
    for path in map(Path, journal.written):
        if str(path) in journal.kept:
            if _kept(path).exists():
                _kept(path).replace(path)
        else:
            path.unlink(missing_ok=True)
    sync_directory(target.confdir)
    say(f"Restored {len(journal.kept)} files and removed {len(journal.written) - len(journal.kept)}")
    (target.confdir / JOURNAL).unlink()


def _give_back(cadir: Path, source: Path, target: MasterSettings, now: datetime) -> None:
    """Copy the CA to the server's folder, whose files stay beside it under another name."""
    if not source.is_dir():
        raise ConfigError(f"There is no folder {source} any more", hint="Make it for the server's account, and try again.")
    status = source.stat()
    aside = _aside(source, now)
    adopt(cadir, CaFiles.at(aside), now=now, ssldir=SslDir.of(target), noop=True)
    source.rename(aside)
    try:
        adopt(
            cadir,
            CaFiles.at(source),
            now=now,
            ssldir=SslDir.of(target),
            owner=(status.st_uid, status.st_gid) if os.geteuid() == 0 else None,
        )
    except BaseException:
        if not source.exists():
            aside.rename(source)
        raise


def _aside(path: Path, now: datetime) -> Path:
    return path.with_name(f"{path.name}.{now:%Y%m%d%H%M%S}")


def _kept(path: Path) -> Path:
    return path.with_name(path.name + _KEPT)


def _copy(file: PlannedFile, account: tuple[int, int] | None) -> None:
    try:
        content = read_regular(file.source, MAX_FILE)
    except BadData as err:
        raise BadData(f"{file.source} cannot be copied: {err.message}") from err
    make_directory(file.target.parent, inherit=True)
    write_atomic(file.target, content, mode=file.mode & file.source.stat().st_mode, owner=account or owner_in(file.target.parent))


def _listed(files: tuple[PlannedFile, ...]) -> str:
    names = [str(file.target) for file in files]
    return ", ".join(names) if len(names) <= 6 else f"{len(names)} files in {files[0].target.parent.parent}"

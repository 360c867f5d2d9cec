"""The conditions that a master's services need: compiling processes, a CA's folder, revocation lists in force, space on disks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from ca.service import CaService
from certs.certificates import time_text
from certs.files.cadir import CaFiles
from httpd.tls.trust import ServerTrust
from shared.errors import Unavailable
from shared.settings import MasterSettings

from ..observability.health import COMPILING, Condition
from ..pools.process_pool import ProcessPool
from .store_process import StoreProcess

LEAST_FREE = 8 * 2**20  # bytes
LEAST_FILES = 16


def conditions(
    settings: MasterSettings,
    processes: ProcessPool,
    trust: Callable[[], ServerTrust],
    store: StoreProcess | None = None,
    ca: CaService | None = None,
) -> Iterable[Condition]:
    """Yield the conditions for these settings; `trust` returns the revocation lists in force."""
    yield Condition(ProcessPool.CONDITION, "No catalog can be compiled", COMPILING, partial(_self_test, processes))
    yield Condition("revocation-lists", "The revocation list has ended", ("ca", *COMPILING), partial(_lists_in_force, trust))
    stores = {"yaml": settings.yamldir / "facts", "json": settings.server_datadir / "facts"}
    facts = stores.get(settings.facts_terminus or settings.place_of_state("yaml"))
    if facts is not None:
        yield Condition("facts-store", "Facts cannot be stored", COMPILING, partial(_writable, facts))
    if "store" in settings.reports and settings.state == "files":
        yield Condition("report-store", "Reports cannot be stored", (), partial(_writable, settings.reportdir))
    bucket = settings.bucketdir if settings.state == "files" else settings.state_queue
    yield Condition("bucket", "The filebucket cannot be written to", (), partial(_writable, bucket))
    if store is not None:
        yield Condition("store", "The store does not run", (), partial(_store_runs, store))
    if settings.ca:
        files = CaFiles.at(settings.cadir)
        is_shared = ca is not None and ca.store.is_shared
        folders = (files.cadir,) if is_shared else (files.cadir, files.csrdir, files.signeddir)
        yield Condition("ca-folder", "The CA's folder cannot be written to", ("ca",), partial(_writable, *folders))
        if ca is not None and is_shared:
            yield Condition("ca-database", "The CA's database is away; the last revocation list holds", ("ca",), partial(_follows, ca))


async def _self_test(processes: ProcessPool) -> str:
    await processes.self_test()
    return processes.problem or ""


async def _lists_in_force(trust: Callable[[], ServerTrust]) -> str:
    end = trust().next_update
    return "" if end is None or end > datetime.now(UTC) else f"it expired on {time_text(end)}; every agent's certificate is refused"


async def _follows(ca: CaService) -> str:
    """Look for changes of other masters as well, so that a lost notice costs no more than the time between two checks."""
    try:
        await ca.follow()
    except Unavailable as err:
        since = ca.store.last_seen
        confirmed = f"the one that was last confirmed on {time_text(since)}" if since is not None else "a copy from before the start"
        return f"{err}. Nothing is signed or revoked; the revocation list in force is {confirmed}"
    return ""


async def _store_runs(store: StoreProcess) -> str:
    return store.problem


async def _writable(*folders: Path) -> str:
    return await asyncio.to_thread(lambda: next(filter(None, map(write_problem, folders)), ""))


def write_problem(folder: Path) -> str:
    """Return why this process cannot write into a folder, which may not exist yet; '' when it can. Blocks."""
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK, effective_ids=True):
        return f"{nearest} may not be written to by the account of the master, or is read-only"
    space = os.statvfs(nearest)
    if space.f_bavail * space.f_frsize < LEAST_FREE:
        return f"the disk of {nearest} is full"
    if space.f_files and space.f_favail < LEAST_FILES:  # some file systems do not count them
        return f"the disk of {nearest} takes no more files"
    return ""

"""Check where facts, catalogs and reports go: that settings and files agree about it, and that the store or PuppetDB can be used."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from environments.directories import Environments
from environments.settings import environment_settings
from httpd.connections.plain import LONGEST_SOCKET_PATH
from shared.errors import PuppetError
from shared.settings import MasterSettings

from ..bindings import bind
from ..observability.metrics import Metrics
from ..pools.configured import compile_pool_for
from ..puppetdb.choice import store_choice
from ..puppetdb.client import PuppetDbClient
from ..puppetdb.configuration import DEFAULT_URL, unknown_puppetdb_settings
from ..puppetdb.configured import CONFIGURATION, puppetdb_client
from ..puppetdb.termini import PuppetDbCatalogs, PuppetDbFacts
from ..service.conditions import write_problem
from .account import inspect_as_account
from .findings import Finding, Severity, run_check

AREA: Final = "store"
_FAREWELL = 0.05  # seconds in which connections that failed end; the loop would end before them
SERVER_TIMEOUT = 10.0  # seconds for a server of a PuppetDB to answer, or server_url_timeout where that is shorter


def check(settings: MasterSettings) -> list[Finding]:
    """Return the store that the master will use, the reason, and the store's problems."""
    parts: list[Callable[[], Iterable[Finding]]] = [partial(_agreement, settings)]
    if settings.runs_store:
        parts += [partial(_place, settings), partial(inspect_as_account, settings, AREA, "store.process.inspection")]
    findings = [Finding(AREA, "notice", store_choice(settings))]
    for part in parts:
        findings += run_check(AREA, part)
    return findings


def _agreement(settings: MasterSettings) -> Iterator[Finding]:
    """Yield where puppet.conf, routes.yaml and puppetdb.conf contradict each other; of a PuppetDB that is used, also how its servers do."""
    file = settings.confdir / CONFIGURATION
    source = settings.source_of("storeconfigs")
    if settings.store != "none" and source is not None and str(source.value).lower() == "false":
        message = f"storeconfigs = false {source.where or 'on the command line'} does not count: a store switches it on"
        yield Finding(AREA, "warning", message, "Leave it out, or set store = none.")
    try:
        kinds = _kinds_kept(settings)
    except (PuppetError, OSError, ValueError):
        return  # reported with the settings
    missing = [kind for kind, is_kept in kinds.items() if not is_kept]
    if settings.runs_store:
        if file.exists():
            hint = "Remove the file, or set store = puppetdb, to store facts, catalogs and reports on these servers."
            yield Finding(AREA, "warning", f"{file} is not read: the master has a store of its own", hint)
        if missing:
            hint = f"{settings.route_file} sends them elsewhere: leave out their terminus and cache there."
            yield Finding(AREA, "warning", f"The store gets no {_listed(missing)}", hint)
        return
    if not any(kinds.values()):
        if file.exists():
            hint = "Set storeconfigs = true and reports = store,puppetdb in puppet.conf; without the file, the master has its own store."
            yield Finding(AREA, "warning", f"{file} is there, but nothing is sent to a PuppetDB", hint)
        return
    if missing:
        settings_of = {"reports": "reports = store,puppetdb"}
        hint = "Set " + " and ".join(dict.fromkeys(settings_of.get(kind, "storeconfigs = true") for kind in missing)) + " in puppet.conf."
        yield Finding(AREA, "warning", f"The PuppetDB gets no {_listed(missing)}", hint)
    if not file.exists():
        yield Finding(AREA, "warning", f"There is no {file}: the PuppetDB is {DEFAULT_URL}", "Name its server_urls there.")
    for sentence in unknown_puppetdb_settings(file):
        yield Finding(AREA, "warning", sentence, "docs/puppetdb.md has the settings that count.")
    if settings.hostcert.exists():  # before its first start, a master that is the CA has none to show
        yield from asyncio.run(_servers(puppetdb_client(settings, keep_alive=True)))


def _listed(kinds: Iterable[str]) -> str:
    return " and no ".join(kinds)


def _kinds_kept(settings: MasterSettings) -> dict[str, bool]:
    """Return of facts, catalogs and reports whether the store or the PuppetDB gets them, as the master's bindings have it."""
    environments = Environments(environment_settings(settings))
    indirector = bind(settings, environments, compile_pool_for(settings, environments, Metrics()), None)
    facts, catalogs = indirector.facts, indirector.catalog
    return {
        "facts": isinstance(facts.terminus, PuppetDbFacts) or isinstance(facts.cache, PuppetDbFacts),
        "catalogs": isinstance(catalogs.cache, PuppetDbCatalogs),
        "reports": "puppetdb" in settings.reports,
    }


async def _servers(client: PuppetDbClient) -> list[Finding]:
    """Return the problems of a PuppetDB's servers: an error when too few of them work and no setting tolerates that."""
    configuration = client.configuration
    servers = [*configuration.server_urls, *configuration.submit_only_server_urls]
    seconds = min(SERVER_TIMEOUT, configuration.server_url_timeout)
    try:
        answers = await asyncio.gather(*(client.problem_of(server, seconds) for server in servers))
    finally:
        await client.close()
        await asyncio.sleep(_FAREWELL)
    problems = {server: problem for server, problem in zip(servers, answers, strict=True) if problem is not None}
    working = [server for server in configuration.server_urls if server not in problems]
    is_enough = len(working) >= configuration.min_successful_submissions
    severity: Severity = "warning" if is_enough or configuration.soft_write_failure else "error"
    findings = [Finding(AREA, severity, f"{server}: {problem.message}", problem.hint) for server, problem in problems.items()]
    findings += [
        Finding(AREA, "warning", f"{server} has no port, so it is asked at 443", "PuppetDB listens on 8081: write https://HOST:8081.")
        for server in servers
        if urlsplit(server).port is None
    ]
    return findings


def _place(settings: MasterSettings) -> Iterator[Finding]:
    """Yield the problems of the folders, the disk and the socket of the store."""
    folder, address = settings.store_dir, settings.store
    if address.startswith("sqlite:///") and not (parent := Path(address.removeprefix("sqlite:///")).parent).is_dir():
        yield Finding(AREA, "error", f"There is no folder {parent} for the store's database", "Make it; the setting is store.")
    if problem := write_problem(folder):
        yield Finding(AREA, "error", f"The store cannot write into {folder}: {problem}", "Free some space there, or set another store_dir.")
    else:
        nearest = next(path for path in (folder, *folder.parents) if path.exists())
        space = os.statvfs(nearest)
        free = space.f_bavail * space.f_frsize
        if free < settings.store_queue_bytes:
            message = f"The disk of {nearest} has {free >> 20} MiB left; pending commands may take {settings.store_queue_bytes >> 20} MiB"
            yield Finding(AREA, "warning", message, "Free some space there, set another store_dir, or lower store_queue_bytes.")
    if len(os.fsencode(settings.store_socket)) > LONGEST_SOCKET_PATH:
        message = f"The path of the store's socket has more than {LONGEST_SOCKET_PATH} bytes: {settings.store_socket}"
        yield Finding(AREA, "error", message, "Set store_socket, or rundir, to a shorter path.")

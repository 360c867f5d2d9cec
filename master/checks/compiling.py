"""Check that the master's account can start a compiling process, and that this compiles."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Final

from environments.directories import Environments
from environments.settings import environment_settings
from shared.errors import ConfigError
from shared.process import daemon
from shared.settings import MasterSettings

from ..observability.metrics import Metrics
from ..pools.configured import compile_pool_for
from .findings import Finding

AREA: Final = "compiling"


def check(settings: MasterSettings) -> Iterator[Finding]:
    """Let a process compile next to nothing, as the account that a master of root becomes."""
    account = None
    if os.geteuid() == 0 and settings.user != "root":
        try:
            account = daemon.account(settings.user, settings.group)
        except ConfigError:
            return  # reported with the settings
    problem, warnings = asyncio.run(_self_test(settings, account))
    for warning in warnings:
        yield Finding(
            AREA, "warning", warning, "Until then each new process compiles all manifests again, which takes time but fails no catalog."
        )
    if problem:
        hint = "Agents would get 500 instead, and proxies would see the state 'error'."
        yield Finding(AREA, "error", f"No catalog can be compiled: {problem}", hint)


async def _self_test(settings: MasterSettings, account: tuple[int, int] | None) -> tuple[str, set[str]]:
    """Return why no catalog can be compiled, and the optional parts that the process lacks."""
    if not settings.code_cache.exists():  # the processes would make the folder
        settings = settings.model_copy(update={"code_cache": None})
    environments = Environments(environment_settings(settings))
    processes = compile_pool_for(settings, environments, Metrics(), on_problem=lambda problem: None, start_as=account).processes
    try:
        await processes.self_test()
    finally:
        await processes.close()
    return processes.problem or "", processes.warnings

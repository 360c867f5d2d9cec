"""Download plugins from the master. Source: command line reference 2.11."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from agent.run.retrieval import sync_plugins
from shared.errors import PuppetError
from shared.process import log as logs
from shared.process.command import CommandSpec
from shared.settings import AgentSettings, load

from ..faces import FaceOptions
from ..peer import open_wiring

log = logging.getLogger("puppet.agent")


@CommandSpec(
    "plugin",
    FaceOptions,
    (AgentSettings,),
    actions={"download": "fetch plugins and external facts of the environment's modules, as each run of the agent does first"},
    notes="Exit codes: 0 done, 1 something could not be fetched.",
).main
def main(options: FaceOptions, flags: dict[str, Any]) -> int:
    if options.action != "download":
        raise options.unknown_action(["download"])
    settings = load(AgentSettings, section="agent", flags=flags)
    logs.set_up(level=logs.level_of(settings), colour=settings.color)
    options.exactly(0)
    paths = asyncio.run(download(settings))
    print(f"Downloaded these plugins: {', '.join(paths)}" if paths else "No plugins downloaded.")
    return 0


async def download(settings: AgentSettings) -> list[str]:
    """
    Return the paths of all copied or removed files.

    Raises:
        PuppetError: a mount or a file could not be copied; its name and the reason were logged.
    """
    async with open_wiring(settings, "fileserver") as wiring:
        done = [each async for each in sync_plugins(wiring, await wiring.file_server.dialect())]
    problems = [(mount.label, synced.problem) for mount, synced in done if synced.problem]
    for label, problem in problems:
        log.error("Could not retrieve %s: %s", label, problem)
    if problems or any(synced.failed for _, synced in done):
        raise PuppetError("Not all plugins could be downloaded")
    return [str(mount.destination / name) for mount, synced in done for name in (*synced.fetched, *synced.removed)]

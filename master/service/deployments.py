"""The deployments that a web hook asked for, one after another, each by `puppet deploy` in a process of its own."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shared.data import plainjson
from shared.errors import BadData, PuppetError, Unavailable
from shared.process.log import NOTICE
from shared.programs import run_output
from shared.settings import MasterSettings

log = logging.getLogger("puppet.deploy")

COMMAND = (sys.executable, "-I", "-m", "bunraku", "deploy")
MAX_ANSWER = 4 << 20  # octets of its result
PROGRAMS = 10  # the most programs of which each may take deploy_timeout

Deploy = Callable[[str, str], Awaitable[str]]


@dataclass(eq=False, repr=False)
class DeploymentQueue:
    """
    The queue of deployments: one runs at a time, and of one environment one waits, for the last ref that was asked for.

    Args:
        deploy: Deploys a ref to an environment; returns what the environment is then, and raises PuppetError.
        most: How many may wait.
    """

    deploy: Deploy
    most: int
    _waiting: dict[str, str] = field(default_factory=dict, init=False)
    _added: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def add(self, environment: str, ref: str) -> None:
        """Have a ref deployed to an environment; Unavailable when too many wait."""
        if environment not in self._waiting and len(self._waiting) >= self.most:
            raise Unavailable(f"{self.most} deployments are waiting already", retry_after=60)
        self._waiting[environment] = ref
        self._added.set()

    async def work(self) -> None:
        """Deploy what was added, for ever."""
        while True:
            await self._added.wait()
            while self._waiting:
                environment = next(iter(self._waiting))
                ref = self._waiting.pop(environment)
                log.log(NOTICE, "Deploying %s to %s, as the web hook asked", ref, environment)
                try:
                    log.log(NOTICE, "%s is %s now", environment, await self.deploy(environment, ref))
                except PuppetError as err:
                    log.error("%s was not deployed to %s: %s", ref, environment, err)
            self._added.clear()


def deploy_by_program(settings: MasterSettings, command: Sequence[str] = COMMAND) -> Deploy:
    """Return what starts `puppet deploy` for a master of these settings. The program reads those of deployments in puppet.conf itself."""
    flags = {"confdir": settings.confdir, "codedir": settings.codedir, "vardir": settings.vardir}
    paths = {"environmentpath": settings.environmentpath, "basemodulepath": settings.basemodulepath}
    words = [f"--{name}={value}" for name, value in flags.items()]
    words += [f"--{name}={':'.join(map(str, value))}" for name, value in paths.items()]
    environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": str(Path("/"))}
    timeout = settings.deploy_timeout * PROGRAMS

    async def deploy(environment: str, ref: str) -> str:
        argv = [*command, environment, f"--ref={ref}", "--json", *words]
        action = f"deploy {ref} to {environment}"
        code, output, text = await run_output(argv, timeout=timeout, most=MAX_ANSWER, environ=environ, what=action)
        if code != 0:
            raise PuppetError(text.removeprefix("Error: ") or f"puppet deploy ended with {code}")
        try:
            return str(plainjson.loads(output)["version"])
        except (BadData, KeyError, TypeError) as err:
            raise PuppetError(f"puppet deploy printed something else than its result: {err}") from err

    return deploy

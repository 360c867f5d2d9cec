"""The deployments for a web hook, one after another, each by `puppet deploy` in a process of its own."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.data import plainjson
from shared.errors import BadData, Conflict, PuppetError
from shared.programs import run_output
from shared.settings import MasterSettings

from ..code.delivery import Deploy, carry_out, other_branch_waits, too_many_wait

log = logging.getLogger("puppet.deploy")

COMMAND = (sys.executable, "-I", "-m", "bunraku", "deploy")
ROLLOUT_COMMAND = (*COMMAND[:-1], "rollout")
MAX_ANSWER = 4 << 20  # octets of its result
PROGRAMS = 10  # the most programs of which each may take deploy_timeout


@dataclass(eq=False, repr=False)
class DeploymentQueue:
    """
    The queue of deployments: one runs at a time, and each environment has at most one pending, the latest.

    Args:
        deploy: Deploys; see `Deploy`.
        most: How many may wait.
    """

    deploy: Deploy
    most: int
    _waiting: dict[tuple[str, bool], str] = field(default_factory=dict, init=False)  # by environment, and whether it may be removed
    _added: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def add(self, environment: str, ref: str) -> None:
        """
        Queue the deployment of a branch to an environment, or with '' the environment's removal if its branch was removed.

        Raises:
            Conflict: Another branch is pending for the environment.
            Unavailable: Too many are pending.
        """
        key = environment, not ref
        waiting = self._waiting.get(key, ref)
        if waiting != ref:
            raise other_branch_waits(environment, waiting, ref)
        if key not in self._waiting and len(self._waiting) >= self.most:
            raise too_many_wait(self.most)
        self._waiting[key] = ref
        self._added.set()

    async def work(self) -> None:
        """Carry out queued deployments, forever."""
        while True:
            await self._added.wait()
            while self._waiting:
                key = next(iter(self._waiting))
                environment, ref = key[0], self._waiting.pop(key)
                await carry_out(self.deploy, environment, ref)
            self._added.clear()


def deploy_by_program(settings: MasterSettings, command: Sequence[str] = COMMAND) -> Deploy:
    """
    Return the function that starts `puppet deploy` for a master of these settings. The program reads those of deployments in puppet.conf
    itself.
    """

    async def deploy(environment: str, ref: str) -> str:
        action = f"deploy {ref} to {environment}" if ref else f"remove {environment}"
        words = [environment, *([f"--ref={ref}", "--pushed"] if ref else ["--prune"])]
        result = await run_deploy(settings, words, action, command)
        try:
            return str(result["version"]) if ref else "removed" if environment in result["removed"] else "as it was"
        except (KeyError, TypeError) as err:
            raise PuppetError(f"puppet deploy printed something else than its result: {err}") from err

    return deploy


def switch_by_program(settings: MasterSettings, command: Sequence[str] = COMMAND) -> Callable[[str, str], Awaitable[None]]:
    """Return the function with which a master of these settings switches an environment to a stored version; it raises PuppetError."""

    async def switch(environment: str, version: str) -> None:
        await run_deploy(settings, [environment, f"--rollback={version}"], f"switch {environment} to {version}", command)

    return switch


def start_by_program(
    settings: MasterSettings, command: Sequence[str] = ROLLOUT_COMMAND
) -> Callable[[str, Mapping[str, str]], Awaitable[dict[str, Any]]]:
    """Return the function that starts a rollout by `puppet rollout start`, with options by their names; it raises Conflict."""

    async def start(environment: str, options: Mapping[str, str]) -> dict[str, Any]:
        flags = {name.replace("_", "-"): value for name, value in options.items()}
        if flags.pop("noop-first", "false") == "true":
            flags["noop-first"] = ""
        words = ["start", environment, *(f"--{name}={value}" if value else f"--{name}" for name, value in flags.items())]
        try:
            status: dict[str, Any] = await run_deploy(settings, words, f"start a rollout of {environment}", command)
        except PuppetError as err:
            # Before its last error the program shows its progress, and the errors of the preview.
            raise Conflict(err.message.rpartition("Error: ")[2].strip()) from err
        return status

    return start


async def run_deploy(settings: MasterSettings, words: Sequence[str], action: str, command: Sequence[str] = COMMAND) -> Any:
    """Run `puppet deploy` with these words for a master of these settings; return what it prints as JSON. PuppetError when it fails."""
    flags = {"confdir": settings.confdir, "codedir": settings.codedir, "vardir": settings.vardir, "user": settings.user}
    paths = {"environmentpath": settings.environmentpath, "basemodulepath": settings.basemodulepath}
    options = [f"--{name}={value}" for name, value in flags.items()]
    options += [f"--{name}={':'.join(map(str, value))}" for name, value in paths.items()]
    environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": str(Path("/"))}
    timeout = settings.deploy_timeout * PROGRAMS
    argv = [*command, *words, "--json", *options]
    code, output, text = await run_output(argv, timeout=timeout, most=MAX_ANSWER, environ=environ, what=action)
    if code != 0:
        raise PuppetError(text.removeprefix("Error: ") or f"puppet deploy ended with {code}")
    try:
        return plainjson.loads(output)
    except BadData as err:
        raise PuppetError(f"puppet deploy printed something else than its result: {err}") from err

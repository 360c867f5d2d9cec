"""Services that are managed by commands and the process table; base of all other providers. Source: resource layer reference 8."""

from __future__ import annotations

import os
import signal
from typing import Any

from shared.errors import EvaluationError, ResourceError
from shared.ral import Output, Provider, State, execute
from shared.types.exec import Words
from shared.types.service import Service

from ..commands import execute_command

STATUS_SECONDS = 120.0  # the time limit of queries


def parse_processes(text: str, pattern: str, *, own: int) -> int | None:
    """Return the id of the first matching process in the output of `ps -ef`, except `own`. ValueError: not a Ruby expression."""
    from shared.regexps import Regexp  # each run asks for the default provider of services; few look for processes

    expression = Regexp(pattern)
    try:
        _ = expression.pattern
    except EvaluationError as err:
        raise ValueError(f"'{pattern}' is not a regular expression: {err.message}") from err
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[1].isdigit() and int(words[1]) != own and expression.search(line):
            return int(words[1])
    return None


def script_has(resource: Service, action: str) -> bool:
    """Return whether a service's own script supports an action, according to hasrestart and hasstatus."""
    return bool({"restart": resource.hasrestart, "status": resource.hasstatus}.get(action, True))


class ServiceProvider(Provider[Service], type=Service, name="base", features=("refreshable",)):
    """
    Needs a `start` command or `binary`; a `status` command or the process table shows whether it runs.

    `command` returns the init system's own commands; a command in the resource's attribute of the same name goes before them.
    """

    async def command(self, resource: Service, action: str) -> Words | None:
        """Return the system's own command to start, stop, restart or query a service; None: it has none."""
        if action == "start":
            if not resource.binary:
                raise ResourceError("Services must specify a start command or a binary")
            return resource.binary
        return None

    # --- reading

    async def retrieve(self, resource: Service) -> State | None:
        state: dict[str, Any] = {}
        if resource.wanted("ensure") is not None or "ensure" in resource.audit:
            state["ensure"] = await self.status(resource)
        if resource.wanted("enable") is not None or "enable" in resource.audit:
            state |= await self.enablement(resource)
        return state

    async def status(self, resource: Service) -> str:
        """Return `running` or `stopped`."""
        words = await self._words(resource, "status")
        if words:
            output = await execute_command(words, seconds=STATUS_SECONDS, fail=False)
            return "stopped" if output.code else "running"
        return "running" if await self._pid(resource) else "stopped"

    async def enablement(self, resource: Service) -> dict[str, Any]:
        """Return `enable` and the data for comparing it."""
        return {}

    async def _pid(self, resource: Service) -> int | None:
        if not resource.pattern:
            raise ResourceError("Either stop/status commands or a pattern must be specified")
        output = await execute(["ps", "-ef"], seconds=STATUS_SECONDS)
        try:
            return parse_processes(output.text, resource.pattern, own=os.getpid())
        except ValueError as err:
            raise ResourceError(str(err)) from err

    async def _words(self, resource: Service, action: str) -> Words | None:
        own: Words | None = resource.value_of(action)
        return own if own else await self.command(resource, action)

    # --- changing

    async def set(self, resource: Service, attribute: str, desired: Any, state: State | None) -> None:
        if attribute == "enable":
            await self.set_enable(resource, desired, state)
            return
        if attribute != "ensure":
            await super().set(resource, attribute, desired, state)
            return
        await (self.start(resource) if desired == "running" else self.stop(resource))
        # A change of `ensure` also sets `enable`, in the same event.
        enable = resource.wanted("enable")
        if enable is not None:
            declared = resource.declaration.attributes["enable"]
            now = await self.enablement(resource)
            if not declared.insync(resource, now, enable):  # type: ignore[attr-defined]
                await self.set_enable(resource, enable[0], state)

    async def set_enable(self, resource: Service, desired: str, state: State | None) -> None:
        """Change `enable`; only for providers with the feature `enableable`."""
        raise ResourceError(f"The service provider '{self.name}' cannot enable or disable {resource.name}")

    async def start(self, resource: Service) -> None:
        await self._act(resource, "start")

    async def stop(self, resource: Service) -> None:
        if await self._words(resource, "stop"):
            await self._act(resource, "stop")
            return
        pid = await self._pid(resource)
        if pid is None:
            resource.log("info", f"{resource.name} is not running")
            return
        try:
            os.kill(pid, signal.SIGTERM)
        except OSError as err:
            raise ResourceError(f"Could not kill {resource.name}, PID {pid}: {err.strerror}") from err

    async def restart(self, resource: Service) -> None:
        if await self._words(resource, "restart"):
            await self._act(resource, "restart")
        else:
            await self.stop(resource)
            await self.start(resource)

    async def refresh(self, resource: Service) -> None:
        if await self.status(resource) == "running":
            await self.restart(resource)
        else:
            resource.log("debug", "Skipping restart; service is not running")

    async def _act(self, resource: Service, action: str) -> Output:
        words = await self._words(resource, action)
        assert words is not None
        try:
            return await execute_command(words)
        except ResourceError as err:
            raise ResourceError(f"Could not {action} {resource.ref}: {err.message}") from err

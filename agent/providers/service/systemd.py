"""Services of systemd. Source: resource layer reference 8."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from shared.errors import ResourceError
from shared.ral import Command, Confine, Output, State, execute
from shared.types.exec import Words
from shared.types.service import Service

from .base import STATUS_SECONDS, ServiceProvider

_UNIT = re.compile(r"^(\S+)[ \t]+(?:disabled|enabled|masked|indirect|bad|static)(?:[ \t]+\S+)?[ \t]*$", re.IGNORECASE | re.MULTILINE)
_MANY = 8  # queries to systemd at the same time
OLD_DEBIAN = ["5", "6", "7"]
OLD_UBUNTU = ["10.04", "12.04", "14.04", "14.10"]
OLD_MINT = [str(number) for number in range(10, 18)]


def is_systemd(comm: Path = Path("/proc/1/comm")) -> bool:
    """Return whether systemd runs this machine."""
    try:
        return "systemd" in comm.read_text()
    except OSError:
        return False


def parse_units(text: str) -> list[str]:
    """Return the units in the output of `systemctl list-unit-files`."""
    return [match[1] for match in _UNIT.finditer(text)]


def enabled_of(resource_wants: str | None, output: str, code: int) -> str | None:
    """Return the output of `is-enabled` as a value of `enable`; None: it does not know the unit."""
    if resource_wants == "mask" and output == "masked":
        return "mask"
    if output == "indirect":
        return "false"
    if code == 0:
        return "true"
    return None if not output else "false"


class Systemd(
    ServiceProvider,
    name="systemd",
    features=("enableable", "maskable"),
    confine=[Confine("systemd as process 1", lambda _: is_systemd())],
    default_for=[
        {"os.family": "archlinux"},
        {"os.family": "redhat", "os.release.major": ["7", "8", "9", "10"]},
        {"os.family": "redhat", "os.name": "fedora"},
        {"os.family": "suse"},
        {"os.family": "coreos"},
        {"os.name": "amazon", "os.release.major": ["2", "2023"]},
        {"os.name": "debian"},
        {"os.name": "linuxmint"},
        {"os.name": "ubuntu"},
    ],
    not_default_for=[
        {"os.name": "debian", "os.release.major": OLD_DEBIAN},
        {"os.name": "linuxmint", "os.release.major": OLD_MINT},
        {"os.name": "ubuntu", "os.release.major": OLD_UBUNTU},
    ],
):
    """Manages units; `.service` may be left out of a name."""

    systemctl = Command("systemctl")

    def __init__(self) -> None:
        self._unit_files: dict[Service, Output] = {}  # the output of is-enabled, until something changes it
        self._ahead: dict[Service, State] = {}

    async def command(self, resource: Service, action: str) -> Words | None:
        verb = "is-active" if action == "status" else action
        return [self._program(), verb, "--", resource.name]

    def _program(self) -> str:
        path = self.systemctl.find_program(self.systemctl.path)
        if path is None:
            raise ResourceError("Command systemctl is missing")
        return path

    # --- reading

    async def read_ahead(self, resources: Sequence[Service]) -> None:
        gate = asyncio.Semaphore(_MANY)

        async def read(resource: Service) -> None:
            async with gate:
                with suppress(ResourceError):  # it fails again at its turn, which reports it
                    self._ahead[resource] = await super(Systemd, self).retrieve(resource) or {}

        # A status command out of the manifest may have side effects.
        await asyncio.gather(*(read(resource) for resource in resources if not resource.status))

    def forget_ahead(self) -> None:
        self._ahead.clear()
        self._unit_files.clear()

    async def retrieve(self, resource: Service) -> State | None:
        ahead = self._ahead.pop(resource, None)
        return ahead if ahead is not None else await super().retrieve(resource)

    async def enablement(self, resource: Service) -> dict[str, Any]:
        enablement = self._unit_files.get(resource)
        if enablement is None:
            enablement = await self.systemctl("is-enabled", "--", resource.name, seconds=STATUS_SECONDS, fail=False)
            self._unit_files[resource] = enablement
        output = enablement.text.strip()
        desired = resource.wanted("enable") or [None]
        value = enabled_of(desired[0], output, enablement.code)
        return {"enable": value or "false", "unit_file_state": output}

    async def instances(self) -> Mapping[str, State]:
        output = await self.systemctl("list-unit-files", "--type", "service", "--full", "--all", "--no-pager", fail=False)
        if output.code:
            return {}
        gate = asyncio.Semaphore(_MANY)

        async def state_of(name: str) -> State:
            async with gate:
                active = await self.systemctl("is-active", "--", name, seconds=STATUS_SECONDS, fail=False)
                unit = await self.systemctl("is-enabled", "--", name, seconds=STATUS_SECONDS, fail=False)
            return {"ensure": "stopped" if active.code else "running", "enable": enabled_of(None, unit.text.strip(), unit.code) or "false"}

        names = parse_units(output.text)
        return dict(zip(names, await asyncio.gather(*map(state_of, names)), strict=True))

    # --- changing

    async def set_enable(self, resource: Service, desired: str, state: State | None) -> None:
        if desired == "true":
            await self._change_unit(resource, "unmask")
            await self._change_unit(resource, "enable")
        elif desired == "mask":
            known = await self.systemctl("cat", "--", resource.name, seconds=STATUS_SECONDS, fail=False)
            if not known.code:
                await self._change_unit(resource, "disable")
            await self._change_unit(resource, "mask")
        else:
            await self._change_unit(resource, "disable")

    async def _change_unit(self, resource: Service, verb: str) -> None:
        self._unit_files.pop(resource, None)
        try:
            await self.systemctl(verb, "--", resource.name)
        except ResourceError as err:
            raise ResourceError(f"Could not {verb} {resource.name}: {err.message}") from err

    async def start(self, resource: Service) -> None:
        await self._reload_if_needed(resource)
        if not resource.value_of("start"):
            await self._change_unit(resource, "unmask")
        await self._with_journal(resource, "start", super().start(resource))

    async def stop(self, resource: Service) -> None:
        await self._with_journal(resource, "stop", super().stop(resource))

    async def restart(self, resource: Service) -> None:
        await self._reload_if_needed(resource)
        await self._with_journal(resource, "restart", super().restart(resource))

    async def _reload_if_needed(self, resource: Service) -> None:
        """Let systemd read files of units that changed since it read them."""
        output = await self.systemctl("show", "--property=NeedDaemonReload", "--", resource.name, seconds=STATUS_SECONDS, fail=False)
        if output.text.strip().rpartition("=")[2] == "yes":
            await self.systemctl("daemon-reload", fail=False)

    async def _with_journal(self, resource: Service, action: str, operation: Any) -> None:
        """Await `operation`; when it fails, raise its error with the unit's journal."""
        try:
            await operation
        except ResourceError as err:
            text = f"Systemd {action} for {resource.name} failed!\njournalctl log for {resource.name}:\n"
            raise ResourceError(text + await self._journal(resource), hint=err.message) from err

    async def _journal(self, resource: Service) -> str:
        """Return the unit's log of the last minutes."""
        words = ["journalctl", "-n", "50", "--since", "5 minutes ago", "-u", resource.name, "--no-pager"]
        try:
            return (await execute(words, seconds=STATUS_SECONDS, fail=False)).text
        except ResourceError as err:
            return err.message

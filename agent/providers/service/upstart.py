"""Jobs of upstart, on old Ubuntu. Source: resource layer reference 8."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared.errors import ResourceError
from shared.filesystem.files import write_atomic
from shared.ral import Command, State, fact
from shared.types.exec import Words
from shared.types.service import Service

from .base import STATUS_SECONDS
from .debian import Debian
from .systemd import OLD_MINT, OLD_UBUNTU

_START_ON = re.compile(r"^\s*start\s+on", re.MULTILINE)
_COMMENTED = re.compile(r"^\s*#+\s*start\s+on", re.MULTILINE)
_MANUAL = re.compile(r"^\s*manual\s*$", re.MULTILINE)
_INSTANCE = re.compile(r"(network-interface(?:-security)?)\s\(([^)]+)\)")
_DEFAULT_START = "\nstart on runlevel [2,3,4,5]"
MANUAL_SINCE, OVERRIDE_SINCE = (0, 6, 7), (0, 9, 0)


def parse_version(text: str) -> tuple[int, ...]:
    """Return upstart's version, from the output of `initctl --version`."""
    match = re.search(r"initctl \(upstart ([^)]*)\)", text)
    return tuple(int(n) for n in re.findall(r"\d+", match[1])[:3]) if match else ()


def parse_list(text: str) -> list[str]:
    """Return the jobs in the output of `initctl list`; those with instances together with the variable that names the instance."""
    jobs = []
    for line in text.splitlines():
        match = _INSTANCE.match(line)
        if match:
            jobs.append(f"{match[1]} {'JOB' if match[1].endswith('security') else 'INTERFACE'}={match[2]}")
        elif line.strip():
            jobs.append(line.split()[0])
    return jobs


def starts_at_boot(text: str, *, manual: bool = True, before: bool = False) -> bool:
    """Return whether a job's file lets it start by itself: the last `start on` or `manual` counts."""
    for line in text.splitlines():
        if _START_ON.match(line):
            before = True
        elif manual and _MANUAL.match(line):
            before = False
    return before


def start_block(text: str) -> str:
    """Return the `start on` stanza, which may span several lines in parentheses."""
    return "".join(line for line, inside in _mark_stanza(text, _START_ON, _without_comment) if inside)


def comment_out_start(text: str) -> str:
    """Return the same file with its `start on` stanza commented out."""
    return "".join(f"#{line}" if inside else line for line, inside in _mark_stanza(text, _START_ON, _without_comment))


def uncomment_start(text: str) -> str:
    """Return the same file with its commented `start on` stanza in effect."""
    marked = _mark_stanza(text, _COMMENTED, lambda line: re.sub(r"^(\s*#+\s*[^#]*).*", r"\1", line))
    return "".join(re.sub(r"^(\s*)#+", r"\1", line) if inside else line for line, inside in marked)


def _without_comment(line: str) -> str:
    return line.partition("#")[0]


def _mark_stanza(text: str, start: re.Pattern[str], bare: Any) -> list[tuple[str, bool]]:
    """Return each line, and whether it is part of a stanza that begins with `start`; parentheses have to be closed."""
    marked, depth = [], 0
    for line in text.splitlines(keepends=True):
        inside = bool(start.match(line)) or depth > 0
        if inside:
            words = bare(line)
            depth += words.count("(") - words.count(")")
        marked.append((line, inside))
    return marked


def enabled_text(text: str, version: tuple[int, ...]) -> str:
    """Return a job's file, for releases without override files, changed so that the job starts at boot."""
    text = _MANUAL.sub("", text)
    if starts_at_boot(text, manual=version >= MANUAL_SINCE):
        return text
    return uncomment_start(text) if _COMMENTED.search(text) else text + _DEFAULT_START


def enabled_override(text: str, override: str) -> str:
    """Return an override with which the job of `text` starts by itself."""
    override = _MANUAL.sub("", override)
    if starts_at_boot(override, before=starts_at_boot(text)):
        return override
    return override + (start_block(text) if _START_ON.search(text) else _DEFAULT_START)


def disabled_text(text: str) -> str:
    """Return a file (the job's or its override) with which the job does not start by itself."""
    return _MANUAL.sub("", text) + "\nmanual"


class Upstart(
    Debian,
    name="upstart",
    confine=[fact("os.name", "ubuntu", "linuxmint", "redhat", "centos", "amazon", "oraclelinux")],
    default_for=[{"os.name": "ubuntu", "os.release.major": OLD_UBUNTU}, {"os.name": "linuxmint", "os.release.major": OLD_MINT}],
):
    """Manages jobs in /etc/init, and init scripts of services that have no job."""

    start_job = Command("/sbin/start")
    stop_job = Command("/sbin/stop")
    restart_job = Command("/sbin/restart")
    status_of_job = Command("/sbin/status")
    initctl = Command("/sbin/initctl")
    folders = ("/etc/init", "/etc/init.d")

    async def _job(self, resource: Service) -> Path | None:
        """Return the job's file; None: it is an init script."""
        name = resource.name.split()[0]
        if "/" in name:
            raise ResourceError(f"'{resource.name}' is not the name of a service")
        for folder in resource.path or self.folders:
            path = Path(folder) / f"{name}.conf"
            if await asyncio.to_thread(path.exists):
                return path
        return None

    async def command(self, resource: Service, action: str) -> Words | None:
        if await self._job(resource) is None:
            return await super().command(resource, action)
        words = resource.name.split()
        commands = {"start": self.start_job, "stop": self.stop_job, "restart": self.restart_job}
        if action == "status" or (action == "restart" and not resource.hasrestart):
            return None
        return [commands[action].path, *words]

    async def status(self, resource: Service) -> str:
        if not resource.hasstatus or resource.value_of("status") or await self._job(resource) is None:
            return await super().status(resource)
        # Its exit code does not show the state.
        output = await self.status_of_job(*resource.name.split(), seconds=STATUS_SECONDS, fail=False)
        return "running" if "start/" in output.text else "stopped"

    async def instances(self) -> Mapping[str, State]:
        output = await self.initctl("list", seconds=STATUS_SECONDS)
        states: dict[str, State] = {}
        for name in parse_list(output.text):
            resource = Service(name, {})
            states[name] = {"ensure": await self.status(resource), **await self.enablement(resource)}
        return states

    async def _version(self) -> tuple[int, ...]:
        return parse_version((await self.initctl("--version", seconds=STATUS_SECONDS)).text)

    async def enablement(self, resource: Service) -> dict[str, Any]:
        job = await self._job(resource)
        if job is None:
            return await super().enablement(resource)
        version, text = await self._version(), await asyncio.to_thread(_read, job)
        enabled = starts_at_boot(text, manual=version >= MANUAL_SINCE)
        if version >= OVERRIDE_SINCE:
            enabled = starts_at_boot(await asyncio.to_thread(_read, job.with_suffix(".override")), before=enabled)
        return {"enable": "true" if enabled else "false"}

    async def set_enable(self, resource: Service, desired: str, state: State | None) -> None:
        job = await self._job(resource)
        if job is None:
            await super().set_enable(resource, desired, state)
            return
        version, text = await self._version(), await asyncio.to_thread(_read, job)
        target = job.with_suffix(".override") if version >= OVERRIDE_SINCE else job
        override = await asyncio.to_thread(_read, target)
        if desired == "true":
            new = enabled_override(text, override) if version >= OVERRIDE_SINCE else enabled_text(text, version)
        else:
            new = comment_out_start(text) if version < MANUAL_SINCE else disabled_text(override)
        await asyncio.to_thread(write_atomic, target, new.encode("utf-8", "surrogateescape"), mode=0o644)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""

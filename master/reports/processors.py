"""
The report processors store, log and http, and the terminus that runs them.

A processor that fails is logged; the others still run, and the agent is answered all the same, unless nothing could be done
with its report because the disk is full. Source: protocol reference 3.13.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import ssl
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from shared import webtrust
from shared.clock import utc_now
from shared.errors import NO_SPACE, ConfigError, OutOfSpace, Unavailable
from shared.failpoints import failpoint
from shared.filesystem.files import make_directory, owner_in, write_new
from shared.indirector import Request, Terminus
from shared.models.report import LEGACY_FORMAT, Report
from shared.names import valid_certname
from shared.process.log import LEVELS
from shared.settings import MasterSettings

from .stored import LatestReport, latest_reports
from .writers import Writers

log = logging.getLogger("puppet.report")


TIMEOUT = 30.0  # seconds for each processor and report
MOST_IN_A_MINUTE = 10_000  # reports of one host
LINES_AT_ONCE = 100  # lines of one report that are logged before other tasks run


class Processor(Protocol):
    """A report processor; its errors are logged."""

    async def process(self, report: Report) -> None: ...

    async def forget(self, host: str) -> bool:
        """Remove the stored data of a host; return whether there were any."""


Render = Callable[[Report], bytes]
"""Makes the YAML of a report; blocks."""


def of_its_age(report: Report) -> bytes:
    """Return the YAML of a report; of one of 3.x as 3.x wrote it: readers of old reports expect old reports."""
    return report.to_ruby_yaml(legacy=report.report_format <= LEGACY_FORMAT)


@dataclass(eq=False, repr=False)
class Store:
    """The processor that writes `<root>/<host>/<YYYYMMDDHHMM>.yaml` in UTC, by the master's clock; a second one in a minute gets `-1`."""

    root: Path
    _: KW_ONLY
    now: Callable[[], datetime] = utc_now
    writers: Writers = field(default_factory=Writers)
    render: Render = of_its_age

    async def process(self, report: Report) -> None:
        host = valid_certname(report.host)
        try:
            await self.writers.run(lambda: self._write(host, report))
        except OSError as err:
            if err.errno in NO_SPACE:
                raise OutOfSpace("The file system of the reports is full") from err
            raise

    async def forget(self, host: str) -> bool:
        name = valid_certname(host)
        return await self.writers.run(lambda: self._remove(name))

    def latest(self, names: Iterable[str] = ()) -> Iterator[LatestReport]:
        """Yield the last run of each node that has reports, and of those in `names`, by name. Blocks; OSError."""
        return latest_reports(self.root, names)

    def _write(self, host: str, report: Report) -> None:
        folder = self.root / host
        make_directory(folder, mode=0o750, inherit=True)
        body = self.render(report)
        failpoint("report.store")
        try:
            write_new(folder, free_names(folder, self.now().strftime("%Y%m%d%H%M")), body, mode=0o640, owner=owner_in(folder))
        except FileExistsError as err:
            raise OutOfSpace(f"{host} sent more than {MOST_IN_A_MINUTE} reports in one minute") from err
        failpoint("report.written")

    def _remove(self, host: str) -> bool:
        folder = self.root / host
        if not folder.is_dir() or folder.is_symlink():
            return False
        shutil.rmtree(folder)
        return True


class Logged:
    """The processor that writes the report's messages into the master's log."""

    async def process(self, report: Report) -> None:
        for number, line in enumerate(report.logs):
            if number % LINES_AT_ONCE == 0:
                await asyncio.sleep(0)
            log.log(LEVELS.get(line.level, LEVELS["notice"]), "%s", line.message, extra={"source": f"//{report.host}/{line.source}"})

    async def forget(self, host: str) -> bool:
        return False


@dataclass(eq=False, repr=False)
class Http:
    """The processor that sends each report as YAML in a POST to `url`; `trust` names the CAs, `timeout` is in seconds."""

    url: str
    _: KW_ONLY
    trust: Callable[[], ssl.SSLContext] = ssl.create_default_context
    timeout: float = 30.0
    render: Render = Report.to_ruby_yaml

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ConfigError(f"The setting reporturl is not an http address: {self.url}")

    @classmethod
    def of(cls, settings: MasterSettings, render: Render = Report.to_ruby_yaml) -> Http:
        """Return the processor for the setting `reporturl`, with this site's CA, and the system's with `report_include_system_store`."""

        def trust() -> ssl.SSLContext:
            return webtrust.context(
                authority=settings.localcacert,
                system=settings.report_include_system_store,
                trust_store=settings.ssl_trust_store,
                own=(settings.hostcert, settings.hostprivkey),
            )

        return cls(settings.reporturl, trust=trust, render=render)

    async def process(self, report: Report) -> None:
        import aiohttp
        from yarl import URL

        body = await asyncio.to_thread(self.render, report)
        context = await asyncio.to_thread(self.trust) if self.url.startswith("https:") else None
        url = URL(self.url).with_user(None)
        limit = aiohttp.ClientTimeout(total=self.timeout)
        async with (
            aiohttp.ClientSession(timeout=limit) as session,
            session.post(
                self.url, data=body, headers={"Content-Type": "application/x-yaml"}, allow_redirects=False, ssl=context or True
            ) as answer,
        ):
            if answer.status >= 300:
                log.error("Unable to submit report to %s [%s] %s", url, answer.status, answer.reason)

    async def forget(self, host: str) -> bool:
        return False


def free_names(folder: Path, stamp: str) -> Iterator[str]:
    """Yield names for a report of a minute: the usual one, then those from the first on that is free, which is found by bisection."""

    def name(number: int) -> str:
        return f"{stamp}-{number}.yaml"

    yield f"{stamp}.yaml"
    numbers = range(1, MOST_IN_A_MINUTE)
    first = bisect_left(numbers, True, key=lambda number: not os.path.lexists(folder / name(number)))
    yield from map(name, numbers[first:])


def processors_for(names: Sequence[str], makers: Mapping[str, Callable[[], Processor]]) -> dict[str, Processor]:
    """Return the processors that the setting `reports` names; ConfigError for a name that is not there."""
    if list(names) == ["none"]:
        return {}
    unknown = [name for name in names if name not in makers]
    if unknown:
        raise ConfigError(f"No report named '{unknown[0]}'", hint=f"There are {', '.join(sorted(makers))}, and none.")
    return {name: makers[name]() for name in names}


class Processed(Terminus[Report]):
    """The terminus that hands reports to every processor; `timeout` is in seconds for each."""

    def __init__(self, processors: Mapping[str, Processor], *, timeout: float = TIMEOUT) -> None:
        self.processors = dict(processors)
        self.timeout = timeout

    async def save(self, request: Request[Report]) -> object:
        """
        Run all processors; return the names of all, as agents are answered.

        Raises:
            OutOfSpace, Unavailable: No processor succeeded, one of them for this reason; the agent reports it, and goes on.
        """
        report = request.instance
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._run(name, processor, report)) for name, processor in self.processors.items()]
        failures = [failure for task in tasks if (failure := task.result()) is not None]
        lacking = [failure for failure in failures if isinstance(failure, OutOfSpace | Unavailable)]
        if lacking and len(failures) == len(tasks):
            raise lacking[0]
        return list(self.processors)

    async def _run(self, name: str, processor: Processor, report: Report) -> Exception | None:
        try:
            async with asyncio.timeout(self.timeout):
                await processor.process(report)
        except Exception as err:  # noqa: BLE001  # one processor's failure is not the others', nor the agent's
            log.error("Report processor failed: %s of %s: %s: %s", name, report.host, type(err).__name__, err)
            return err
        return None

    async def destroy(self, request: Request[Report]) -> object:
        """Delete the processors' data of a host; return the names of those that had some."""
        return [name for name, processor in self.processors.items() if await processor.forget(request.key)]

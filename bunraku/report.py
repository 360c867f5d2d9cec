"""`puppet report submit`: a report that was kept, sent to the master. Source: command line reference 1.2."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from shared import log as logs
from shared import plainjson, plainyaml
from shared.errors import BadData, PuppetError
from shared.indirector import Request
from shared.models.report import Report
from shared.settings import AgentSettings

from .faces import only_action
from .peer import wired

HELP = """Usage: puppet report submit [FILE] [--server HOST]

Sends a report to the master, as an agent does at the end of a run: that of the last run, or the one in FILE (YAML or JSON).
For runs that could not send theirs, and for `puppet catalog apply`, which sends none.

Exit codes: 0; 1 when there is no such report, or the master did not take it."""

MAX_REPORT = 64 * 2**20  # bytes


def main(argv: Sequence[str]) -> int:
    """Run `puppet report …`; the exit code."""
    asked = only_action("report", "submit", argv, HELP)
    if asked is None:
        return 0
    call, settings = asked
    report = read(Path(call.counted("submit", 1)[0]) if call.words[1:] else settings.lastrunreport)
    asyncio.run(submit(report, settings))
    logging.getLogger("puppet.report").log(logs.NOTICE, "Uploaded report for %s", report.name)
    return 0


def read(path: Path) -> Report:
    """
    The report in a file.

    Raises:
        PuppetError: it cannot be read. BadData: it holds no report.
    """
    try:
        if path.stat().st_size > MAX_REPORT:
            raise BadData(f"Could not read the report {path}: it is larger than {MAX_REPORT} bytes")
        data = path.read_bytes()
    except OSError as err:
        hint = "A run keeps its own at the path of the setting lastrunreport."
        raise PuppetError(f"Could not read the report {path}: {err.strerror}", hint=hint) from err
    try:
        return Report.from_data(plainjson.loads(data) if data.lstrip().startswith(b"{") else plainyaml.loads(data))
    except BadData as err:
        raise BadData(f"Could not read the report {path}: {err.message}", hint=err.hint) from err


async def submit(report: Report, settings: AgentSettings) -> None:
    """PuppetError: the master did not take it."""
    async with wired(settings, "report") as wiring:
        environment = report.environment or wiring.environment
        try:
            async with asyncio.timeout(settings.report_timeout):
                await wiring.indirector["report"].save(Request(report.name, environment, body=report, ignore_cache_save=True))
        except TimeoutError as err:
            raise PuppetError(f"Could not send report: the master did not take it within {settings.report_timeout} seconds") from err
        except PuppetError as err:
            raise PuppetError(f"Could not send report: {err}", hint=err.hint) from err

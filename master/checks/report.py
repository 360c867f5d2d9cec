"""All checks in their order, and the report of their findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import TextIO

from shared.data.plainjson import dumps_pretty
from shared.settings import MasterSettings

from . import certificates, compiling, configuration, environments, permissions, ports, remembering, store
from .account import inspect_as_account
from .findings import Area, Finding, run_check

_ORDER = ("error", "warning", "notice")


_CHECKS: Mapping[Area, Sequence[Callable[[MasterSettings, datetime], Iterable[Finding] | None]]] = {
    "store": (lambda settings, now: store.check(settings),),  # first: what it shares with others is theirs
    "state": (lambda settings, now: check_state(settings),),
    "configuration": (lambda settings, now: configuration.check(settings),),
    "certificates": (certificates.check,),
    "permissions": (lambda settings, now: permissions.check(settings),),
    "environments": (lambda settings, now: environments.check(settings),),
    "compiling": (lambda settings, now: compiling.check(settings), lambda settings, now: remembering.check(settings)),
    "ports": (lambda settings, now: ports.check(settings),),
}


def check_state(settings: MasterSettings) -> Iterable[Finding]:
    """Return the problems of the database that masters share, none where their state is in files. Blocks."""
    return () if settings.state == "files" else inspect_as_account(settings, "state", "master.checks.state_inspection")


def check(settings: MasterSettings, now: datetime, areas: Iterable[Area] = tuple(_CHECKS)) -> list[Finding]:
    """Return all problems and anomalies in these areas, each once, under the last area that found it. Blocks; changes nothing."""
    findings = [finding for area in areas for work in _CHECKS[area] for finding in run_check(area, partial(work, settings, now))]
    return list({(finding.severity, finding.message): finding for finding in findings}.values())


def report(findings: Sequence[Finding], out: TextIO, *, as_json: bool) -> int:
    """Print the findings and return the exit code, 1 when there is an error."""
    errors = sum(finding.severity == "error" for finding in findings)
    if as_json:
        out.write(dumps_pretty({"ok": not errors, "findings": [asdict(finding) for finding in findings]}).decode())
        return 1 if errors else 0
    for line in lines(findings):
        out.write(f"{line}\n")
    warnings = sum(finding.severity == "warning" for finding in findings)
    if errors or warnings:
        out.write(f"{_count(errors, 'error')}, {_count(warnings, 'warning')}\n")
    else:
        out.write("No problems found\n")
    return 1 if errors else 0


def lines(findings: Iterable[Finding]) -> Iterable[str]:
    """Yield the findings as text, errors first, notices last."""
    for finding in sorted(findings, key=lambda finding: _ORDER.index(finding.severity)):
        yield f"{finding.severity.capitalize()} ({finding.area}): {finding.message}"
        if finding.hint:
            yield f"  {finding.hint}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

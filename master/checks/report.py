"""All checks in their order, and how they are told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TextIO

from shared.data.plainjson import dumps_pretty
from shared.settings import MasterSettings

from . import certificates, compiling, configuration, environments, permissions, ports
from .findings import Finding, tried


def check(settings: MasterSettings, now: datetime) -> list[Finding]:
    """Everything that is wrong or odd, each once, under the last area that met it. Blocks; nothing is changed."""
    found = [
        *tried("configuration", lambda: configuration.check(settings)),
        *tried("certificates", lambda: certificates.check(settings, now)),
        *tried("permissions", lambda: permissions.check(settings)),
        *tried("environments", lambda: environments.check(settings)),
        *tried("compiling", lambda: compiling.check(settings)),
        *tried("ports", lambda: ports.check(settings)),
    ]
    return list({(each.severity, each.message): each for each in found}.values())


def report(findings: Sequence[Finding], out: TextIO, *, as_json: bool) -> int:
    """Print the findings; the exit code: 1 when there is an error."""
    errors = sum(each.severity == "error" for each in findings)
    if as_json:
        out.write(dumps_pretty({"ok": not errors, "findings": [asdict(each) for each in findings]}).decode())
        return 1 if errors else 0
    for line in lines(findings):
        out.write(f"{line}\n")
    if findings:
        out.write(f"{_count(errors, 'error')}, {_count(len(findings) - errors, 'warning')}\n")
    else:
        out.write("Nothing is wrong\n")
    return 1 if errors else 0


def lines(findings: Iterable[Finding]) -> Iterable[str]:
    """The findings as text, errors first in each area."""
    for each in sorted(findings, key=lambda each: each.severity):
        yield f"{each.severity.capitalize()} ({each.area}): {each.message}"
        if each.hint:
            yield f"  {each.hint}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

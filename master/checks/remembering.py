"""Report how many of the last catalogs came from the cache, and which code prevents caching of the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from shared.settings import MasterSettings

from ..observability.catalog_origins import MEMORY, Reason
from ..service.origins_file import OriginsFile
from .findings import Finding

AREA: Final = "compiling"
MAX_REASONS = 10
_CHANGES = {
    "new": "were the first of their node in a process",
    "code": "were compiled for changed code",
    "node": "for changed facts or classes",
    "files": "for changed data or templates",
    "answers": "for other answers of a PuppetDB, of programs or of Ruby",
}


def check(settings: MasterSettings) -> Iterator[Finding]:
    """Yield a notice about the last catalogs of the master that runs here, or ran; nothing when it has answered none."""
    if not settings.catalog_memo:
        return
    last = OriginsFile.of(settings).read()
    if last is None or not last.total:
        return
    parts = [f"{last.origins.get(MEMORY, 0)} came from memory"]
    parts += [f"{last.origins[origin]} {text}" for origin, text in _CHANGES.items() if last.origins.get(origin)]
    message = f"Of the last {last.total} catalogs {', '.join(parts)}"
    if not last.uncacheable:
        yield Finding(AREA, "notice", message)
        return
    shown = "; ".join(f"{_text(reason)} ({count})" for reason, count in last.reasons[:MAX_REASONS])
    more = f"; and {len(last.reasons) - MAX_REASONS} more" if len(last.reasons) > MAX_REASONS else ""
    hint = f"They call code whose result cannot be cached (number of catalogs): {shown}{more}."
    yield Finding(AREA, "notice", f"{message}; {last.uncacheable} of them have to be compiled each time", hint)


def _text(reason: Reason) -> str:
    place, text = reason
    return f"{place}: {text}" if place else text

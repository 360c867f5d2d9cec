"""The programs that a deployment starts: without a shell, in a folder, within a time, with an environment of their own."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.git import home_of_user
from shared.programs import run_bounded

MAX_OUTPUT = 4 << 20  # octets


@dataclass(frozen=True, slots=True)
class Programs:
    """
    Starts programs; nothing of this process' own environment reaches them.

    Args:
        timeout: Seconds for each of them.
        path: Where they are looked for.
    """

    timeout: float
    path: str

    def find(self, name: str) -> str | None:
        """Return the absolute path of a program; None when it is not installed."""
        return shutil.which(name, path=self.path)

    def run(self, argv: Sequence[str], action: str, *, folder: Path) -> str:
        """Return the output of a program; raise PuppetError `Failed to <action>: …` when it fails, is slow or prints too much. Blocks."""
        variables = {"PATH": self.path, "HOME": home_of_user(), "LANG": "C.UTF-8"}
        running = run_bounded(argv, timeout=self.timeout, most=MAX_OUTPUT, environ=variables, what=action, folder=str(folder))
        return asyncio.run(running).decode("utf-8", "replace")

"""
Data of the site's programs about a node, for `$trusted['external']` (the setting trusted_external_command).

They are run without a shell, with a deadline and a limit on their output, once for each compile.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environments.code_commands import ENVIRON
from shared.data import plainjson
from shared.errors import BadData, ConfigError, PuppetError
from shared.names import quoted_for_log
from shared.programs import run_bounded
from shared.settings import MasterSettings

SETTING = "trusted_external_command"


@dataclass(frozen=True, slots=True)
class TrustedExternal:
    """
    A program, or a folder of programs, each of which gets a node's name and prints a JSON object.

    Args:
        timeout: Seconds for one program.
        most: Bytes that one program may print.
        at_once: The most programs at a time.
    """

    path: Path | None
    timeout: float = 60.0
    most: int = 16 * 2**20
    at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(8))

    @classmethod
    def of(cls, settings: MasterSettings) -> TrustedExternal:
        """Return it as the settings say; ConfigError when the path is not absolute."""
        path = settings.trusted_external_command
        if path and not path.startswith("/"):
            raise ConfigError(f"The setting {SETTING} must be the absolute path of a program or folder, not {quoted_for_log(path)}")
        return cls(Path(path) if path else None, timeout=settings.command_timeout, most=settings.command_output)

    async def about(self, name: str) -> Mapping[str, Any]:
        """
        Return the programs' data on a node, for a folder by the programs' names without suffix; {} without the setting.

        Raises:
            PuppetError: A program fails or prints no JSON object, or two have one name. No catalog must be compiled without the data.
        """
        if self.path is None:
            return {}
        programs = await asyncio.to_thread(_programs, self.path)
        if programs is None:
            return await self._run(self.path, name)
        return {stem: await self._run(path, name) for stem, path in programs.items()}

    async def _run(self, program: Path, name: str) -> Mapping[str, Any]:
        action = f"find external trusted facts of {name}"
        async with self.at_once:
            printed = await run_bounded([str(program), name], timeout=self.timeout, most=self.most, environ=ENVIRON, what=action)
        try:
            data = plainjson.loads(printed)
        except BadData as err:
            raise PuppetError(f"Failed to {action}: {program} printed no JSON: {err.message}", hint="It must print one object.") from err
        if not isinstance(data, dict):
            raise PuppetError(f"Failed to {action}: {program} printed no JSON object", hint="It must print a map of names and values.")
        return data


def _programs(folder: Path) -> dict[str, Path] | None:
    """Return the programs in a folder, by name without suffix, in order; None when it is not a folder. Blocks."""
    try:
        entries = sorted(folder.iterdir())
    except NotADirectoryError:
        return None
    except OSError as err:
        raise PuppetError(f"Could not read {folder}: {err.strerror}", hint=f"See the setting {SETTING}.") from err
    programs: dict[str, Path] = {}
    for path in entries:
        if not (path.is_file() and os.access(path, os.X_OK)):
            continue
        if path.stem in programs:
            raise PuppetError(f"There is more than one '{path.stem}' script in {folder}", hint="Remove or rename one.")
        programs[path.stem] = path
    return programs

"""The version of an environment's catalogs, from the program in the setting config_version."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable

from shared.errors import ConfigError

from .directories import Environment
from .files.code_files import actual_path

TIMEOUT = 30.0
"""Seconds that a config_version command may take."""


def version_of(environment: Environment, *, folder: str = "", timeout: float = TIMEOUT, now: Callable[[], float] = time.time) -> int | str:
    """
    Return the output of the environment's config_version command; without one, the time in seconds. Blocks.

    Args:
        folder: The version of the environment in which the command is started; '': its own folder.
        timeout: Seconds for the command, which has no input.
    Raises:
        ConfigError: The command cannot be started, fails, or takes too long.
    """
    if not environment.config_version:
        return int(now())
    failure = f"Execution of config_version command `{environment.config_version}` failed"
    try:
        command = shlex.split(environment.config_version)
        command[:1] = [actual_path(environment.root, folder, program) for program in command[:1]]
        process = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False, cwd=folder or environment.root
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as err:
        raise ConfigError(f"{failure}: {err}") from err
    if process.returncode != 0:
        hint = process.stderr.decode("utf-8", "replace").strip()[:500]
        raise ConfigError(f"{failure} with exit code {process.returncode}", hint=hint)
    return process.stdout.decode("utf-8", "replace").strip()

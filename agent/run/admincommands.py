"""prerun_command and postrun_command: the administrator's commands before and after every run."""

from __future__ import annotations

import asyncio

from shared.errors import PuppetError
from shared.programs import kill_group, start_program
from shared.ral.commands import log_end, log_start

COMMAND_OUTPUT = 64 * 1024  # characters of a command's output that are logged


class CommandFailed(PuppetError):
    """The error that prerun_command or postrun_command did not end with 0."""


async def run_command(setting: str, command: str) -> list[str]:
    """
    Run the command of a setting in a shell, as Puppet does; return the lines that it printed.

    Its process group is killed when this function ends, also by a time-out of the caller.

    Raises:
        CommandFailed: the command ended with another code than 0.
    """
    started = log_start(command)
    process = await start_program(
        "/bin/sh",
        "-c",
        command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        out, _ = await process.communicate()
    finally:
        kill_group(process.pid)
        await process.wait()
    log_end(command, process.returncode, started)
    text = out.decode("utf-8", "replace").strip()[:COMMAND_OUTPUT]
    if process.returncode:
        raise CommandFailed(f"Could not run command from {setting}: Execution of '{command}' returned {process.returncode}: {text}")
    return text.splitlines()

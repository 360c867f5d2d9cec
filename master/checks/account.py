"""Checks that a process under the master's account makes, because databases know their users by it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from shared.errors import ConfigError
from shared.process import daemon
from shared.settings import MasterSettings

from .findings import Area, Finding

TIMEOUT = 60.0  # seconds, of which a database has a few to answer


def inspect_as_account(settings: MasterSettings, area: Area, module: str) -> Iterator[Finding]:
    """
    Yield the findings of a module that reads the settings and prints its problems, from a process under the master's account.

    Args:
        area: The area of the findings, which is the name of the setting as well.
    """
    account: dict[str, Any] = {}
    if os.geteuid() == 0 and settings.user != "root":
        try:
            uid, gid = daemon.account(settings.user, settings.group)
        except ConfigError:
            return  # reported with the settings
        account = {"user": uid, "group": gid, "extra_groups": ()}
    command = (sys.executable, "-I", "-m", module)
    try:
        done = subprocess.run(
            command, input=settings.model_dump_json().encode(), capture_output=True, timeout=TIMEOUT, check=False, **account
        )
    except subprocess.TimeoutExpired:
        yield Finding(area, "error", f"The {area}'s database did not answer within {TIMEOUT:g} seconds", f"The setting is {area}.")
        return
    except OSError as err:
        hint = f"The account {settings.user} has to be able to run it, as the master will."
        yield Finding(area, "error", f"The {area} cannot be checked: {err.strerror or err}: {sys.executable}", hint)
        return
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        yield Finding(area, "error", f"The {area} cannot be checked: {last or f'exit code {done.returncode}'}")
        return
    for problem in json.loads(done.stdout):
        yield Finding(area, problem["severity"], problem["message"], problem["hint"])

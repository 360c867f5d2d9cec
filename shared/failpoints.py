"""
Named places where a test can make the process fail.

`BUNRAKU_FAILPOINTS="ca.serial-stored=kill,report.store=enospc"`: a comma list of name=action. Actions: `kill` (SIGKILL
to this process), `enospc` (OSError), `error` (PuppetError), `sleep:SECONDS`. Without the variable a failpoint costs one look-up.
"""

from __future__ import annotations

import errno
import os
import signal
import time

from .errors import PuppetError

VARIABLE = "BUNRAKU_FAILPOINTS"


def failpoint(name: str) -> None:
    """Fail at `name` in the way that the environment variable asks for; normally do nothing."""
    actions = os.environ.get(VARIABLE)
    if not actions:
        return
    for entry in actions.split(","):
        point, _, action = entry.partition("=")
        if point.strip() == name:
            _act(name, action.strip())


def _act(name: str, action: str) -> None:
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "enospc":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
    elif action.startswith("sleep:"):
        time.sleep(float(action[6:]))
    else:
        raise PuppetError(f"failpoint {name}")

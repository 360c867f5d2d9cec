"""A command as a program: what its errors look like on standard error, and its exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable

from .errors import PuppetError


def ended(command: Callable[[], int]) -> int:
    """The command's exit code; 1 when it cannot start, which is said; 0 when somebody interrupts it before it has."""
    try:
        return command()
    except PuppetError as err:
        print(f"Error: {err}", file=sys.stderr)
        if err.hint:
            print(err.hint, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Cancelling startup", file=sys.stderr)
        return 0

"""The difference of two files as text, made by the `diff` program, in bounded time and memory, without a shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..errors import Unsupported

MAX_OUTPUT = 1024 * 1024  # bytes of a diff that are kept
TIMEOUT = 30.0  # seconds


class DiffSettings(Protocol):
    """The settings for diffs; this package does not know the settings themselves."""

    @property
    def diff(self) -> str: ...

    @property
    def diff_args(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Differ:
    """
    The program for diffs: the settings `diff` and `diff_args`.

    Attributes:
        program: Name or path; '' switches diffs off.
        arguments: Put before the two files.
    """

    program: str = "diff"
    arguments: Sequence[str] = ("-u",)
    max_output: int = MAX_OUTPUT
    timeout: float = TIMEOUT

    @classmethod
    def of(cls, settings: DiffSettings) -> Differ:
        """Return the differ that the settings describe; spaces separate its arguments, there is no quoting."""
        return cls(settings.diff, settings.diff_args.split())

    def compare(self, old: int, new: int, *, labels: tuple[str, str]) -> bytes:
        """
        Return the output of the program for two open files; b'' when they are alike.

        The program gets the descriptors, not names, so it compares exactly the opened files. More than `max_output` bytes or `timeout`
        seconds: cut, with a line that says so.

        Args:
            labels: The names of the two files in the output's header (GNU diff only).
        Raises:
            Unsupported: the program is switched off or not installed.
        """
        if not self.program:
            raise Unsupported("No diff: the setting 'diff' is empty")
        program = shutil.which(self.program, path=os.environ.get("PATH") or os.defpath)
        if program is None:
            raise Unsupported(f"Could not find the diff program '{self.program}'", hint="Install it, or change the setting 'diff'.")
        argv = [program, *self.arguments]
        if Path(program).name == "diff":
            argv += ["--label", labels[0], "--label", labels[1]]
        argv += [f"/dev/fd/{old}", f"/dev/fd/{new}"]
        with subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(old, new),
            env={"PATH": os.environ.get("PATH") or os.defpath, "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        ) as child:
            timer = threading.Timer(self.timeout, child.kill)
            timer.start()
            try:
                assert child.stdout is not None
                output = child.stdout.read(self.max_output + 1)
                if len(output) > self.max_output:
                    child.kill()
                    return output[: output.rfind(b"\n", 0, self.max_output) + 1] + b"... the rest of the diff is left out\n"
                if child.wait() < 0:
                    output += b"... the diff took too long and was cut off\n"
                return output
            finally:
                timer.cancel()
                if child.poll() is None:
                    child.kill()

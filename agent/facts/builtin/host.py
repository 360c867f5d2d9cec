"""The machine as resolvers see it: files, programs, the kernel. Tests pass another root."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shared.ral.commands import log_end, log_start

MAX_FILE = 4 * 1024 * 1024  # bytes of one file below /proc, /sys or /etc
MAX_OUTPUT = 4 * 1024 * 1024  # bytes of a program's output


@dataclass(frozen=True, slots=True)
class Host:
    """The machine this process runs on; `root` is put before every path."""

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def path(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def read(self, path: str) -> str:
        """Return the text of a file, '' when it cannot be read."""
        try:
            with self.path(path).open("rb") as file:
                return file.read(MAX_FILE).decode("utf-8", "replace")
        except OSError:
            return ""

    def exists(self, path: str) -> bool:
        return self.path(path).exists()

    def entries(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; none when it cannot be read."""
        try:
            return sorted(entry.name for entry in self.path(path).iterdir())
        except OSError:
            return []

    def uname(self) -> os.uname_result:
        return os.uname()

    def run(self, argv: Sequence[str], *, timeout: float = 10.0) -> str:
        """
        Return the stdout of a program, '' when it is not there, fails or takes more than `timeout` seconds; its group is then killed.

        Of the agent's environment it gets the PATH only: other variables may make it load code (RUBYOPT) or hold secrets.
        """
        program = shutil.which(argv[0], path=self.environ.get("PATH"))
        if program is None:
            return ""
        command = " ".join((program, *argv[1:]))
        path = {"PATH": self.environ["PATH"]} if "PATH" in self.environ else {}
        started = log_start(command)
        try:
            process = subprocess.Popen(
                [program, *argv[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**path, "LC_ALL": "C", "LANG": "C"},
            )
        except OSError:
            return ""
        try:
            out, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            out = b""
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        log_end(command, process.returncode, started)
        return out[:MAX_OUTPUT].decode("utf-8", "replace") if process.returncode == 0 else ""

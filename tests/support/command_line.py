"""The `puppet` command, run in the test's own process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from bunraku.puppet import main


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str


@dataclass
class Puppet:
    """The `puppet` command with directories of its own."""

    root: Path
    capture: pytest.CaptureFixture[str]

    @property
    def conf(self) -> Path:
        return self.root / "conf"

    def __call__(self, name: str, *words: str) -> Said:
        options = ["--confdir", str(self.conf), *(f"--{each}={self.root / each}" for each in ("vardir", "logdir", "rundir"))]
        code = main([name, *options, "--certname", "node1.example.com", *words])
        return Said(code, *self.capture.readouterr())

"""A control repository in Git, as `puppet deploy` fetches it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path


class ControlRepository:
    """A Git repository in a folder; its first branch is production."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch", "production")

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", "-C", str(self.folder), *who, *words], env=environ, check=True, capture_output=True, text=True, timeout=120
        )
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str | None]) -> str:
        """Commit these files, None for one that is removed; return the commit's id."""
        for name, text in files.items():
            path = self.folder / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "change")
        return self.git("rev-parse", "HEAD")

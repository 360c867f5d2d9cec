"""A manifest that a program applies twice: what it prints, and what it leaves behind."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path


def apply_twice(
    program: list[str], root: Path, modules: Path, *options: str, environ: dict[str, str], between: Callable[[], None] = lambda: None
) -> str:
    """Return what a program prints, with its exit codes, when it applies `root`/site.pp twice; `between` is called between the two."""
    own = ["--confdir", str(root / "conf"), "--vardir", str(root / "var"), "--modulepath", str(modules)]
    words = [*program, "apply", "--color=false", "--detailed-exitcodes", *own, *options, str(root / "site.pp")]
    text = ""
    for run in range(2):
        if run:
            between()
        done = subprocess.run(
            words,
            env={**os.environ, **environ},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
            check=False,
        )
        text += f"{done.stdout}exit {done.returncode}\n"
    return text


def files_of(root: Path) -> list[Path]:
    """Return the files below a folder that the program did not make for itself, without the manifest."""
    own = {"conf", "var", "site.pp"}
    return [path for path in sorted(root.rglob("*")) if path.is_file() and not own & set(path.relative_to(root).parts)]

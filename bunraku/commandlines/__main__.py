"""Writes completion scripts and manual pages as they are installed below /usr/share: `python -m bunraku.commandlines FOLDER DATE`."""

from __future__ import annotations

import sys
from pathlib import Path

from .completion import SHELLS
from .description import describe_all
from .manpages import pages

PLACES = {
    "bash": "bash-completion/completions/bunraku-puppet",
    "zsh": "zsh/vendor-completions/_bunraku-puppet",
    "fish": "fish/vendor_completions.d/bunraku-puppet.fish",
}


def write_files(folder: Path, date: str) -> None:
    """Write all scripts and pages below `folder`."""
    lines = describe_all()
    texts = {PLACES[shell]: script(lines) for shell, script in SHELLS.items()}
    texts |= {f"man/man{name[-1]}/{name}": text for name, text in pages(lines, date).items()}
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    write_files(Path(sys.argv[1]), sys.argv[2])

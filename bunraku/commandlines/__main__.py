"""Writes completion scripts and manual pages as they are installed below /usr/share: `python -m bunraku.commandlines FOLDER DATE`."""

from __future__ import annotations

import sys
from pathlib import Path

from .completion import bash, fish, zsh
from .manpages import pages
from .specs import load_specs

BASH = "bash-completion/completions/bunraku-puppet"  # that of puppet is the package bash-completion's
ZSH = "zsh/vendor-completions/_bunraku-puppet"
FISH = "fish/vendor_completions.d/bunraku-puppet.fish"
FISH_PUPPET = "fish/vendor_completions.d/puppet.fish"  # fish looks for a file of the command's name


def write_files(folder: Path, date: str) -> None:
    """Write all scripts and pages below `folder`."""
    lines = load_specs()
    texts = {BASH: bash(lines, ["bunraku-puppet"]), ZSH: zsh(lines), FISH: fish(lines), FISH_PUPPET: f"source /usr/share/{FISH}\n"}
    texts |= {f"man/man{name[-1]}/{name}": text for name, text in pages(lines, date).items()}
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    write_files(Path(sys.argv[1]), sys.argv[2])

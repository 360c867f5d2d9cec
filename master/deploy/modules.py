"""The modules of a Puppetfile, installed by r10k, g10k or the caller's own function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from shared.errors import PuppetError
from shared.git import without_credentials

from .programs import Programs

PUPPETFILE: Final = "Puppetfile"


BringModules = Callable[[Path], None]  # brings the modules of the Puppetfile in a folder into it, or raises PuppetError; blocks


def install_modules(root: Path, programs: Programs, bring: BringModules, *, cache: Path) -> str:
    """
    Install the modules of the Puppetfile in `root` there; return the name of the installer, '' without a Puppetfile. Blocks.

    Args:
        bring: The installer if neither r10k nor g10k is installed.
        cache: A folder that only this user can write to, for g10k.
    Raises:
        PuppetError: The modules could not be brought.
    """
    if not (root / PUPPETFILE).is_file():
        return ""
    if r10k := programs.find("r10k"):
        words = [r10k, "puppetfile", "install", f"--puppetfile={root / PUPPETFILE}", f"--moduledir={root / 'modules'}"]
        _run(words, "r10k", root, programs)
        return "r10k"
    if g10k := programs.find("g10k"):
        cache.mkdir(mode=0o700, exist_ok=True)
        words = [g10k, "-puppetfile", "-puppetfilelocation", str(root / PUPPETFILE), "-moduledir", str(root / "modules"), "-usemove"]
        _run([*words, "-cachedir", str(cache)], "g10k", root, programs)
        return "g10k"
    bring(root)
    return "puppet module"


def _run(words: list[str], name: str, root: Path, programs: Programs) -> None:
    try:
        programs.run(words, f"install the modules of the Puppetfile by {name}", folder=root)
    except PuppetError as err:
        raise PuppetError(without_credentials(err.message), hint=err.hint) from None

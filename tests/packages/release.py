"""
Builds a release on bare Debians: `python -m tests.packages.release FOLDER`.

What does not depend on the Debian (sources, wheel, bill of materials) is built on each, by its Python, and has to have the same bytes.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.support.bare import RELEASES, bare_system, why_not

TARGETS = "sdist wheel deb sbom"
BUILD = 1800  # seconds


def build(folder: Path) -> str:
    """Fill a folder with all that a release consists of; return the name of a file that was built twice with different bytes, or ''."""
    folder.mkdir(parents=True, exist_ok=True)
    for release in RELEASES:
        with bare_system(release) as system:
            system.run(f"make --directory bunraku {TARGETS}", timeout=BUILD)
            for path in sorted((system.home / "bunraku" / "dist").iterdir()):
                target = folder / path.name
                if target.exists() and target.read_bytes() != path.read_bytes():
                    return path.name
                shutil.copyfile(path, target)
                print(f"{path.name}, built on {release}", flush=True)
    return ""


def main(arguments: list[str]) -> int:
    """Build into the folder that is named. Exit code 1 when that cannot be, or gives different bytes."""
    if reason := why_not():
        print(f"A release cannot be built here: {reason}", file=sys.stderr)
        return 1
    if different := build(Path(arguments[0])):
        print(f"{different} was built twice and has different bytes", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

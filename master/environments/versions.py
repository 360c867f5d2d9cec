"""
Versions of an environment: each deployment is a folder of its own, and the environment is a link to one of them.

`<environmentpath>/<environment>` leads to `.versions/<environment>/<code id>` beside it. What was deployed there never changes.
"""

from __future__ import annotations

from pathlib import Path

VERSIONS = ".versions"


def versions_folder(root: Path) -> Path:
    """Return the folder with the versions of the environment at `root`."""
    return root.parent / VERSIONS / root.name

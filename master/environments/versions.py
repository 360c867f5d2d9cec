"""
Versions of an environment: each deployment is a folder of its own, and the environment is a link to one of them.

`<environmentpath>/<environment>` leads to `.versions/<environment>/<code id>` beside it. What was deployed there never changes.
"""

from __future__ import annotations

import os
from pathlib import Path

from .revisions import DEPLOYMENT, is_code_id, revision_of

VERSIONS = ".versions"


def versions_folder(root: Path) -> Path:
    """Return the folder with the versions of the environment at `root`."""
    return root.parent / VERSIONS / root.name


def version_behind(root: str) -> str:
    """Return the folder that an environment's link leads to now; '' when the environment is no link. Blocks, briefly."""
    try:
        os.readlink(root)  # noqa: PTH115 -- paths of environments are text
    except OSError:
        return ""
    return os.path.realpath(root)


def code_id_of_version(folder: str) -> str | None:
    """Return the code id under which files of a version can be asked for; None when it is no deployment of ours. Blocks, briefly."""
    path = Path(folder)
    if path.parent.parent.name != VERSIONS or not (path / DEPLOYMENT).is_file():
        return None
    revision = revision_of(folder)
    return revision if revision == path.name else None


def find_version(root: str, code_id: str) -> str | None:
    """Return the folder with a version of the environment at `root`; None when it is not kept. Blocks, briefly."""
    if not is_code_id(code_id):
        return None
    folder = os.path.realpath(versions_folder(Path(root)) / code_id)
    return folder if code_id_of_version(folder) == code_id else None

"""
Versions of an environment: each deployment is a folder of its own, and the environment is a link to one of them.

`<environmentpath>/<environment>` leads to `.versions/<environment>/<code id>` in the same folder. Deployed files never change.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.data import plainjson
from shared.errors import BadData, BadName, Conflict
from shared.names import environment_of_branch

from .revisions import DEPLOYMENT, is_code_id, revision_of

VERSIONS = ".versions"
_MAX_RECORD = 1 << 20


def place_of(name: str, environmentpath: Sequence[str | Path]) -> Path:
    """Return where an environment is, or would be deployed: in the first of these folders, unless another one has it. Blocks, briefly."""
    places = [Path(folder, name) for folder in environmentpath]
    return next((place for place in places if os.path.lexists(place)), places[0])


def versions_folder(root: Path) -> Path:
    """Return the folder with the versions of the environment at `root`."""
    return root.parent / VERSIONS / root.name


def deployment_record(folder: Path) -> dict[str, Any]:
    """Return the record that `puppet deploy` wrote about a version; an empty one when there is none. Blocks, briefly."""
    try:
        with (folder / DEPLOYMENT).open("rb") as file:
            record = plainjson.loads(file.read(_MAX_RECORD))
    except (OSError, BadData):
        return {}
    return record if isinstance(record, dict) else {}


def check_branch(environment: str, record: Mapping[str, Any], branch: str) -> None:
    """Raise Conflict when an environment, of whose current version this is the record, is named after and deployed from another branch."""
    before = record.get("ref")
    if isinstance(before, str) and before != branch and is_named_after(environment, before) and is_named_after(environment, branch):
        raise Conflict(
            f"The environment {environment} is that of the branch {before}: the branch {branch} is not deployed to it",
            hint=f"Rename one of the branches. Once {before} is removed: puppet deploy {environment} --prune.",
        )


def is_named_after(environment: str, branch: str) -> bool:
    """Return whether an environment has the name that a branch gives it."""
    try:
        return environment_of_branch(branch) == environment
    except BadName:
        return False


def version_behind(root: str) -> str:
    """Return the folder that an environment's link leads to now; '' when the environment is not a link. Blocks, briefly."""
    try:
        os.readlink(root)  # noqa: PTH115 -- paths of environments are text
    except OSError:
        return ""
    # The whole path at once: a link that is switched in between cannot mix two versions.
    return os.path.realpath(root)


def code_id_of_version(folder: str) -> str | None:
    """Return the code id with which files of a version can be requested; None when it is not a deployment of ours. Blocks, briefly."""
    path = Path(folder)
    if path.parent.parent.name != VERSIONS or not (path / DEPLOYMENT).is_file():
        return None
    revision = revision_of(folder)
    # A folder that was renamed or edited by hand has no reliable version.
    return revision if revision == path.name else None


def find_version(root: str, code_id: str) -> str | None:
    """Return the folder with a version of the environment at `root`; None when it is not stored. Blocks, briefly."""
    if not is_code_id(code_id):
        return None
    folder = os.path.realpath(versions_folder(Path(root)) / code_id)
    return folder if code_id_of_version(folder) == code_id else None

"""The first environment, which a master makes at its first start, so that its first agent gets a catalog."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from shared.filesystem.files import make_directory, write_atomic
from shared.process.log import NOTICE
from shared.settings import MasterSettings

from .directories import Environments, EnvironmentSettings

log = logging.getLogger("puppet.master")

NAME = "production"
STAGING = f".{NAME}.new"
MANIFEST = """\
# The main manifest of the environment "production". The master made this file when it started for the first time; it is yours now.
# Whatever stands outside of a node block is for every machine that asks this master for a catalog.
#
# node 'web1.example.com' {
#   file { '/tmp/hello':
#     content => "hello\\n",
#   }
# }
"""


def prepare_environments(settings: MasterSettings) -> None:
    """
    Create the environment `production` if there is no code yet; log a warning when there still is none. Blocks.

    The caller's user owns the new files, as it owns the configuration: the master's account only needs to read them.
    """
    if is_untouched(settings):
        try:
            root = make_first_environment(settings.codedir)
        except OSError as err:
            log.warning("Could not make the environment %s in %s: %s", NAME, settings.codedir, err.strerror)
        else:
            log.log(NOTICE, "Made the environment %s, whose main manifest is %s", NAME, root / "manifests" / "site.pp")
    environments = Environments(EnvironmentSettings.of(settings))
    if not environments.has(settings.environment):
        log.warning(
            "There is no environment '%s': agents that ask for it get no catalog. Make the folder %s with a manifests/site.pp in it",
            settings.environment,
            Path(environments.settings.environmentpath[0]) / settings.environment if environments.settings.environmentpath else "of it",
        )


def is_untouched(settings: MasterSettings) -> bool:
    """
    Return whether the code is in its default place, below codedir, and that is empty: no environment, no module, no link.

    A site that names other folders, another environment or a program that versions its code deploys by other means.
    """
    if settings.environment != NAME or settings.code_id_command:
        return False
    folder = settings.codedir / "environments"
    if tuple(settings.environmentpath) != (folder,):
        return False
    try:
        return not settings.codedir.is_symlink() and all(
            path.name in ("environments", "modules")
            and path.is_dir()
            and not path.is_symlink()
            and all(inside.name == STAGING for inside in path.iterdir())
            for path in (settings.codedir.iterdir() if settings.codedir.exists() else ())
        )
    except OSError:
        return False  # the folder cannot be read: its content is unknown


def is_as_made(root: Path) -> bool:
    """Return whether an environment is unchanged since its master or its package made it, with no code added. Blocks; raises OSError."""
    folders, manifest = [root, root / "manifests", root / "modules"], root / "manifests" / "site.pp"
    if any(folder.is_symlink() or not folder.is_dir() for folder in folders):
        return False
    rest = [path for folder in folders for path in folder.iterdir() if path not in folders]
    return not rest or (rest == [manifest] and manifest.lstat().st_size == len(MANIFEST) and manifest.read_text() == MANIFEST)


def make_first_environment(codedir: Path) -> Path:
    """Make `environments/production` with a main manifest that has nothing but a comment; return its folder. Blocks; raises OSError."""
    root = codedir / "environments" / NAME
    # The environment's own folder comes last: one that exists is complete, and later starts leave it alone.
    staging = root.with_name(STAGING)
    if staging.exists():
        shutil.rmtree(staging)  # left by a start that was interrupted
    make_directory(staging / "manifests")
    make_directory(staging / "modules")
    write_atomic(staging / "manifests" / "site.pp", MANIFEST.encode())
    staging.rename(root)
    return root

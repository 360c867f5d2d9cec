"""Revisions of a control repository, exported to a temporary folder by Git; deployed environments are not touched."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shared.errors import ConfigError, PuppetError
from shared.filesystem.files import links_out_of
from shared.git import Git, check_location, check_revision, without_credentials
from shared.names import quoted_for_log

from ..console import say


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit that is exported to a folder."""

    commit: str
    subject: str
    folder: Path


@contextmanager
def exported(repository: str, names: tuple[str, str], *, timeout: float) -> Iterator[tuple[Revision, Revision]]:
    """
    Export two revisions of a repository, and remove them at the end. Blocks.

    Args:
        repository: the path or URL of a repository. names: branches, tags or commits of it.
        timeout: seconds for each command of Git.
    Raises:
        ConfigError: A revision is invalid or not in the repository; Git is not installed. PuppetError: Git fails.
    """
    for name in names:
        check_revision(name)
    location = checked_location(repository)
    git = Git(timeout)
    with tempfile.TemporaryDirectory(prefix="puppet-preview-") as temporary:
        folder = Path(temporary, "repository.git")
        clone = ("clone", "--mirror", "--quiet", "--template=", "--", location, str(folder))
        asyncio.run(git.run(*clone, action=f"clone {without_credentials(location)}", location=location))
        before, after = (_export(git, folder, name, Path(temporary, f"side{number}")) for number, name in enumerate(names))
        yield before, after


def checked_location(repository: str) -> str:
    """Return the location of a repository; raise ConfigError for a text that Git may read as an option or a command."""
    path = Path(repository).absolute()
    if not repository.startswith("-") and path.is_dir():
        return str(path)
    try:
        if not repository.startswith("/"):
            return check_location(repository)
    except PuppetError as err:
        raise ConfigError(f"There is no repository at {quoted_for_log(repository)}: {err.message}", hint=err.hint) from err
    raise ConfigError(f"There is no repository at {quoted_for_log(repository)}", hint="Give its folder, or a URL.")


def _export(git: Git, repository: Path, name: str, folder: Path) -> Revision:
    """Write the files of a revision into a new folder; raise ConfigError when the repository does not have it."""
    action, place = f"export {name}", f"--git-dir={repository}"

    def run(*words: str, index: Path | None = None) -> str:
        return asyncio.run(git.run(place, *words, action=action, index=index))

    try:
        commit = run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except PuppetError as err:
        raise ConfigError(f"The repository has no revision {quoted_for_log(name)}", hint="Is it pushed?") from err
    subject = run("log", "-1", "--format=%s", commit)
    folder.mkdir()
    index = folder.with_suffix(".index")
    run(f"--work-tree={folder}", "read-tree", commit, index=index)
    run(f"--work-tree={folder}", "checkout-index", "--all", f"--prefix={folder}/", index=index)
    for link in links_out_of(folder):
        place, target = (quoted_for_log(str(path)) for path in (link.relative_to(folder), link.readlink()))
        say("err", f"{place} in {name} is a link to {target}, out of the repository: the preview is without it")
        link.unlink()
    return Revision(commit, subject, folder)

"""Modules from Git repositories: one revision of each, without its history."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from shared.errors import PuppetError
from shared.git import ALL_PROTOCOLS, Git, is_commit, without_credentials
from shared.names import quoted_for_log

from .puppetfile import DeclaredModule

_SPECS: Final = {"branch": "refs/heads/{}", "tag": "refs/tags/{}", "commit": "{}", "ref": "{}", "": "HEAD"}


@dataclass(frozen=True, slots=True)
class GitLimits:
    """`seconds`: for one command; `files`, `size`: files and bytes of one revision."""

    seconds: float = 600.0
    files: int = 50_000
    size: int = 512 << 20


async def check_out(module: DeclaredModule, folder: Path, limits: GitLimits, *, owner: tuple[int, int] | None = None) -> str:
    """
    Check out a module's revision into the new folder `folder`; return the sum of its commit.

    Nothing of the repository is run: no hooks, no programs as transports, and no prompt for a password.

    Args:
        owner: uid and gid of the files; None: the caller's.
    Raises:
        PuppetError: it cannot be fetched, has no such revision, or is too large.
    """
    shown_url = without_credentials(module.git)
    git = Git(limits.seconds, protocols=ALL_PROTOCOLS, follows_redirects=True)  # as the Git of r10k does
    run = partial(
        git.run,
        action=f"fetch the module {module.title} from {shown_url}",
        location=module.git,
        hint=f"The Puppetfile names it in line {module.line}.",
    )
    await run("init", "--quiet", "--template=", str(folder))
    run = partial(run, folder=folder)
    spec = _SPECS[module.ref_kind].format(module.ref)
    try:
        await run("fetch", "--quiet", "--depth=1", "--no-tags", "--", module.git, spec)
        revision = "FETCH_HEAD"
    except PuppetError:
        if module.ref_kind not in ("commit", "ref"):
            raise
        # A server may refuse to be asked for a commit, and knows none by the beginning of its sum.
        await run("fetch", "--quiet", "--tags", "--", module.git, "+refs/heads/*:refs/remotes/origin/*")
        revision = await run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{module.ref}^{{commit}}")
    commit = await run("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if not is_commit(commit):
        raise PuppetError(f"{shown_url} has no revision {quoted_for_log(module.ref or 'HEAD')}", hint=f"See line {module.line}.")
    await run("checkout", "--quiet", "--detach", commit)
    await asyncio.to_thread(_finish, folder, module, limits, owner)
    return commit


def _finish(folder: Path, module: DeclaredModule, limits: GitLimits, owner: tuple[int, int] | None) -> None:
    """Leave only the files of the revision in the folder, with their final owner. Blocks."""
    shutil.rmtree(folder / ".git")
    size = 0
    for count, path in enumerate(_everything(folder), 1):
        size += path.lstat().st_size
        if count > limits.files or size > limits.size:
            raise PuppetError(
                f"The module {module.title} has more than {limits.files} files or {limits.size} bytes",
                hint="See module_files and module_unpacked_size.",
            )
        if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
            raise PuppetError(
                f"The module {module.title} has a link that leads out of it: {quoted_for_log(str(path.relative_to(folder)))}",
                hint="Nobody may read other files of the master through a module.",
            )
        if owner is not None:
            os.chown(path, *owner, follow_symlinks=False)
    folder.chmod(0o755)
    if owner is not None:
        os.chown(folder, *owner)


def _everything(folder: Path) -> Iterator[Path]:
    """Yield all files and folders below one, links as such."""
    for base, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield Path(base, name)

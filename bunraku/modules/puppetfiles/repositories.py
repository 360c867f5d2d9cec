"""Modules from Git repositories, by the program git: one revision of each, without its history."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.servers.websources import without_password
from shared.errors import PuppetError
from shared.names import quoted_for_log
from shared.programs import run_output

from .puppetfile import DeclaredModule

_OUTPUT: Final = 64 << 10  # bytes that one command may print
_INHERITED: Final = ("PATH", "HOME", "LANG", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "http_proxy", "https_proxy", "no_proxy")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SPECS: Final = {"branch": "refs/heads/{}", "tag": "refs/tags/{}", "commit": "{}", "ref": "{}", "": "HEAD"}


@dataclass(frozen=True, slots=True)
class GitLimits:
    """`seconds`: for one command; `files`, `size`: files and bytes of one revision."""

    seconds: float = 600.0
    files: int = 50_000
    size: int = 512 << 20


async def check_out(module: DeclaredModule, folder: Path, limits: GitLimits, *, owner: tuple[int, int] | None = None) -> str:
    """
    Put a module's revision into the new folder `folder`; return the sum of its commit.

    Nothing of the repository is run: no hooks, no programs as transports, and nobody is asked for a password.

    Args:
        owner: uid and gid of the files; None: the caller's.
    Raises:
        PuppetError: it cannot be fetched, has no such revision, or is too large.
    """
    git = _Git(module, folder, limits.seconds)
    await git.run("init", "--quiet", "--template=", str(folder), inside=False)
    spec = _SPECS[module.ref_kind].format(module.ref)
    try:
        await git.run("fetch", "--quiet", "--depth=1", "--no-tags", "--", module.git, spec)
        revision = "FETCH_HEAD"
    except PuppetError:
        if module.ref_kind not in ("commit", "ref"):
            raise
        # A server may refuse to be asked for a commit, and knows none by the beginning of its sum.
        await git.run("fetch", "--quiet", "--tags", "--", module.git, "+refs/heads/*:refs/remotes/origin/*")
        revision = await git.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{module.ref}^{{commit}}")
    commit = await git.run("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if not _COMMIT.fullmatch(commit):
        raise PuppetError(f"{git.shown_url} has no revision {quoted_for_log(module.ref or 'HEAD')}", hint=f"See line {module.line}.")
    await git.run("checkout", "--quiet", "--detach", commit)
    await asyncio.to_thread(_finish, folder, module, limits, owner)
    return commit


class _Git:
    """The program, in a folder and for a module."""

    def __init__(self, module: DeclaredModule, folder: Path, seconds: float) -> None:
        self.shown_url = without_password(module.git)
        self._module = module
        self._folder = folder
        self._seconds = seconds

    async def run(self, *words: str, inside: bool = True) -> str:
        """Return what a command prints, without blanks around it; PuppetError when it fails."""
        options = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "advice.detachedHead=false")
        place = ("-C", str(self._folder)) if inside else ()
        what = f"fetch the module {self._module.title} from {self.shown_url}"
        code, output, complaint = await run_output(
            ("git", *place, *options, *words), timeout=self._seconds, most=_OUTPUT, environ=_environ(), what=what
        )
        if code:
            said = complaint.replace(self._module.git, self.shown_url).strip()[:1000]
            hint = f"The Puppetfile names it in line {self._module.line}."
            raise PuppetError(f"Could not {what}: git {words[0]} ended with {code}: {said}", hint=hint)
        return output.decode("utf-8", "replace").strip()


def _environ() -> Mapping[str, str]:
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        **inherited,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file",
        "GIT_LFS_SKIP_SMUDGE": "0",
    }


def _finish(folder: Path, module: DeclaredModule, limits: GitLimits, owner: tuple[int, int] | None) -> None:
    """Leave the files of the revision alone in the folder, with the owner that they shall have. Blocks."""
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

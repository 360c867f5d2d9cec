"""Revisions of a control repository, exported to a temporary folder by the `git` program; what is deployed is not touched."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shared.errors import ConfigError, PuppetError
from shared.names import quoted_for_log
from shared.process.log import escape_controls
from shared.programs import run_output

_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@{}~^+-]{0,249}", re.ASCII)
_URL = re.compile(r"(?:https?|ssh|git|file)://[^\s-][^\s]*|(?:[\w.-]+@)?[A-Za-z0-9][\w.-]*:(?!//)[^\s:-][^\s]*", re.ASCII)
_VARIABLES: Mapping[str, str] = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
}
_PASSED_ON = ("HOME", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE")
"""The caller's variables that say how a repository is reached; none of those that name another one."""
_OUTPUT = 1 << 20  # bytes that one command may print
_OPTIONS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never")


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit that is exported to a folder."""

    commit: str
    folder: Path


@contextmanager
def exported(repository: str, names: tuple[str, str], *, timeout: float) -> Iterator[tuple[Revision, Revision]]:
    """
    Export two revisions of a repository, and remove them at the end. Blocks.

    Args:
        repository: the path or URL of a repository. names: branches, tags or commits of it.
        timeout: seconds for each step of `git`.
    Raises:
        ConfigError: A name that is none, or that the repository does not have. PuppetError: `git` fails or is not installed.
    """
    program = shutil.which("git", path=_VARIABLES["PATH"])
    if program is None:
        raise PuppetError(
            "The program git is not installed", hint="It is needed for --repo; folders and environments are previewed without."
        )
    for name in names:
        if not _REVISION.fullmatch(name) or ".." in name:
            raise ConfigError(f"{quoted_for_log(name)} is no name of a revision", hint="Give a branch, a tag or a commit.")
    location = checked_location(repository)
    with tempfile.TemporaryDirectory(prefix="puppet-preview-") as temporary:
        folder = Path(temporary, "repository.git")
        git = Git(program, timeout)
        git.run("clone", "--mirror", "--quiet", "--", location, str(folder))
        before, after = (git.export(folder, name, Path(temporary, f"side{number}")) for number, name in enumerate(names))
        yield before, after


def checked_location(repository: str) -> str:
    """Return the location of a repository; raise ConfigError for what may be something else to `git`, such as an option or a command."""
    if _URL.fullmatch(repository) and "::" not in repository:
        return repository
    path = Path(repository).absolute()
    if repository.startswith("-") or "::" in repository or not path.is_dir():
        raise ConfigError(f"There is no repository at {quoted_for_log(repository)}", hint="Give its folder, or a URL.")
    return str(path)


@dataclass(frozen=True, slots=True)
class Git:
    """The `git` program, with seconds for each of its commands."""

    program: str
    timeout: float

    def run(self, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
        """Return what a command prints; raise PuppetError when it fails."""
        command = next((word for word in arguments if not word.startswith("-")), "")
        inherited = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environ = {**inherited, **_VARIABLES, **(variables or {})}
        argv, what = [self.program, *_OPTIONS, *arguments], f"run git {command}"
        code, output, complaint = asyncio.run(run_output(argv, timeout=self.timeout, most=_OUTPUT, environ=environ, what=what))
        if code != 0:
            text = escape_controls(complaint[:500], lines=True)
            raise PuppetError(f"git {command} failed: {text or f'it ended with {code}'}")
        return output.decode("utf-8", "replace").strip()

    def export(self, repository: Path, name: str, folder: Path) -> Revision:
        """Write the files of a revision into a new folder; raise ConfigError when the repository does not have it."""
        try:
            commit = self.run(f"--git-dir={repository}", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        except PuppetError as err:
            raise ConfigError(f"The repository has no revision {quoted_for_log(name)}", hint="Is it pushed?") from err
        folder.mkdir()
        places = (f"--git-dir={repository}", f"--work-tree={folder}")
        index = {"GIT_INDEX_FILE": f"{folder}.index"}
        self.run(*places, "read-tree", commit, variables=index)
        self.run(*places, "checkout-index", "--all", f"--prefix={folder}/", variables=index)
        return Revision(commit, folder)

"""
Control repositories: a ref becomes a commit, a commit becomes files.

Git is asked, with no configuration but what is given here, no hooks, and only by protocols that prove who answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

from shared.errors import ConfigError, NotFound, PuppetError, Unsupported
from shared.names import quoted_for_log

from .programs import Programs

PROTOCOLS: Final = ("https", "ssh", "file")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+=#@-]*", re.ASCII)
_BROKEN_REF = re.compile(r"\.\.|//|@\{|/\.|\.lock(?:/|\Z)|[./]\Z")
_SCP = re.compile(r"(?:[A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*:[^:].*")
_CREDENTIALS = re.compile(r"://[^/@\s]*@")
_OPTIONS: Final = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=false",
    "-c", "core.symlinks=true",
    "-c", "core.autocrlf=false",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "protocol.allow=never",
    *(word for protocol in PROTOCOLS for word in ("-c", f"protocol.{protocol}.allow=always")),
    "-c", "http.followRedirects=false",
    "-c", "submodule.recurse=false",
    "-c", "advice.detachedHead=false",
)  # fmt: skip
ENVIRON: Final[Mapping[str, str]] = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ALLOW_PROTOCOL": ":".join(PROTOCOLS),
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=30",
    "GIT_LFS_SKIP_SMUDGE": "1",
}


def check_repository(text: str) -> str:
    """Return the address of a repository: an absolute path, or a URL of https, ssh or file; ConfigError for every other one."""
    hint = "It is an absolute path, https://…, ssh://…, or user@host:path."
    if not text:
        raise ConfigError("There is no control repository to deploy from", hint="Set deploy_repository, or give --repo.")
    if text.startswith("-") or not text.isprintable() or len(text) > 4096:
        raise ConfigError(f"Not the address of a repository: {quoted_for_log(text)}", hint=hint)
    if "://" in text:
        url = urlsplit(text)
        if url.scheme not in PROTOCOLS:
            raise Unsupported(f"Repositories are not fetched by the protocol {quoted_for_log(url.scheme)}", hint=hint)
        if (url.hostname or "").startswith("-") or (url.username or "").startswith("-"):
            raise ConfigError(f"Not the address of a repository: {without_credentials(text)}", hint=hint)
    elif not text.startswith("/") and not _SCP.fullmatch(text):
        raise ConfigError(f"Not the address of a repository: {quoted_for_log(text)}", hint=hint)
    return text


def check_ref(text: str) -> str:
    """Return the name of a branch or tag, or a whole commit id; ConfigError for every other text."""
    if not _REF.fullmatch(text) or _BROKEN_REF.search(text) or len(text) > 250:
        raise ConfigError(f"Not a branch, tag or commit: {quoted_for_log(text)}", hint="Name a branch, a tag or a whole commit id.")
    return text


def without_credentials(text: str) -> str:
    """Return a text in which no URL has a user or password."""
    return _CREDENTIALS.sub("://", text)


@dataclass(frozen=True, slots=True)
class Repository:
    """A control repository; `address` may hold a password, so it is shown by `name` only."""

    address: str = field(repr=False)
    programs: Programs

    @classmethod
    def at(cls, address: str, programs: Programs) -> Repository:
        """Return the repository at an address; ConfigError when it is not one, or Git is not installed."""
        programs.require("git")
        return cls(check_repository(address), programs)

    @property
    def name(self) -> str:
        """The address without credentials."""
        return without_credentials(self.address)

    def commit_of(self, ref: str) -> str:
        """Return the commit that a branch, a tag or a commit id stands for; NotFound, PuppetError. Blocks."""
        check_ref(ref)
        if _COMMIT.fullmatch(ref):
            return ref
        names = (f"refs/heads/{ref}", f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}")  # a branch wins; of an annotated tag its commit
        listing = self._git("ls-remote", "--", self.address, *names, action=f"look for {ref} in {self.name}", folder=Path("/"))
        commits = {name: commit for commit, _, name in (line.partition("\t") for line in listing.splitlines())}
        for name in names:
            if _COMMIT.fullmatch(commits.get(name, "")):
                return commits[name]
        raise NotFound(f"There is no branch or tag {ref} in {self.name}", hint="--ref names another one than the environment's own name.")

    def export(self, commit: str, target: Path) -> None:
        """
        Write the files of a commit into the folder `target`, which exists. Blocks.

        Raises:
            Unsupported: The commit has submodules.
            PuppetError: It cannot be fetched.
        """
        with TemporaryDirectory(prefix="puppet-deploy-") as name:
            folder = Path(name)
            action = f"fetch {commit} from {self.name}"
            self._git("init", "--quiet", "--bare", "--template=", "--", name, action=action, folder=folder)
            fetch = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--depth=1", "--", self.address, commit)
            self._git(*fetch, action=action, folder=folder)
            if ".gitmodules" in self._git("ls-tree", "--name-only", commit, action=action, folder=folder).splitlines():
                hint = "Name the modules in a Puppetfile instead."
                raise Unsupported(f"Submodules of a control repository are not deployed: {commit} in {self.name} has some", hint=hint)
            tree = (f"--git-dir={name}", f"--work-tree={target}")
            self._git(*tree, "read-tree", commit, action=action, folder=folder)
            self._git(*tree, "checkout-index", "--all", "--force", action=f"write the files of {commit}", folder=target)

    def _git(self, *words: str, action: str, folder: Path) -> str:
        try:
            return self.programs.run([self.programs.require("git"), *_OPTIONS, *words], action, folder=folder, environ=ENVIRON)
        except PuppetError as err:
            # Git's command line, and what it prints, may hold the address.
            raise PuppetError(without_credentials(_shortened(err.message)), hint=err.hint) from None


def _shortened(message: str) -> str:
    """Return the message about a failed program without its command line."""
    before, execution, rest = message.partition("Execution of '")
    code = rest.rpartition("' returned ")[2] if execution else ""
    return f"{before}git ended with {code}" if code else message

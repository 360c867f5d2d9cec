"""
Run git to fetch and read repositories; it runs nothing that a repository or its user's configuration names.

Git gets only the configuration given here, no hooks and no environment of its caller that names programs. It prompts for no
password, and reaches repositories only by the protocols that are allowed. Source: git-config(1), git(1) on its environment.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final
from urllib.parse import urlsplit

from .errors import ConfigError, PuppetError, Unsupported
from .names import quoted_for_log
from .programs import run_output

AUTHENTICATED_PROTOCOLS: Final = ("https", "ssh", "file")
"""Those that prove who answers."""
ALL_PROTOCOLS: Final = (*AUTHENTICATED_PROTOCOLS, "http", "git")
SEARCH_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
MAX_OUTPUT: Final = 4 << 20  # bytes that one command may print
MAX_LOCATION, MAX_REASON = 4096, 500  # characters

_SCP: Final = re.compile(r"(?:[A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*:[^:\s-][^\s]*", re.ASCII)
_REF: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+=#@-]{0,249}", re.ASCII)
_REVISION: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+=#@{}~^-]{0,249}", re.ASCII)
_BROKEN_REF: Final = re.compile(r"\.\.|//|@\{|/\.|\.lock(?:/|\Z)|[./]\Z")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
_CREDENTIALS: Final = re.compile(r"://[^/@\s]*@")
_OPTIONS: Final = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.attributesFile": "/dev/null",
    "core.symlinks": "true",
    "core.autocrlf": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
    "advice.detachedHead": "false",
    "protocol.allow": "never",
}
_VARIABLES: Final[Mapping[str, str]] = {
    "LANG": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=30",
    "GIT_LFS_SKIP_SMUDGE": "1",
}
_PASSED_ON: Final = (
    "SSH_AUTH_SOCK",
    "SSL_CERT_FILE",
    "GIT_SSL_CAINFO",
    *(name for proxy in ("http_proxy", "https_proxy", "all_proxy", "no_proxy") for name in (proxy, proxy.upper())),
)
"""The caller's variables that say how a server is reached; none of them names a program or a repository."""
_ADVICE: Final = frozenset(
    (
        "fatal: Could not read from remote repository.",
        "Please make sure you have the correct access rights",
        "and the repository exists.",
    )
)
"""Lines that Git prints after every failure of a transport, whatever the reason was."""
_NOT_TRUSTED: Final = "detected dubious ownership"
_TRUST: Final = "It belongs to another user. If you trust it: git config --global --add safe.directory FOLDER"
_REASON: Final = re.compile(r"(?:fatal|error|ssh|remote error|remote): \S")


def check_location(text: str, protocols: tuple[str, ...] = AUTHENTICATED_PROTOCOLS) -> str:
    """
    Return where a repository is: an absolute path, a URL, or `user@host:path`. Git takes none of them for an option or a command.

    Raises:
        Unsupported: It is a URL of another protocol than `protocols`. ConfigError: It is not a location.
    """
    urls = ", ".join(f"{protocol}://…" for protocol in protocols)
    hint = f"It is an absolute path, {urls} or user@host:path."
    problem = ConfigError(f"Not the address of a repository: {quoted_for_log(without_credentials(text))}", hint=hint)
    if not text or text.startswith("-") or not text.isprintable() or len(text) > MAX_LOCATION:
        raise problem
    if "://" not in text:
        if not text.startswith("/") and not _SCP.fullmatch(text):
            raise problem
        return text
    try:
        url = urlsplit(text)
        host, user = url.hostname or "", url.username or ""
    except ValueError as err:
        raise problem from err
    if url.scheme not in protocols:
        raise Unsupported(f"Repositories are not fetched by the protocol {quoted_for_log(url.scheme)}", hint=hint)
    if host.startswith("-") or user.startswith("-") or (url.scheme != "file" and not host) or not url.path or " " in text:
        raise problem
    return text


def check_ref(text: str) -> str:
    """Return the name of a branch or tag, or a commit's id; ConfigError for every other text."""
    if not _REF.fullmatch(text) or _BROKEN_REF.search(text):
        raise ConfigError(f"Not a branch, tag or commit: {quoted_for_log(text)}", hint="Name a branch, a tag or a whole commit id.")
    return text


def check_revision(text: str) -> str:
    """Return the name of a commit in a local repository, such as `HEAD~1`; raise ConfigError for an option, a range, or an invalid name."""
    if not _REVISION.fullmatch(text) or ".." in text:
        raise ConfigError(f"{quoted_for_log(text)} is no name of a revision", hint="Give a branch, a tag or a commit.")
    return text


def is_commit(text: str) -> bool:
    """Return whether a text is a whole commit id."""
    return _COMMIT.fullmatch(text) is not None


def without_credentials(text: str) -> str:
    """Return a text in which no URL has a user or password."""
    return _CREDENTIALS.sub("://", text)


@dataclass(frozen=True, slots=True)
class Git:
    """
    The program git. Its processes end with it, and when the caller is cancelled.

    Args:
        timeout: Seconds for each command.
        path: The search path for git, and for git's own programs, such as ssh.
        protocols: Those by which it may reach repositories, also where a repository or a server names another one.
        follows_redirects: Whether a server may name another address at the first request.
    """

    timeout: float
    path: str = SEARCH_PATH
    protocols: tuple[str, ...] = AUTHENTICATED_PROTOCOLS
    follows_redirects: bool = False

    def program(self) -> str:
        """Return the absolute path of the program; ConfigError when it is not installed."""
        program = shutil.which("git", path=self.path)
        if program is None:
            raise ConfigError("The program git is not installed", hint=f"Install it into one of {self.path}.")
        return program

    async def run(
        self, *words: str, action: str, folder: Path = Path("/"), index: Path | None = None, location: str = "", hint: str = ""
    ) -> str:
        """
        Return the output of a command, stripped.

        Args:
            words: The command with its arguments; untrusted texts are checked, or follow `--` or `--end-of-options`.
            action: Its purpose, for the message about its failure.
            folder: Where it runs.
            index: A file for Git's index, in place of the repository's own.
            location: The repository that it reads from, so that folders of other users are read when this user trusts them.
            hint: What the user of a failed command may try.
        Raises:
            ConfigError: Git is not installed. PuppetError: The command failed, took too long or printed too much; no URL that is named has
                a password.
        """
        argv = [self.program(), *self._options(), *words]
        trusted = await self._trusted_folders() if location.startswith(("/", "file://")) else []
        with _configuration(trusted) as configuration:
            environ = self._environ() | configuration | ({} if index is None else {"GIT_INDEX_FILE": str(index)})
            code, output, complaint = await run_output(
                argv, timeout=self.timeout, most=MAX_OUTPUT, environ=environ, what=action, folder=str(folder)
            )
        if code != 0:
            command = next((word for word in words if not word.startswith("-")), "")
            problem = f"Failed to {action}: git {command} ended with {code}: {_reason(complaint)}"
            raise PuppetError(without_credentials(problem), hint=_TRUST if _NOT_TRUSTED in complaint else hint)
        return output.decode("utf-8", "replace").strip()

    def _options(self) -> Iterator[str]:
        allowed = {f"protocol.{protocol}.allow": "always" for protocol in self.protocols}
        redirects = {"http.followRedirects": "initial" if self.follows_redirects else "false"}
        for name, value in (_OPTIONS | allowed | redirects).items():
            yield from ("-c", f"{name}={value}")

    def _environ(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return {
            **inherited,
            **_VARIABLES,
            "PATH": self.path,
            "HOME": home_of_user(),
            "GIT_ALLOW_PROTOCOL": ":".join(self.protocols),
        }

    async def _trusted_folders(self) -> list[str]:
        """
        Return the other users' folders in which this user lets Git read a repository: the only part of the user's configuration that
        counts.
        """
        argv = [self.program(), "config", "--null", "--type=path", "--get-all", "safe.directory"]
        own = {name: os.environ[name] for name in ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL") if name in os.environ}
        environ = {"PATH": self.path, "HOME": home_of_user(), **own, "GIT_DIR": "/dev/null"}  # no repository's own configuration
        what = "read which folders Git trusts"
        code, output, _ = await run_output(argv, timeout=self.timeout, most=MAX_OUTPUT, environ=environ, what=what)
        return output.decode("utf-8", "surrogateescape").split("\0")[:-1] if code == 0 else []


def home_of_user() -> str:
    """Return the home of the account that this process runs as, where its keys for SSH are."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return "/"


@contextmanager
def _configuration(trusted: Sequence[str]) -> Iterator[dict[str, str]]:
    """
    Lend the variables that have Git trust these folders.

    They name a file, since a process of Git that reads a repository on this host does not get the options of the one that asks it.
    """
    if not trusted:
        yield {}
        return
    with NamedTemporaryFile("w", prefix="puppet-git-", encoding="utf-8", errors="surrogateescape") as file:
        for folder in trusted:
            escaped = folder.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            file.write(f'[safe]\n\tdirectory = "{escaped}"\n')
        file.flush()
        yield {"GIT_CONFIG_GLOBAL": file.name}


def _reason(complaint: str) -> str:
    """Return the last line of an error output that names the fault, printable and short."""
    lines = [line.strip() for line in complaint.splitlines()]
    lines = [line for line in lines if line and line not in _ADVICE and not line.startswith("hint:")]
    reasons = [line for line in lines if _REASON.match(line)] or lines or ["it says nothing"]
    return "".join(character if character.isprintable() else "?" for character in reasons[-1][:MAX_REASON])

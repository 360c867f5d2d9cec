"""The environment of the agent's process: environment variables, and directories that another user may have prepared."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path

from shared.errors import ConfigError
from shared.failpoints import VARIABLE as FAILPOINTS
from shared.filesystem.files import make_directory
from shared.settings import AgentSettings

PATH = "/opt/puppetlabs/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_INHERITED = frozenset({"LANG", "LANGUAGE", "TERM", "TZ", "NO_COLOR", "NOTIFY_SOCKET", FAILPOINTS})
_INHERITED_PREFIXES = ("LC_", "FACTER_")
UMASK = 0o022
STATE_MODE = 0o750
PASSABLE = 0o751  # of vardir, so that monitoring can reach publicdir in it
PUBLIC = 0o755


def clean_environment(environ: Mapping[str, str], *, home: str, user: str) -> dict[str, str]:
    """
    Return the environment variables for this process and all that it starts. Pure.

    PATH and the home directory are not the caller's; variables that steer a loader, an interpreter, a shell or a proxy are left out.
    """
    inherited = {name: value for name, value in environ.items() if name in _INHERITED or name.startswith(_INHERITED_PREFIXES)}
    return {**inherited, "PATH": PATH, "HOME": home, "USER": user, "LOGNAME": user}


def prepare_process(environ: MutableMapping[str, str]) -> None:
    """Clean this process' environment variables and set the umask. Call this function before anything else."""
    try:
        entry = pwd.getpwuid(os.geteuid())
        home, user = entry.pw_dir, entry.pw_name
    except KeyError:
        home, user = "/", str(os.geteuid())
    cleaned = clean_environment(environ, home=home, user=user)
    environ.clear()
    environ.update(cleaned)
    os.umask(UMASK)


def set_search_path(path: str, environ: MutableMapping[str, str]) -> None:
    """Set PATH to the setting `path`, with the system's own directories added; `none` leaves PATH as it is."""
    if path == "none":
        return
    folders = [folder for folder in path.split(":") if folder]
    environ["PATH"] = ":".join([*folders, *(folder for folder in ("/usr/sbin", "/sbin") if folder not in folders)])


def puppet_account() -> int | None:
    """Return the uid of the account that a master on this host runs as; None without one."""
    try:
        return pwd.getpwnam("puppet").pw_uid
    except KeyError:
        return None


def problem_with(path: Path, info: os.stat_result, *, trusted: frozenset[int], link_owner: int | None = None) -> str:
    """
    Return why a directory may not hold the agent's state; '' when it may.

    Args:
        info: The status of the directory, links followed.
        trusted: The uids that may own it.
        link_owner: The owner of the link at that path; None when it is not a link.
    """
    if link_owner is not None and link_owner not in trusted:
        return f"{path} is a link that belongs to the user {link_owner}"
    if not stat.S_ISDIR(info.st_mode):
        return f"{path} is not a directory"
    if info.st_uid not in trusted:
        return f"{path} belongs to the user {info.st_uid}"
    if info.st_mode & stat.S_IWOTH:
        return f"everybody may write to {path}"
    return ""


def public_directory_modes(settings: AgentSettings) -> dict[Path, int]:
    """Return the modes of the directories that other users may read or pass through."""
    return {settings.vardir: PASSABLE, settings.publicdir: PUBLIC}


def secure_directories(directories: Iterable[Path], modes: Mapping[Path, int] = {}, *, euid: int | None = None) -> None:
    """
    Create missing directories; refuse those that another user could tamper with.

    Args:
        modes: The modes of created directories that are not private.
    Raises:
        ConfigError: names the directory and the fault. Nothing is repaired, as whoever prepared the directory may have
            prepared its contents.
    """
    own_uid = os.geteuid() if euid is None else euid
    account = puppet_account()
    trusted = frozenset({0, own_uid} | ({account} if account is not None else set()))
    for path in directories:
        try:
            entry = path.lstat()
        except FileNotFoundError:
            try:
                make_directory(path, mode=modes.get(path, STATE_MODE))
            except OSError as err:
                text = f"Could not create {path}: {err.strerror}: {err.filename}"
                raise ConfigError(
                    text, hint="Name folders that this account may write to: --confdir, --vardir, --logdir, --rundir."
                ) from err
            continue
        except OSError as err:
            raise ConfigError(f"Could not look at {path}: {err.strerror}") from err
        link_owner = entry.st_uid if stat.S_ISLNK(entry.st_mode) else None
        try:
            info = path.stat()
        except OSError as err:
            raise ConfigError(f"{path} is a link that leads nowhere: {err.strerror}") from err
        problem = problem_with(path, info, trusted=trusted, link_owner=link_owner)
        if problem:
            raise ConfigError(
                f"Refusing to run: {problem}",
                hint=f"The agent's state must be its own: check the contents, then chown root {path} && chmod 0750 {path}.",
            )

"""
The file server's mounts: fileserver.conf, and the folders of each mount.

Source: protocol reference 3.5 (mounts) and 4.3 (fileserver.conf).
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from environments.runs import Runs
from shared.errors import ConfigError, Location
from shared.file_serving.trees import FileTree
from shared.filesystem.files import parts_of
from shared.filesystem.identity import digest_of
from shared.indirector import Client, Request
from shared.names import valid_certname

log = logging.getLogger("puppet.fileserver")

MODULE_MOUNTS = {"modules": "files", "tasks": "tasks", "scripts": "scripts"}  # mount: folder of one module
MERGED_MOUNTS = {"plugins": "lib", "pluginfacts": "facts.d", "locales": "locales"}  # mount: folder of every module
BUILT_IN = frozenset(MODULE_MOUNTS) | frozenset(MERGED_MOUNTS)

_MOUNT = re.compile(r"\[([-\w]+)\]", re.ASCII)
_NAME = re.compile(r"[-\w]+", re.ASCII)
_MODULE = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)

Matcher = Callable[[Sequence[str], Sequence[str], Client], bool | None]


@dataclass(frozen=True, slots=True)
class Mount:
    """`path` may hold %h, %H, %d and %%; `allow` and `deny` are patterns as in auth.conf."""

    name: str
    path: str | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    line: int = 0

    def root_for(self, client: Client | None) -> Path | None:
        """Return the mount's folder, for a client when its path has a pattern; None when there is no client to fill it."""
        if self.path is None:
            return None
        if "%" not in self.path:
            return Path(self.path)
        if client is None or not client.authenticated:
            return None
        host, _, domain = valid_certname(client.name).partition(".")
        values = {"%h": host, "%H": client.name, "%d": domain, "%%": "%"}
        return Path(re.sub(r"%[hHd%]", lambda match: values[match[0]], self.path))


def parse(text: str, path: Path | None = None) -> dict[str, Mount]:
    """
    Return the mounts of a fileserver.conf.

    Raises:
        ConfigError: A duplicate mount, an unknown word, or `=`; with file and line.
    """
    mounts: dict[str, dict[str, Any]] = {}
    current: dict[str, Any] | None = None

    def wrong(message: str, number: int) -> ConfigError:
        return ConfigError(message, where=Location(str(path) if path else None, number))

    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split(None, 1)
        if not words:
            continue
        if match := _MOUNT.fullmatch(line.strip()):
            if match[1] in mounts:
                raise wrong(f"{match[1]} is already mounted", number)
            current = mounts[match[1]] = {"name": match[1], "line": number, "allow": (), "deny": ()}
        elif current is None:
            raise wrong(f"Invalid entry {line.strip()[:80]!r} before the first [mount]", number)
        elif words[0] == "path" and len(words) == 2 and not words[1].startswith("="):
            current["path"] = words[1].strip()
        elif words[0] in ("allow", "deny") and len(words) == 2:
            current[words[0]] += tuple(part.strip() for part in words[1].split(",") if part.strip())
        else:
            raise wrong(f"Invalid argument {words[0]!r}", number)
    return {name: Mount(**fields) for name, fields in mounts.items()}


def served_mounts_of(mounts: dict[str, Mount]) -> dict[str, Mount]:
    """Return the mounts that can be served, including built-in ones; others are logged and left out."""
    served_mounts: dict[str, Mount] = {}
    for name, mount in mounts.items():
        if name in BUILT_IN:
            if mount.path is not None:
                log.warning("The '%s' module can not have a path. Ignoring attempt to set it", name)
            served_mounts[name] = Mount(name, None, mount.allow or ("*",), mount.deny, mount.line)
        elif mount.path is None:
            log.error("Mounts without paths are not usable: %s", name)
        elif "%" not in mount.path and not Path(mount.path).is_dir():
            log.error("Removing mount '%s': %s is not a readable directory", name, mount.path)
        else:
            served_mounts[name] = mount
    for name in BUILT_IN - set(served_mounts):
        served_mounts[name] = Mount(name, None, ("*",))
    return served_mounts


class ModulePath(Protocol):
    def __call__(self, environment: str, version: str = "", /) -> Sequence[Path]:
        """Return the module folders of an environment, or of a version of it; NotFound when there is no such environment."""


@dataclass(slots=True)
class FileServer:
    """
    The map from keys to files.

    Args:
        matcher: Returns whether (allow, deny, client) match; None when no pattern does.
        filetimeout: Seconds between two checks of the configuration.
        root: Returns the folder of an environment, which represents its modules when there are none.
        generation: Returns a value that changes when the configuration has to be checked at once.
        runs: Knows the version of the environment that a client's run uses; None: there is one version only.
    """

    conf: Path
    modulepath: ModulePath
    matcher: Matcher
    filetimeout: float = 15.0
    clock: Callable[[], float] = time.monotonic
    root: Callable[[str], Path | None] = lambda environment: None
    generation: Callable[[], int] = lambda: 0
    runs: Runs | None = None
    _mounts: dict[str, Mount] = field(default_factory=dict)
    _seen: tuple[float, bytes | None, int] = (float("-inf"), None, 0)

    def mounts(self) -> dict[str, Mount]:
        """Return the mounts, read again when the file has changed; a broken file leaves the old ones in force. Blocks, rarely."""
        now, generation = self.clock(), self.generation()
        if self._mounts and now - self._seen[0] < self.filetimeout and generation == self._seen[2]:
            return self._mounts
        digest = digest_of(self.conf)
        if not self._mounts or digest != self._seen[1]:
            try:
                self._mounts = served_mounts_of(parse(self.conf.read_text("utf-8"), self.conf) if self.conf.exists() else {})
            except (ConfigError, OSError, UnicodeDecodeError) as err:
                if not self._mounts:
                    raise
                log.error("Keeping the old mounts: %s", err)
        self._seen = (now, digest, generation)
        return self._mounts

    def allowed(self, request: Request[Any]) -> bool:
        """Return whether the key's mount exists and admits the client; one without patterns admits no 3.x client, but every later one."""
        mount = self.mounts().get(request.key.split("/", 1)[0])
        if mount is None or request.client is None:
            return mount is not None
        if not mount.allow and not mount.deny:
            return not (request.dialect is not None and request.dialect.wraps)
        return self.matcher(mount.allow, mount.deny, request.client) is True

    def places(self, key: str, environment: str, client: Client | None, version: str | None = None) -> list[tuple[FileTree, str]]:
        """
        Return the trees that may have a key, in order of precedence; [] when there is none. Blocks.

        Args:
            version: The version of the environment; None: that of the client's run.

        Raises:
            BadName: The key climbs out of its folder.
            NotFound: There is no such environment.
        """
        name, *rest = parts_of(key)
        mount = self.mounts().get(name) if _NAME.fullmatch(name) else None
        if mount is None:
            return []
        if version is None and name in BUILT_IN:
            version = self.runs.for_file(client.name, environment) if self.runs is not None and client is not None else ""
        if name in MODULE_MOUNTS:
            return self._of_module(rest, MODULE_MOUNTS[name], environment, version or "")
        if name in MERGED_MOUNTS:
            return [(FileTree(root), "/".join(rest)) for root in self.roots(MERGED_MOUNTS[name], environment, version or "")]
        root = mount.root_for(client)
        return [(FileTree(root), "/".join(rest))] if root is not None else []

    def version_for_listing(self, mount: str, environment: str, client: Client | None, *, is_probe: bool) -> str:
        """Return the version in which a client lists a merged mount, which may begin its run; a probe only requests the environment."""
        if self.runs is None or client is None:
            return ""
        return self.runs.for_listing(client.name, environment, "probe" if is_probe else mount)

    def roots(self, folder: str, environment: str, version: str = "") -> list[Path]:
        """Return `<module>/<folder>` of every module that has it: in modulepath order, the first of two modules of a name."""
        folders: dict[str, Path] = {}
        for base in self.modulepath(environment, version):
            try:
                names = sorted(entry.name for entry in base.iterdir())
            except OSError:
                continue
            for name in names:
                if _MODULE.fullmatch(name) and name not in folders and (base / name / folder).is_dir():
                    folders[name] = base / name / folder
        return list(folders.values())

    def bare_root(self, environment: str, version: str = "") -> Path | None:
        """Return a folder that exists, for a search of a merged mount for which no module has anything."""
        folders = (base for base in self.modulepath(environment, version) if base.is_dir())
        return next(folders, None) or self.root(environment)

    def is_merged(self, key: str) -> bool:
        """Return whether the key's mount merges all modules; a search there has no sub-path."""
        return key.split("/", 1)[0] in MERGED_MOUNTS

    def _of_module(self, rest: Sequence[str], folder: str, environment: str, version: str) -> list[tuple[FileTree, str]]:
        if not rest or not _MODULE.fullmatch(rest[0]):
            return []
        for base in self.modulepath(environment, version):
            if (base / rest[0]).is_dir():
                return [(FileTree(base / rest[0] / folder), "/".join(rest[1:]))]
        return []

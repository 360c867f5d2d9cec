"""
Directory environments and their environment.conf.

Source: language reference 16, command line reference 5.5.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from shared import names
from shared.data.durations import ttl
from shared.errors import BadName, ConfigError, NotFound

from .files.code_files import CodeFiles, DiskFiles

if TYPE_CHECKING:
    # A worker reads environments, too, and must not import settings: they load pydantic.
    from shared.settings import MasterSettings

log = logging.getLogger("puppet.environment")
T = TypeVar("T")

_REMEMBERED = 1.0  # seconds for which an environment that existed is assumed to exist

_KNOWN = frozenset(
    (
        "modulepath",
        "manifest",
        "config_version",
        "environment_timeout",
        "environment_data_provider",
        "static_catalogs",
        "rich_data",
        "parser",
    )
)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True)
class EnvironmentSettings:
    """
    The master's settings that concern environments.

    Attributes:
        environment_timeout: seconds, None for unlimited; environment.conf may override it.
        variables: values for `$name` in environment.conf, in addition to `$environment` and `$basemodulepath`.
        compiler: settings that the compiler and `$settings::…` see.
        read_roots, hidden, programs: See ManifestAccess: what manifests may reach on this host.
        revisions: whether the code's version is the revision that stands beside it; false: a program of the site says it.
        pattern_timeout: seconds of processor time for one match of a regular expression.
        export_keys: The file of the keys for exported secrets; '' where the master has no store of its own.
        ruby, ruby_timeout, ruby_answer: the program for what modules have in Ruby and its limits, see RubySettings.
    """

    environmentpath: tuple[str, ...]
    basemodulepath: tuple[str, ...] = ()
    default_manifest: str = "./manifests"
    disable_per_environment_manifest: bool = False
    environment_timeout: float | None = 0
    config_version: str = ""  # of the command line; it overrides every environment.conf
    static_catalogs: bool = True
    rich_data: bool = True
    data_provider: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    compiler: Mapping[str, Any] = field(default_factory=dict)
    read_roots: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    programs: bool = True
    export_keys: str = ""
    ruby: str = ""
    ruby_timeout: float = 60.0
    ruby_answer: int = 64 << 20
    pattern_timeout: float = 5.0
    revisions: bool = True

    @classmethod
    def of(cls, settings: MasterSettings, **more: Any) -> EnvironmentSettings:
        """Return the folders of environments and modules, and the manifest, of the settings; `more` are further attributes."""
        return cls(
            environmentpath=tuple(map(str, settings.environmentpath)),
            basemodulepath=tuple(map(str, settings.basemodulepath)),
            default_manifest=settings.default_manifest,
            disable_per_environment_manifest=settings.disable_per_environment_manifest,
            config_version=settings.config_version,
            rich_data=settings.rich_data,
            data_provider=settings.environment_data_provider,
            pattern_timeout=settings.pattern_timeout,
            revisions=not settings.code_id_command,
            export_keys=settings.export_keys,
            variables={name: str(getattr(settings, name)) for name in ("codedir", "confdir", "vardir")},
            **more,
        )


@dataclass(frozen=True)
class Environment:
    """A configured environment; `warnings` are about its environment.conf."""

    name: str
    root: str
    modulepath: tuple[str, ...]
    manifest: str | None
    config_version: str = ""
    environment_timeout: float | None = 0
    rich_data: bool = True
    static_catalogs: bool = True
    warnings: tuple[str, ...] = ()
    data_provider: str = ""  # where data is looked up without a hiera.yaml; deprecated


def read_environment(name: str, root: str, files: CodeFiles, settings: EnvironmentSettings, version: str = "") -> Environment:
    """
    Return the environment in the folder `root`, with its environment.conf, or the defaults without one.

    `version` is the folder of a version of it: all paths below `root` become such below that one.
    """
    named, root = root, version or root
    conf, warnings = _read_conf(f"{root}/environment.conf", files)
    base = list(settings.basemodulepath)
    variables = {**settings.variables, "environment": name, "basemodulepath": os.pathsep.join(base)}

    def expanded(text: str) -> str:
        return _VARIABLE.sub(lambda match: str(variables.get(match[1] or match[2], match[0])), text)

    def absolute(path: str) -> str:
        path = os.path.normpath(path if path.startswith("/") else f"{root}/{path}")
        return f"{root}{path.removeprefix(named)}" if path.startswith(f"{named}/") else path

    modulepath = expanded(conf.get("modulepath", f"modules{os.pathsep}{os.pathsep.join(base)}"))
    folders = [folder for entry in modulepath.split(os.pathsep) if entry for folder in _expand_glob(absolute(entry))]
    manifest = settings.default_manifest
    if settings.disable_per_environment_manifest:
        manifest = expanded(manifest)
    elif "manifest" in conf:
        manifest = expanded(conf["manifest"])
    if manifest.startswith("./"):
        manifest = manifest[2:]
    timeout = settings.environment_timeout
    if "environment_timeout" in conf:
        timeout = ttl(conf["environment_timeout"])
    config_version = expanded(settings.config_version or conf.get("config_version", ""))
    if config_version and not config_version.startswith("/"):
        config_version = f"{root}/{config_version}"
    return Environment(
        name,
        root,
        tuple(dict.fromkeys(folders)),
        absolute(manifest),
        config_version,
        timeout,
        conf.get("rich_data", str(settings.rich_data)).lower() != "false",
        conf.get("static_catalogs", str(settings.static_catalogs)).lower() == "true",
        tuple(warnings),
        conf.get("environment_data_provider", settings.data_provider),
    )


def _expand_glob(path: str) -> list[str]:
    if not any(c in path for c in "*?["):
        return [path]
    return sorted(str(path_below) for path_below in Path("/").glob(path.lstrip("/")) if path_below.is_dir())


def _read_conf(path: str, files: CodeFiles) -> tuple[dict[str, str], list[str]]:
    data = files.read(path)
    conf: dict[str, str] = {}
    warnings: list[str] = []
    if data is None:
        return conf, warnings
    for number, raw_line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        line = raw_line.strip()
        if not line or line.startswith(("#", ";")):
            continue
        if line.startswith("["):
            warnings.append(f"Invalid sections '{line.strip('[]')}' in {path}; they have no meaning there (line: {number})")
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise ConfigError(f"Could not match line '{line}' (file: {path}, line: {number})", hint="Write: setting = value")
        name, value = name.strip(), value.split(" #", 1)[0].strip().strip("'\"")
        if name not in _KNOWN:
            warnings.append(f"Invalid settings '{name}' in {path}; only {', '.join(sorted(_KNOWN))} have a meaning there")
            continue
        if name == "environment_timeout":
            try:
                ttl(value)
            except ValueError as err:
                message = f"Could not set {name}: {err} (file: {path}, line: {number})"
                raise ConfigError(message, hint="It may be unlimited, too.") from err
        conf[name] = value
    return conf, warnings


async def _in_thread(function: Callable[[], T]) -> T:
    """Return the result of a function that may block."""
    import asyncio  # here, since commands that only read environments would wait 20 ms for it

    return await asyncio.to_thread(function)


def _is_name(text: str) -> bool:
    """Return whether an environment may be called so."""
    try:
        names.valid_environment(text)
    except BadName:
        return False
    return True


def _is_folder(path: str) -> bool:
    """Return whether a path is a folder; as Path does, but each catalog asks, and a Path takes longer to make than the answer."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116 -- see above
    except FileNotFoundError:
        return False
    except OSError:
        return Path(path).is_dir()


class Environments:
    """
    The environments below `environmentpath`, as they are configured now.

    `generation` counts the calls of `expire`: workers discard what they loaded in an older generation.
    """

    def __init__(self, settings: EnvironmentSettings) -> None:
        self.settings = settings
        self.generation = 0
        self._warned: set[str] = set()
        self._linked: dict[str, tuple[float, bool]] = {}  # by name: when it was last looked, and whether it was a link
        self._seen: dict[str, float] = {}  # by name: when an environment was last seen

    def root_of(self, name: str) -> str:
        """Return the folder of an environment; NotFound when it does not exist."""
        if not _is_name(name):
            raise NotFound(f"Could not find environment {names.quoted_for_log(name)}")
        for path in self.settings.environmentpath:
            root = f"{path}/{name}"
            if _is_folder(root):
                return root
        environmentpath = os.pathsep.join(self.settings.environmentpath)
        raise NotFound(f"Could not find environment '{name}'", hint=f"It would be a folder of that name in {environmentpath}.")

    def names(self) -> list[str]:
        """Return the names of all environments, sorted."""
        names = {
            name
            for path in self.settings.environmentpath
            for name in DiskFiles().names(path)
            if _is_name(name) and Path(path, name).is_dir()
        }
        return sorted(names)

    def has(self, name: str) -> bool:
        """Return whether there is such an environment. Looks at the disk, briefly."""
        try:
            self.root_of(name)
        except NotFound:
            return False
        return True

    def read(self, name: str, files: CodeFiles | None = None, version: str = "") -> Environment:
        """Return the environment, or a version of it, with its environment.conf; raise NotFound or ConfigError."""
        environment = read_environment(name, self.root_of(name), files or DiskFiles(), self.settings, version)
        for warning in environment.warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                log.warning("%s", warning)
        return environment

    def modulepath(self, name: str, version: str = "") -> Sequence[Path]:
        """Return the folders with the modules of an environment, or of a version of it; NotFound when there is no such environment."""
        return [Path(folder) for folder in self.read(name, version=version).modulepath]

    async def exists(self, name: str) -> bool:
        """Return whether there is such an environment, or was a moment ago: every request asks."""
        now = time.monotonic()
        if now - self._seen.get(name, -_REMEMBERED) < _REMEMBERED:
            return True
        exists = await _in_thread(lambda: self.has(name))
        if exists:
            self._seen[name] = now
        else:
            self._seen.pop(name, None)
        return exists

    async def is_link(self, name: str) -> bool:
        """Return whether an environment is a link, or was a moment ago. NotFound."""
        now = time.monotonic()
        if now - self._linked.get(name, (-_REMEMBERED, False))[0] >= _REMEMBERED:
            self._linked[name] = (now, await _in_thread(lambda: Path(self.root_of(name)).is_symlink()))
        return self._linked[name][1]

    async def listing(self) -> Mapping[str, Any]:
        """Return the answer to `/puppet/v3/environments`. Source: protocol reference 3.14."""
        return await _in_thread(self._listing)

    async def expire(self, name: str | None) -> None:
        """Discard the cache of one environment or of all."""
        self.generation += 1
        self._seen.clear()
        self._linked.clear()

    def _listing(self) -> dict[str, Any]:
        environments = [self.read(name) for name in self.names()]
        return {
            "search_paths": [Path(path).absolute().as_uri() for path in self.settings.environmentpath],
            "environments": {
                environment.name: {
                    "settings": {
                        "modulepath": list(environment.modulepath),
                        "manifest": environment.manifest,
                        "environment_timeout": "unlimited" if environment.environment_timeout is None else environment.environment_timeout,
                        "config_version": environment.config_version,
                    }
                }
                for environment in environments
            },
        }

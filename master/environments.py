"""Directory environments: where their manifests, modules and data are. Source: command line reference 5.5."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from shared.errors import BadName, ConfigError, NotFound
from shared.names import environment as environment_name
from shared.settings import MasterSettings, conf
from shared.settings.values import duration

log = logging.getLogger("puppet.environment")

KNOWN_KEYS = frozenset(
    {
        "manifest",
        "modulepath",
        "config_version",
        "environment_timeout",
        "environment_data_provider",
        "static_catalogs",
        "rich_data",
        "parser",
    }
)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)


@dataclass(frozen=True, slots=True)
class Environment:
    """`root` its folder; `modulepath` and `manifest` absolute; `timeout` in seconds, None: unlimited."""

    name: str
    root: str
    modulepath: tuple[str, ...]
    manifest: str
    config_version: str = ""
    timeout: int | None = 0
    static_catalogs: bool = True
    rich_data: bool = True

    def plain(self) -> dict[str, Any]:
        """Plain data, to be sent to a worker."""
        return asdict(self)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Environment:
        return cls(**{**data, "modulepath": tuple(data["modulepath"])})


def timeout_of(text: str) -> int | None:
    """Seconds; None for `unlimited`; ConfigError for anything else."""
    try:
        return None if text == "unlimited" else duration(text)
    except ValueError as err:
        raise ConfigError(f"Could not set environment_timeout: {err}") from err


def read_environment(name: str, settings: MasterSettings, warn: Callable[[str], None]) -> Environment | None:
    """
    The environment of that name: the first folder along environmentpath; None when there is none. Blocks.

    Raises:
        ConfigError: an environment.conf that does not parse.
    """
    root = next((base / name for base in settings.environmentpath if (base / name).is_dir()), None)
    if root is None:
        return None
    entries = _entries(root / "environment.conf", warn)
    variables = {
        "codedir": str(settings.codedir),
        "confdir": str(settings.confdir),
        "vardir": str(settings.vardir),
        "environment": name,
        "environmentpath": ":".join(map(str, settings.environmentpath)),
        "basemodulepath": ":".join(map(str, settings.basemodulepath)),
    }

    def expanded(text: str) -> str:
        return _VARIABLE.sub(lambda match: variables.get(match[1] or match[2], match[0]), text)

    modulepath = expanded(entries.get("modulepath", "modules:$basemodulepath"))
    manifest = str(settings.default_manifest)
    if not settings.disable_per_environment_manifest:
        manifest = expanded(entries.get("manifest", manifest))
    version = expanded(entries.get("config_version", settings.config_version))
    return Environment(
        name=name,
        root=str(root),
        modulepath=tuple(path for part in modulepath.split(":") if part for path in _globbed(_beside(root, part))),
        manifest=str(_beside(root, manifest)),
        config_version=str(_beside(root, version)) if version and not version.startswith("/") else version,
        timeout=timeout_of(entries.get("environment_timeout", settings.environment_timeout)),
        static_catalogs=entries.get("static_catalogs", str(settings.static_catalogs)).lower() == "true",
        rich_data=entries.get("rich_data", "true").lower() == "true",
    )


def _entries(path: Path, warn: Callable[[str], None]) -> dict[str, str]:
    parsed = conf.read(path)
    entries = parsed.section("main")
    if extra := set(parsed.sections) - {"main"}:
        warn(f"Invalid sections in environment.conf at {path}. Environment conf may not have sections: {', '.join(sorted(extra))}")
    if unknown := set(entries) - KNOWN_KEYS:
        warn(f"Invalid settings in environment.conf at {path}: {', '.join(sorted(unknown))}")
    return entries


def _beside(root: Path, path: str) -> Path:
    """A path relative to the environment's folder; `./` is tidied away."""
    return Path(path) if path.startswith("/") else root / path.removeprefix("./")


def _globbed(path: Path) -> list[str]:
    text = str(path)
    if not any(c in text for c in "*?["):
        return [text]
    return sorted(str(each) for each in Path("/").glob(text.lstrip("/")) if each.is_dir())


@dataclass(slots=True)
class Environments:
    """
    The environments of a master.

    What an environment.conf says is kept until the file changes. `generation` counts the calls of `expire`: what workers
    have in memory of an older one is not used again.
    """

    settings: MasterSettings
    clock: Callable[[], float] = time.monotonic
    generation: int = 0
    _known: dict[str, tuple[tuple[object, ...], Environment]] = field(default_factory=dict)
    _warned: set[str] = field(default_factory=set)

    def find(self, name: str) -> Environment | None:
        """The environment, None when there is none. Looks at the disk, briefly."""
        try:
            environment_name(name)
        except BadName:
            return None
        stamp = self._stamp(name)
        known = self._known.get(name)
        if known is not None and known[0] == stamp:
            return known[1]
        found = read_environment(name, self.settings, self._warn)
        if found is None:
            self._known.pop(name, None)
            return None
        self._known[name] = (stamp, found)
        return found

    def get(self, name: str) -> Environment:
        """The environment; NotFound in the reference's words."""
        found = self.find(name)
        if found is None:
            paths = ":".join(map(str, self.settings.environmentpath))
            raise NotFound(f"Could not find environment '{name}'", hint=f"It would be a folder of that name in {paths}.")
        return found

    def modulepath(self, name: str) -> list[Path]:
        """The module folders of an environment; NotFound."""
        return [Path(path) for path in self.get(name).modulepath]

    def has(self, name: str) -> bool:
        return self.find(name) is not None

    async def exists(self, name: str) -> bool:
        return await asyncio.to_thread(self.has, name)

    async def listing(self) -> Mapping[str, Any]:
        """What `/puppet/v3/environments` answers. Source: protocol reference 3.14."""
        return await asyncio.to_thread(self._listing)

    async def expire(self, name: str | None) -> None:
        """Forget what is kept of one environment or of all; workers read it anew."""
        self.generation += 1
        if name is None:
            self._known.clear()
        else:
            self._known.pop(name, None)

    def _listing(self) -> dict[str, Any]:
        names = sorted(
            {entry.name for base in self.settings.environmentpath if base.is_dir() for entry in base.iterdir() if entry.is_dir()}
        )
        found = [environment for name in names if (environment := self.find(name)) is not None]
        return {
            "search_paths": [path.as_uri() for path in self.settings.environmentpath],
            "environments": {
                each.name: {
                    "settings": {
                        "modulepath": list(each.modulepath),
                        "manifest": each.manifest,
                        "environment_timeout": "unlimited" if each.timeout is None else each.timeout,
                        "config_version": each.config_version,
                    }
                }
                for each in found
            },
        }

    def _stamp(self, name: str) -> tuple[object, ...]:
        """What changes when the environment's folder or its environment.conf does."""
        for base in self.settings.environmentpath:
            try:
                own = (base / name).stat()
            except OSError:
                continue
            try:
                file = (base / name / "environment.conf").stat()
                return (str(base), own.st_ino, own.st_mtime_ns, file.st_ino, file.st_mtime_ns, file.st_size)
            except OSError:
                return (str(base), own.st_ino, own.st_mtime_ns)
        return ()

    def _warn(self, sentence: str) -> None:
        if sentence not in self._warned:
            self._warned.add(sentence)
            log.warning("%s", sentence)

"""The environment that a command of this machine means, and the folders of its modules."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from environments.directories import Environment, Environments, EnvironmentSettings, read_environment
from environments.files.code_files import DiskFiles
from shared.errors import NotFound
from shared.settings import AgentSettings, MasterSettings, load

OPTIONAL = "production"  # the environment that may be missing: `puppet apply` then works with none
_MODULE = re.compile(r"[a-z]\w*", re.ASCII)


def environment_of(settings: MasterSettings, *, modulepath: str = "") -> Environment:
    """
    Return the environment that the settings name; `modulepath`, folders separated by colons, takes the place of its own.

    Raises:
        NotFound: there is none of that name; only `production` may be missing. ConfigError: its environment.conf is wrong.
    """
    name = settings.environment
    limits = EnvironmentSettings.of(settings)
    try:
        environment = Environments(limits).read(name)
    except NotFound as err:
        if name != OPTIONAL:
            places = os.pathsep.join(limits.environmentpath)
            raise NotFound(
                f"Could not find a directory environment named '{name}' anywhere in the path: {places}. Does the directory exist?",
                hint=err.hint,
            ) from err
        environment = read_environment(name, f"{limits.environmentpath[0] if limits.environmentpath else ''}/{name}", DiskFiles(), limits)
    folders = [str(Path(folder).absolute()) for folder in modulepath.split(":") if folder]
    return replace(environment, modulepath=tuple(folders)) if folders else environment


def modules_of(environment: Environment) -> list[Path]:
    """Return the folders of all modules, the first of each name along the modulepath."""
    modules: dict[str, Path] = {}
    for base in environment.modulepath:
        try:
            folders = sorted(each for each in Path(base).iterdir() if _MODULE.fullmatch(each.name) and each.is_dir())
        except OSError:
            continue
        for folder in folders:
            modules.setdefault(folder.name, folder)
    return list(modules.values())


def plugin_folders(settings: AgentSettings, flags: Mapping[str, Any], modulepath: str = "") -> list[Path]:
    """
    Return the folders `lib` of the environment's modules, then the one with plugins of a master.

    Args:
        flags: the settings of the command line.
        modulepath: folders of modules in place of the environment's, separated by colons.
    Raises:
        NotFound, ConfigError: the environment does not exist or is configured wrongly.
    """
    master = load(MasterSettings, section="user", flags=dict(flags))
    environment = environment_of(master, modulepath=modulepath)
    return [*(module / "lib" for module in modules_of(environment)), settings.plugindest]

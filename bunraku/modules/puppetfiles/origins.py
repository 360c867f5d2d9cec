"""The origins of folders and modules: folders of a modulepath from settings and environment.conf, modules from a Puppetfile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .puppetfile import DeclaredModule, read_puppetfile


@dataclass(frozen=True, slots=True)
class ModuleOrigins:
    """
    The origins of folders and modules.

    Attributes:
        folders: by folder of the modulepath, its source: the command line, environment.conf, or a setting.
        modules: by folder of a module: its declaration in the Puppetfile.
        missing: what the Puppetfile declares and is not there.
    """

    folders: Mapping[Path, str]
    modules: Mapping[Path, DeclaredModule]
    missing: Sequence[DeclaredModule]

    def of_module(self, path: Path) -> dict[str, Any]:
        """Return the origin of a module, for scripts."""
        declared = self.modules.get(path)
        return {
            "modulepath_from": self.folders.get(path.parent),
            "puppetfile": {"line": declared.line, **declared.to_data()} if declared is not None else None,
        }

    def text_of(self, path: Path) -> str:
        """Return the same for people."""
        declared = self.modules.get(path)
        return f"Puppetfile line {declared.line}: {declared}" if declared is not None else "not in the Puppetfile"


def origins_of(
    environment: Path, modulepath: Sequence[Path], *, base: Sequence[Path] = (), from_command_line: bool = False
) -> ModuleOrigins:
    """
    Return where the modules of an environment come from. Blocks.

    Args:
        environment: the environment's folder, which need not exist.
        base: the folders of basemodulepath.
    Raises:
        ConfigError: the Puppetfile cannot be read.
    """
    configured = "environment.conf" if (environment / "environment.conf").is_file() else "default"
    folders = {}
    for folder in modulepath:
        where = "command line" if from_command_line else "basemodulepath" if folder in base else configured
        folders[folder] = where
    puppetfile = read_puppetfile(environment)
    declared = {environment / puppetfile.path_of(module): module for module in puppetfile.modules} if puppetfile is not None else {}
    return ModuleOrigins(folders, declared, [module for path, module in declared.items() if not path.is_dir()])

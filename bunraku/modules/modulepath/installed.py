"""The modules in the folders of a modulepath, and how they depend on each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from language.values.versions import BadVersion, SemVer
from shared.errors import PuppetError

from ..errors import with_v
from ..releases.metadata import FOLDER_NAME, MissingMetadata, ModuleDependency, dashed, installed_dependencies, read_metadata

Warn = Callable[[str], None]

_REQUIRED = ("source", "author", "version", "license", "dependencies")


@dataclass(frozen=True)
class InstalledModule:
    """
    A module in a folder.

    Attributes:
        folder: what its folder is called, and so the module in manifests.
        name: `author-name`; '' when it has no metadata that says it.
        version: as it is written; '' when it is not known.
    """

    folder: str
    path: Path
    name: str = ""
    version: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    dependencies: tuple[ModuleDependency, ...] = ()

    @property
    def directory(self) -> Path:
        """The folder of the modulepath that it is in."""
        return self.path.parent

    @property
    def shown_name(self) -> str:
        return self.name or self.folder

    @cached_property
    def semantic_version(self) -> SemVer | None:
        """Its version, None when that is not a semantic one."""
        try:
            return SemVer.parse(self.version)
        except BadVersion:
            return None


@dataclass(frozen=True, slots=True)
class UnmetDependency:
    """
    A dependency of an installed module that no installed module meets.

    Attributes:
        reason: non_semantic_version, version_mismatch or missing.
        installed: the installed version; '' when there is none.
    """

    reason: str
    module: InstalledModule
    dependency: ModuleDependency
    installed: str = ""

    @property
    def shown_range(self) -> str:
        return re.sub(r"^(?=[0-9])", "v", self.dependency.text)

    def __str__(self) -> str:
        return f"'{self.module.name}' ({with_v(self.module.version)}) requires '{self.dependency.name}' ({self.shown_range})"


@dataclass(frozen=True)
class InstalledModules:
    """
    All modules of a modulepath.

    Attributes:
        modulepath: all its folders, whether they exist or not.
        by_path: the modules of each folder that exists, sorted.
    """

    modulepath: tuple[Path, ...]
    by_path: Mapping[Path, Sequence[InstalledModule]]

    @cached_property
    def everywhere(self) -> tuple[InstalledModule, ...]:
        return tuple(module for modules in self.by_path.values() for module in modules)

    @cached_property
    def by_folder(self) -> Mapping[str, InstalledModule]:
        """The modules that manifests see: of two with one name the first."""
        modules: dict[str, InstalledModule] = {}
        for module in self.everywhere:
            modules.setdefault(module.folder, module)
        return modules

    @cached_property
    def by_name(self) -> Mapping[str, InstalledModule]:
        """The first of each full name, of those that have one."""
        modules: dict[str, InstalledModule] = {}
        for module in self.everywhere:
            if module.name:
                modules.setdefault(module.name, module)
        return modules

    @cached_property
    def dependants(self) -> Mapping[str, Sequence[tuple[InstalledModule, ModuleDependency]]]:
        """Return the dependants of a module, by full name, sorted by their names."""
        found: dict[str, list[tuple[InstalledModule, ModuleDependency]]] = {}
        for module in sorted(self.by_folder.values(), key=lambda module: module.name):
            for dependency in module.dependencies if module.name else ():
                found.setdefault(dependency.name, []).append((module, dependency))
        return found

    def needed_by(self, module: InstalledModule) -> Sequence[tuple[InstalledModule, ModuleDependency]]:
        """Return the dependants of a module, each with its dependency."""
        return self.dependants.get(module.name, ()) if module.name else ()

    def meeting(self, module: InstalledModule) -> list[InstalledModule]:
        """Return the installed modules in the places of a module's dependencies, of any author and version."""
        folders = (dependency.name.partition("-")[2] for dependency in module.dependencies)
        return [self.by_folder[folder] for folder in folders if folder in self.by_folder]

    def unmet(self, module: InstalledModule) -> list[UnmetDependency]:
        """Return the dependencies of a module that are not met."""
        unmet = []
        for dependency in module.dependencies:
            other = self.by_folder.get(dependency.name.partition("-")[2])
            if other is None or other.name != dependency.name:
                unmet.append(UnmetDependency("missing", module, dependency))
            elif other.semantic_version is None:
                unmet.append(UnmetDependency("non_semantic_version", module, dependency, other.version))
            elif other.semantic_version not in dependency.versions:
                unmet.append(UnmetDependency("version_mismatch", module, dependency, other.version))
        return unmet


def read_installed(modulepath: Sequence[Path], *, strict: str = "warning", warn: Warn = lambda text: None) -> InstalledModules:
    """
    Return the modules of a modulepath. Blocks.

    Args:
        strict: off, warning or error: how to treat a metadata.json that is not JSON.
        warn: is called with such files.
    Raises:
        MissingMetadata: a metadata.json lacks something. PuppetError: one is not JSON, if that is an error; an entry makes no sense.
    """
    by_path: dict[Path, list[InstalledModule]] = {}
    for folder in dict.fromkeys(modulepath):
        if folder.is_dir():
            names = sorted(path.name for path in folder.iterdir() if FOLDER_NAME.fullmatch(path.name) and path.is_dir())
            by_path[folder] = [read_module(folder / name, strict=strict, warn=warn) for name in names]
    return InstalledModules(tuple(modulepath), by_path)


def read_module(path: Path, *, strict: str = "warning", warn: Warn = lambda text: None) -> InstalledModule:
    """Return the module in a folder; arguments and errors as `read_installed`."""
    try:
        metadata = read_metadata(path)
    except PuppetError as err:
        message = f"{path.name} has an invalid and unparsable metadata.json file. The parse error: {err}"
        if strict == "error":
            raise PuppetError(message) from err
        if strict == "warning":
            warn(message)
        metadata = {}
    if not metadata:
        return InstalledModule(path.name, path)
    for attribute in _REQUIRED:
        if metadata.get(attribute) is None:
            raise MissingMetadata(
                f"No {attribute} module metadata provided for {path.name}", hint=f"Complete {path / 'metadata.json'}, or move it away."
            )
    name = metadata.get("name")
    return InstalledModule(
        path.name,
        path,
        dashed(name) if isinstance(name, str) else "",
        str(metadata["version"]),
        metadata,
        installed_dependencies(metadata, path.name),
    )

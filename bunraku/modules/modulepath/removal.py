"""Uninstalling a module, as `puppet module uninstall` does."""

from __future__ import annotations

from language.values.versions import SemVerRange

from .. import errors
from ..errors import Wanted
from ..releases.checksums import has_changes
from .installed import InstalledModule, InstalledModules
from .placement import ModulePlacement


def uninstall(
    name: str,
    installed: InstalledModules,
    placement: ModulePlacement,
    *,
    version: str = "",
    force: bool = False,
    ignore_changes: bool = False,
) -> InstalledModule:
    """
    Remove a module and return it. Blocks.

    Args:
        name: `author-name`, or the folder of a module without metadata.
        version: the version that it must have, or a range; '' for any.
        force: also when others need it, or files of it were changed; ignore_changes: only the latter.
    Raises:
        ModuleToolError: it stays where it is.
    """
    wanted = Wanted("uninstall", name, version)
    versions = SemVerRange.parse(version) if version else None
    named = [module for module in installed.everywhere if module.shown_name == name]
    matching = [
        module
        for module in named
        if versions is None or not module.version or (module.semantic_version is not None and module.semantic_version in versions)
    ]
    if len(matching) > 1:
        raise errors.installed_twice(wanted, [(module.version, module.directory) for module in matching])
    if not named:
        raise errors.not_installed(wanted, [module.shown_name for module in installed.everywhere if name in module.shown_name])
    if not matching:
        raise errors.other_version(wanted, [(module.version, module.directory) for module in named])
    module = matching[0]
    wanted = Wanted("uninstall", name, version, module.version)
    if not (force or ignore_changes) and module.metadata and has_changes(module.path):
        raise errors.changed_locally(wanted)
    dependants = installed.needed_by(module)
    if dependants and not force:
        shown = [(other.name.replace("-", "/", 1), other.version, dependency.text) for other, dependency in dependants]
        raise errors.still_required(wanted, shown)
    placement.remove(module.path)
    return module

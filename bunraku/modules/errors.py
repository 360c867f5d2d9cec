"""The error messages of `puppet module`, with the texts of Puppet 7."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shared.errors import PuppetError

LATEST = "latest"


class ModuleToolError(PuppetError):
    """An error of several lines, the later ones indented; the hint is among them."""


class AlreadyNewest(ModuleToolError):
    """There is nothing to do: no newer version exists."""


def with_v(version: object) -> str:
    """Return a version as people write it: `v1.0.0`; `???` when there is none."""
    return re.sub(r"^(?=\d)", "v", str(version or "???"))


@dataclass(frozen=True, slots=True)
class Wanted:
    """
    A requested action on a module.

    Attributes:
        action: install, upgrade or uninstall.
        version: the version or range; '' for the newest.
        installed: the installed version; '' for none.
    """

    action: str
    name: str
    version: str = ""
    installed: str = ""

    @property
    def requested(self) -> str:
        return with_v(self.version or LATEST)

    @property
    def versions(self) -> str:
        """The action on the version, as text."""
        if self.action == "upgrade":
            return f"{with_v(self.installed)} -> {self.requested}"
        return with_v(self.installed or self.version or LATEST)

    def could_not(self, *lines: str, versions: str | None = None, module: str = "module ") -> ModuleToolError:
        """Return the error whose first line names the failed action; `lines` have the reasons."""
        shown = self.versions if versions is None else versions
        first = f"Could not {self.action} {module}'{self.name}'" + (f" ({shown})" if shown else "")
        return ModuleToolError("\n".join((first, *lines)))


def already_installed(wanted: Wanted, has_changes: bool) -> ModuleToolError:
    """Return the error for a module that is there already, perhaps with changes made by hand."""
    return wanted.could_not(
        f"  Module '{wanted.name}' ({with_v(wanted.installed)}) is already installed",
        *(["    Installed module has had changes made locally"] if has_changes else []),
        "    Use `puppet module upgrade` to install a different version",
        "    Use `puppet module install --force` to re-install only this module",
        versions=wanted.requested,
    )


def invalid_name(name: str, suggestion: str) -> ModuleToolError:
    """Return the error for an invalid name of a module; `suggestion` is one that would be."""
    return Wanted("install", name).could_not(
        f"  The name '{name}' is invalid", f"    Did you mean `puppet module install {suggestion}`?", versions=""
    )


def no_releases(wanted: Wanted, source: str) -> ModuleToolError:
    """Return the error for a module without releases on the Forge."""
    if wanted.version:
        lines = [f"  No releases matching '{wanted.version}' are available from {source}"]
    else:
        lines = [f"  No releases are available from {source}", f"    Does '{wanted.name}' have at least one published release?"]
    return wanted.could_not(*lines, module="")


def no_solution(wanted: Wanted, unsatisfied: str = "", current: str = "", expected: Mapping[str, str] | None = None) -> ModuleToolError:
    """
    Return the error for dependencies that cannot all be met.

    Args:
        unsatisfied: the module that has no matching version.
        current: its version that is installed.
        expected: ranges by the module that they belong to, or that requires them.
    """
    lines = ["  The requested version cannot satisfy all dependencies"]
    if expected:
        lines = ["  The requested version cannot satisfy one or more of the following installed modules:"]
        if current:
            lines.append(f"    {unsatisfied}, installed: {current}, expected: {expected.get(unsatisfied, '')}")
        else:
            lines += [f"    {module}, expects '{wanted.name}': {text}" for module, text in expected.items()]
        lines.append("")
    usage = f"  Use `puppet module {wanted.action} '{wanted.name}' --ignore-dependencies` to {wanted.action} only this module"
    return wanted.could_not(*lines, usage)


def would_overwrite(
    wanted: Wanted, directory: object, dependency: tuple[str, str] | None, current: tuple[str, object] | None
) -> ModuleToolError:
    """
    Return the error for a module in the way.

    Args:
        dependency: name and version of the dependency whose folder exists; None: it is the module's own folder.
        current: name and version of the existing module, if its metadata has them.
    """
    lines = []
    if dependency:
        lines.append(f"  Dependency '{dependency[0]}' ({with_v(dependency[1])}) would overwrite {directory}")
    else:
        lines.append(f"  Installation would overwrite {directory}")
    name, version = current or ("", None)
    lines.append(f"    Currently, '{name}' ({with_v(version)}) is installed to that directory")
    if dependency:
        lines.append("    Use `puppet module install --ignore-dependencies` to install only this module")
    else:
        lines.append("    Use `puppet module install --force` to install this module anyway")
    return Wanted("install", wanted.name, wanted.version).could_not(*lines)


def not_installed(wanted: Wanted, suggestions: Iterable[str] = ()) -> ModuleToolError:
    """Return the error for a module that is not there; `suggestions` are similar names."""
    lines = [f"    You may have meant `puppet module {wanted.action} {suggestion}`" for suggestion in suggestions]
    if wanted.action == "upgrade":
        lines.append("    Use `puppet module install` to install this module")
    return wanted.could_not(f"  Module '{wanted.name}' is not installed", *lines, versions="")


def installed_twice(wanted: Wanted, places: Sequence[tuple[object, object]]) -> ModuleToolError:
    """Return the error for a module that is in several folders; `places` are its versions, each with its folder."""
    return wanted.could_not(
        f"  Module '{wanted.name}' appears multiple places in the module path",
        *(f"    '{wanted.name}' ({with_v(version)}) was found in {folder}" for version, folder in places),
        "    Use the `--modulepath` option to limit the search to specific directories",
        versions="",
    )


def changed_locally(wanted: Wanted) -> ModuleToolError:
    """Return the error for a module whose files were changed by hand."""
    return wanted.could_not(
        "  Installed module has had changes made locally",
        f"    Use `puppet module {wanted.action} --ignore-changes` to {wanted.action} this module anyway",
    )


def other_version(wanted: Wanted, places: Sequence[tuple[object, object]]) -> ModuleToolError:
    """Return the error for a module that is installed in versions other than the requested one; `places` as in `installed_twice`."""
    return wanted.could_not(
        f"  No installed version of '{wanted.name}' matches ({wanted.requested})",
        *(f"    '{wanted.name}' ({with_v(version)}) is installed in {folder}" for version, folder in places),
        versions=wanted.requested,
    )


def still_required(wanted: Wanted, dependants: Iterable[tuple[str, object, str]]) -> ModuleToolError:
    """Return the error for a module that others need; `dependants` are their names, versions, and the ranges that they ask for."""
    return wanted.could_not(
        f"  Other installed modules have dependencies on '{wanted.name}' ({with_v(wanted.installed)})",
        *(f"    '{name}' ({with_v(version)}) requires '{wanted.name}' ({with_v(text)})" for name, version, text in dependants),
        "    Use `puppet module uninstall --force` to uninstall this module anyway",
        versions=f"v{wanted.version}" if wanted.version else "",
    )


def not_newer(wanted: Wanted, newer: int, holders: Iterable[str]) -> ModuleToolError:
    """
    Return the error for an upgrade that leads nowhere.

    Args:
        newer: How many newer versions there are.
        holders: The installed modules that may hold them off.
    """
    usage = "    Use `puppet module upgrade --force` to upgrade only this module"
    if not newer:
        latest = f"  The installed version is already the latest version matching {wanted.versions}"
        return AlreadyNewest(str(wanted.could_not(latest, usage)))
    names = [f"    - {name}" for name in holders]
    if names:
        names = [
            "    Dependencies will not be automatically upgraded across major versions",
            "    Upgrading one or more of these modules may permit the upgrade to succeed:",
            *names,
        ]
    first = (f"  There are {newer} newer versions", "    No combination of dependency upgrades would satisfy all dependencies")
    return wanted.could_not(*first, *names, usage)


def downgrade(wanted: Wanted) -> ModuleToolError:
    """Return the error for an upgrade to an older version."""
    return wanted.could_not("  Downgrading is not allowed.")


def no_directory(wanted: Wanted, directory: object) -> ModuleToolError:
    """Return the error for a folder of modules in whose place something else is."""
    return wanted.could_not(
        f"  Path '{directory}' exists but is not a directory.",
        f"  A potential solution is to rename the path and then \"mkdir -p '{directory}'\"",
    )


def not_permitted(wanted: Wanted, directory: object) -> ModuleToolError:
    """Return the error for a folder of modules that may not be written to."""
    return wanted.could_not(
        f"  Permission is denied when trying to create directory '{directory}'.",
        "  A potential solution is to check the ownership and permissions of parent directories.",
    )

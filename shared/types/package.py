"""`package`: software, from the system's package manager or another. Source: resource layer reference 7, 13."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import ResourceError
from ..ral import ABSENT, Ensure, Param, Property, Ref, State, TitlePatterns, Type, Value
from ..ral.attributes import as_list, ruby_class, text_of
from .kinds import arguments

PURGED = "purged"
NOT_INSTALLED = (ABSENT, PURGED, None)
FEATURES = {
    "installable": "Packages are installed.",
    "uninstallable": "Packages are removed.",
    "upgradeable": "Packages can be upgraded to the latest version.",
    "purgeable": "Packages are removed together with their configuration.",
    "versionable": "Packages are installed in a given version.",
    "version_ranges": "Versions may be given as ranges.",
    "holdable": "Packages are held back from upgrades.",
    "reinstallable": "Packages can be reinstalled on a refresh.",
    "install_only": "Several versions of a package can be installed side by side.",
    "install_options": "Further options for an installation.",
    "uninstall_options": "Further options for a removal.",
    "disableable": "Packages are switched off.",
    "supports_flavors": "Packages come in flavours.",
    "package_settings": "Packages are built with settings.",
    "virtual_packages": "A name may be that of a virtual package.",
    "targetable": "The package manager's command may be chosen.",
}


class PackageEnsure(Ensure):
    """
    `ensure` of a package: present, absent, the latest, or a version.

    The provider adds to the state what comparing needs: `latest` (or `latest_error`), queried only where `latest` is desired.
    """

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        current = state.get("ensure", ABSENT)
        return any(self._holds(resource, state, current, value) for value in desired)

    def _holds(self, resource: Type, state: State, current: Any, value: Any) -> bool:
        if value == "present":
            return current not in (*NOT_INSTALLED, "disabled")
        if value == ABSENT:
            return current in NOT_INSTALLED
        if value == PURGED:
            return bool(current == PURGED)
        versions = list(current) if isinstance(current, list | tuple) else [current]
        if value == "latest":
            if current in NOT_INSTALLED:
                return False
            if state.get("latest_error"):
                raise ResourceError(f"Could not get latest version: {state['latest_error']}")
            return state.get("latest") in versions or current == "present"
        if value in versions:
            return True
        return current not in NOT_INSTALLED and bool(state.get("satisfied"))

    def needs_for(self, desired: Any) -> tuple[str, ...]:
        listed = self.listed(desired)
        return listed.requires if listed else ("versionable",)

    def change_text(self, resource: Type, current: Any, desired: Any) -> str:
        if desired == PURGED:
            return "purged"
        if current in NOT_INSTALLED and desired not in (ABSENT, PURGED):
            return "created"
        return super().change_text(resource, current, desired)

    def should_text(self, resource: Type, value: Any) -> str:
        latest = getattr(resource, "latest", None)
        return super().should_text(resource, latest if value == "latest" and latest else value)

    def event_name(self, resource: Type, desired: Any) -> str:
        listed = self.listed(desired)
        return listed.event if listed and listed.event else "package_changed"


def _name(value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError(f"Name must be a String not {ruby_class(value)}")
    arguments.check_name(value)


def _settings(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


class PackageOptions(Param[list[Any]]):
    """Options of a command: texts, and hashes that become `key=value`."""

    def accept(self, resource: Type, raw: Any) -> list[Any]:
        values = as_list(raw)
        arguments.check_options(values)
        return values


_ELSEWHERE = (
    "aix appdmg apple aptitude aptrpm blastwave fink freebsd hpux macports nim openbsd opkg pkg pkgdmg pkgin pkgng "
    "pkgutil portage ports portupgrade rug sun sunfreeware tdnf up2date urpmi windows"
)


class Package(Type, name="package", refreshable=True, features=FEATURES):
    """A package. The same name may be managed once per provider and command."""

    elsewhere = frozenset(_ELSEWHERE.split())

    ensure = PackageEnsure(
        str,
        values=(
            Value("present", aliases=("installed",), event="package_installed"),
            Value(ABSENT, event="package_removed"),
            Value(PURGED, event="package_purged", requires=("purgeable",)),
            Value("disabled", requires=("disableable",)),
            Value("latest", requires=("upgradeable",)),
        ),
        match=(r"(?s).+",),
        check=arguments.check_name,
        default="present",
        doc="Present, absent, purged, latest, disabled, or a version or range of versions.",
    )
    package_settings = Property(object, munge=_settings, requires=("package_settings",), doc="Settings that the package is built with.")
    flavor = Property(str, check=arguments.check_plain, requires=("supports_flavors",), doc="The flavour.")
    mark = Property(str, values=("hold", "none"), requires=("holdable",), doc="Whether upgrades leave it alone.")

    name = Param(str, namevar=True, check=_name, doc="The package's name, as the package manager knows it.")
    provider = Param(str, namevar=True, doc="The package manager; by default the system's own.")
    command = Param(
        str,
        namevar=True,
        check=arguments.check_name,
        requires=("targetable",),
        doc="The package manager's program, where there are several.",
    )
    source = Param(str, check=arguments.check_name, doc="The package file or repository, for those that need it.")
    instance = Param(str, doc="Told by the package.")
    status = Param(str, doc="Told by the package.")
    adminfile = Param(str, check=arguments.check_name, doc="Defaults for an installation (Solaris).")
    responsefile = Param(str, check=arguments.check_name, doc="Answers to the package's questions.")
    configfiles = Param(str, values=("keep", "replace"), default="keep", doc="What becomes of changed configuration files.")
    category = Param(str, doc="Told by the package.")
    platform = Param(str, doc="Told by the package.")
    root = Param(str, doc="Told by the package.")
    vendor = Param(str, doc="Told by the package.")
    description = Param(str, doc="Told by the package.")
    allowcdrom = Param(bool, doc="Whether apt may use a CD.")
    enable_only = Param(bool, default=False, doc="Whether a dnf module is only enabled.")
    install_only = Param(
        bool, default=False, requires=("install_only",), doc="Whether to install new versions without removing older ones."
    )
    install_options = PackageOptions(object, requires=("install_options",), doc="Further options for an installation.")
    uninstall_options = PackageOptions(object, requires=("uninstall_options",), doc="Further options for a removal.")
    allow_virtual = Param(bool, requires=("virtual_packages",), doc="Whether the name may be that of a virtual package.")
    reinstall_on_refresh = Param(bool, default=False, doc="Whether a refresh reinstalls the package.")

    latest: str | None = None  # the version that `latest` means, once the provider knows

    @classmethod
    def title_patterns(cls) -> TitlePatterns:
        return [(r"(.*)", ["name"])]

    @property
    def key(self) -> str:
        return str(self.name)

    def exists_in(self, state: Mapping[str, Any]) -> bool:
        return state.get("ensure") not in NOT_INSTALLED

    def validate(self) -> None:
        desired = text_of(self.ensure)
        if self.value_of("mark") and desired in (ABSENT, PURGED):
            raise ValueError('You cannot use "mark" property while "ensure" is one of ["absent", "purged"]')
        if desired == "disabled" and self.flavor:
            raise ValueError("Cannot have both `ensure => disabled` and `flavor`")
        if self.enable_only and self.flavor:
            raise ValueError("Cannot have both `enable_only => true` and `flavor`")
        if self.enable_only and desired == "disabled":
            raise ValueError("Cannot have both `ensure => disabled` and `enable_only => true`")

    def autorequire(self) -> Iterator[Ref]:
        for path in (self.responsefile, self.adminfile):
            if path:
                yield Ref("file", path)
        if self.source and self.source.startswith("/"):
            yield Ref("file", self.source)

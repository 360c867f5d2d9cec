"""The providers of users, groups, packages and services."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shared.ral import Platform, Provider, Providers


def system_providers(platform: Platform) -> Mapping[str, Callable[[], Sequence[Provider[Any]]]]:
    """Return for each of these types the function that creates its providers; nothing is imported before a catalog needs it."""

    def user() -> Sequence[Provider[Any]]:
        from .accounts import AccountDatabase
        from .user.useradd import Useradd

        return [Useradd(AccountDatabase(), platform)]

    def group() -> Sequence[Provider[Any]]:
        from .accounts import AccountDatabase
        from .group.groupadd import Groupadd

        return [Groupadd(AccountDatabase(), platform)]

    def package() -> Sequence[Provider[Any]]:
        from .package.apk import Apk
        from .package.apt import Apt
        from .package.dnfmodule import DnfModule
        from .package.dpkg import Dpkg
        from .package.gem import Gem, PuppetGem, PuppetserverGem
        from .package.npm import Npm
        from .package.pacman import Pacman
        from .package.pip import Pip, Pip2, Pip3
        from .package.rpm import Rpm
        from .package.snap import Snap
        from .package.yum import Dnf, Yum
        from .package.zypper import Zypper

        return [
            Apt(), Dpkg(), Dnf(), Yum(), Rpm(), Zypper(), Apk(), Pacman(), Pip(), Pip3(), Pip2(), Gem(), Npm(), Snap(),
            DnfModule(), PuppetGem(), PuppetserverGem(),
        ]  # fmt: skip

    def service() -> Sequence[Provider[Any]]:
        from .service.base import ServiceProvider
        from .service.debian import Debian
        from .service.init import Init
        from .service.openrc import Openrc
        from .service.redhat import Redhat
        from .service.systemd import Systemd
        from .service.upstart import Upstart

        suse = str(platform.fact("os.family")).lower() == "suse"
        return [Systemd(), Openrc(), Upstart(), Debian(), Redhat(suse=suse), Init(), ServiceProvider()]

    return {"user": user, "group": group, "package": package, "service": service}


def default_provider_name(type_name: str, platform: Platform) -> str | None:
    """Return the name of the provider that a resource of one of these types has on a platform; None: none fits."""
    usual, _ = Providers(_usual_providers(platform), platform).default(type_name)
    if usual is not None and usual.is_default(platform):
        return usual.name
    provider, _ = Providers(system_providers(platform), platform).default(type_name)
    return provider.name if provider is not None else None


def _usual_providers(platform: Platform) -> Mapping[str, Callable[[], Sequence[Provider[Any]]]]:
    """Return the providers that are preferred to all others where they are meant for the platform, so that no others need be loaded."""
    if str(platform.fact("os.family")).lower() != "debian":
        return {}

    def package() -> Sequence[Provider[Any]]:
        from .package.apt import Apt

        return [Apt()]

    def service() -> Sequence[Provider[Any]]:
        from .service.systemd import Systemd

        return [Systemd()]

    return {"package": package, "service": service}

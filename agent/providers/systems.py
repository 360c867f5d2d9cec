"""The providers of what a system is made of: users, groups, packages, services."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shared.ral import Platform, Provider


def system_providers(platform: Platform) -> Mapping[str, Callable[[], Sequence[Provider[Any]]]]:
    """For each of these types what makes its providers; nothing is imported before a catalog needs it."""

    def user() -> Sequence[Provider[Any]]:
        from .accounts import Accounts
        from .user.useradd import Useradd

        return [Useradd(Accounts(), platform)]

    def group() -> Sequence[Provider[Any]]:
        from .accounts import Accounts
        from .group.groupadd import Groupadd

        return [Groupadd(Accounts(), platform)]

    def package() -> Sequence[Provider[Any]]:
        from .package.apt import Apt
        from .package.dpkg import Dpkg

        return [Apt(), Dpkg()]

    def service() -> Sequence[Provider[Any]]:
        from .service.base import Base
        from .service.debian import Debian
        from .service.init import Init
        from .service.systemd import Systemd

        return [Systemd(), Debian(), Init(), Base()]

    return {"user": user, "group": group, "package": package, "service": service}

"""Providers of the type `package`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.ral import Provider

from ..provider_run import ProviderRun


def providers(run: ProviderRun) -> Sequence[Provider[Any]]:
    """Return all providers of the type."""
    from .apk import Apk
    from .apt import Apt
    from .dnfmodule import DnfModule
    from .dpkg import Dpkg
    from .gem import Gem, PuppetGem, PuppetserverGem
    from .npm import Npm
    from .pacman import Pacman
    from .pip import Pip, Pip2, Pip3
    from .rpm import Rpm
    from .snap import Snap
    from .yum import Dnf, Yum
    from .zypper import Zypper

    return [
        Apt(), Dpkg(), Dnf(), Yum(), Rpm(), Zypper(), Apk(), Pacman(), Pip(), Pip3(), Pip2(), Gem(), Npm(), Snap(),
        DnfModule(), PuppetGem(), PuppetserverGem(),
    ]  # fmt: skip

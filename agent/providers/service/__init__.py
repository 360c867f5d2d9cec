"""Providers of the type `service`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.ral import Provider

from ..provider_run import ProviderRun


def providers(run: ProviderRun) -> Sequence[Provider[Any]]:
    """Return all providers of the type."""
    from .base import ServiceProvider
    from .debian import Debian
    from .init import Init
    from .openrc import Openrc
    from .redhat import Redhat
    from .systemd import Systemd
    from .upstart import Upstart

    suse = str(run.platform.fact("os.family")).lower() == "suse"
    return [Systemd(), Openrc(), Upstart(), Debian(), Redhat(suse=suse), Init(), ServiceProvider()]

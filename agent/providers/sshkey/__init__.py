"""Providers of the type `sshkey`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.ral import Provider

from ..provider_run import ProviderRun


def providers(run: ProviderRun) -> Sequence[Provider[Any]]:
    """Return all providers of the type."""
    from .parsed import KnownHosts, KnownHostsFormat

    return [KnownHosts(KnownHostsFormat(), run.flat(mode=0o644), run.log, default_target="/etc/ssh/ssh_known_hosts")]

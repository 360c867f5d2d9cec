"""All facts of this machine: core, environment, external and custom, in Facter's order of precedence."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.indirector.core import Request, Terminus
from shared.models.facts import Facts

from . import hardware, machine, networking, operatingsystem
from .custom import custom_facts, declared
from .external import Limits, external_facts
from .host import Host
from .legacy import legacy_facts
from .threads import in_thread

log = logging.getLogger("puppet.facts")

FACTER_VERSION = "4.3.0"  # the version whose facts these are

CORE: tuple[Callable[[Host], dict[str, Any]], ...] = (
    operatingsystem.resolve_os,
    operatingsystem.resolve_kernel,
    hardware.resolve_memory,
    hardware.resolve_processors,
    hardware.resolve_load,
    hardware.resolve_filesystems,
    hardware.resolve_fips,
    hardware.resolve_dmi,
    hardware.resolve_disks,
    machine.resolve_identity,
    machine.resolve_path,
    machine.resolve_uptime,
    machine.resolve_timezone,
    machine.resolve_virtual,
    networking.resolve_networking,
)

# What the agent or the master says about a node; no external or custom fact may say it instead.
RESERVED = frozenset({"trusted", "facts", "server_facts", "clientcert", "clientversion", "clientnoop"})


@dataclass(frozen=True, slots=True)
class Sources:
    """Where facts come from. `core_seconds` bounds one core resolver, `added` are facts the agent knows itself."""

    external: Sequence[Path] = ()
    custom: Sequence[Path] = ()
    limits: Limits = field(default_factory=Limits)
    core_seconds: float = 20.0
    legacy: bool = True
    added: Mapping[str, Any] = field(default_factory=dict)


async def gather(host: Host, sources: Sources, core: Sequence[Callable[[Host], dict[str, Any]]] = CORE) -> dict[str, Any]:
    """The facts by name, sorted. Resolvers and programs run at the same time; what is late or fails is logged and missing."""
    results, outside = await asyncio.gather(
        asyncio.gather(*(_core(resolver, host, sources.core_seconds) for resolver in core)),
        external_facts(sources.external, environ=host.environ, limits=sources.limits),
    )
    known: dict[str, Any] = {"facterversion": FACTER_VERSION, **sources.added}
    for result in results:
        known |= result
    if sources.legacy:
        known = {**legacy_facts(known), **known}
    weights = dict.fromkeys(known, 0)
    for facts, weight in ((_allowed(outside, "external"), 10_000), (_allowed(environment_facts(host.environ), "environment"), 1_000_000)):
        known |= facts
        weights |= dict.fromkeys(facts, weight)
    declarations = await asyncio.to_thread(declared, sources.custom)
    if declarations:
        known |= _allowed(await custom_facts(declarations, host, known, weights), "custom")
    return {name: known[name] for name in sorted(known) if known[name] is not None}


async def _core(resolver: Callable[[Host], dict[str, Any]], host: Host, seconds: float) -> dict[str, Any]:
    try:
        return await in_thread(lambda: resolver(host), seconds=seconds, name=resolver.__name__)
    except TimeoutError:
        log.error("Timed out after %g seconds in %s; its facts are missing", seconds, resolver.__name__)
    except Exception as err:  # noqa: BLE001  # one broken resolver must not cost the run its other facts
        log.error("Could not resolve facts in %s: %s: %s", resolver.__name__, type(err).__name__, err)
    return {}


def environment_facts(environ: Mapping[str, str]) -> dict[str, str]:
    """`FACTER_name=value` or `FACTERname=value`: always text, heavier than anything else."""
    return {name[6:].lstrip("_").lower(): value for name, value in environ.items() if name.startswith("FACTER") and len(name) > 7}


def _allowed(facts: Mapping[str, Any], kind: str) -> dict[str, Any]:
    refused = sorted(RESERVED & facts.keys())
    if refused:
        log.warning("Ignoring the %s facts %s: these names are reserved", kind, ", ".join(refused))
    return {name: value for name, value in facts.items() if name not in RESERVED}


class Facter(Terminus[Facts]):
    """This machine's facts; `now` gives ISO 8601 text."""

    def __init__(self, host: Host, sources: Sources, now: Callable[[], str]) -> None:
        self.host = host
        self.sources = sources
        self.now = now

    async def find(self, request: Request[Facts]) -> Facts:
        values = await gather(self.host, self.sources)
        return Facts(name=request.key, values=values, timestamp=self.now())

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

from .builtin import augeas, hardware, machine, networking, operatingsystem, ssh, storage, virtual
from .builtin.host import Host
from .builtin.ruby import ruby_resolver
from .custom import custom_facts, load_all
from .external import ExternalFactLimits, external_facts
from .facterconf import FactCache, FacterConf, read_conf
from .legacy import legacy_facts
from .ruby import RubyFactRequest, RubyFactRunner, ruby_only, skip_ruby_facts
from .threads import run_in_thread

log = logging.getLogger("puppet.facts")

FACTER_VERSION = "4.3.0"  # the version whose facts these are

# The facts of each resolver, which need not run when all of them are blocked or cached.
PROVIDES: Mapping[Callable[[Host], dict[str, Any]], tuple[str, ...]] = {
    operatingsystem.resolve_os: ("os",),
    operatingsystem.resolve_kernel: ("kernel", "kernelrelease", "kernelversion", "kernelmajversion"),
    hardware.resolve_memory: ("memory",),
    hardware.resolve_processors: ("processors",),
    hardware.resolve_load: ("load_averages",),
    hardware.resolve_filesystems: ("filesystems",),
    hardware.resolve_fips: ("fips_enabled",),
    hardware.resolve_dmi: ("dmi",),
    machine.resolve_identity: ("identity",),
    machine.resolve_path: ("path",),
    machine.resolve_uptime: ("system_uptime",),
    machine.resolve_timezone: ("timezone",),
    networking.resolve_networking: ("networking",),
    storage.resolve_storage: ("mountpoints", "disks", "partitions"),
    virtual.resolve_virtual: ("virtual", "is_virtual", "hypervisors", "xen"),
    ssh.resolve_ssh: ("ssh",),
    augeas.resolve_augeas: ("augeas",),
}
CORE = tuple(PROVIDES)

# Facts that only the agent or the master may set, no external or custom fact.
RESERVED = frozenset({"trusted", "facts", "server_facts", "clientcert", "clientversion", "clientnoop"})


@dataclass(frozen=True, slots=True)
class FactSources:
    """
    The sources of facts.

    Attributes:
        external: folders of external facts that always count.
        system: folders of external facts that facter.conf may replace.
        custom: folders of custom facts.
        core_seconds: the time that one core resolver may take.
        ruby: runs the facts that modules have in Ruby alone; None: nothing does.
        ruby_program: the Ruby that the fact `ruby` is about; '' for none.
        conf, cache: facter.conf, and the folder of its cache; None: there is none.
        added: facts that the agent knows itself.
        fallbacks: returns, from the facts of the machine, those that count where nothing else has one of the name.
    """

    external: Sequence[Path] = ()
    system: Sequence[Path] = ()
    custom: Sequence[Path] = ()
    limits: ExternalFactLimits = field(default_factory=ExternalFactLimits)
    core_seconds: float = 20.0
    legacy: bool = True
    ruby: RubyFactRunner | None = None
    ruby_program: str = ""
    conf: Path | None = None
    cache: Path | None = None
    added: Mapping[str, Any] = field(default_factory=dict)
    fallbacks: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None


Resolvers = Sequence[Callable[[Host], dict[str, Any]]]


async def gather(host: Host, sources: FactSources, core: Resolvers = CORE) -> dict[str, Any]:
    """Return the facts by name, sorted, as Puppet gets them from Facter: a missing value inside a structure is an empty text."""
    facts: dict[str, Any] = _sanitize(await resolve(host, sources, core))
    return facts


def _sanitize(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sanitize(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_sanitize(item) for item in value]
    return "" if value is None else value


async def resolve(host: Host, sources: FactSources, core: Resolvers = CORE) -> dict[str, Any]:
    """
    Return the facts by name, sorted, as Facter prints them.

    Resolvers and programs run at the same time; those that are late or fail are logged.
    """
    conf = await asyncio.to_thread(read_conf, sources.conf) if sources.conf is not None else FacterConf()
    cache = FactCache(conf, sources.cache) if conf.ttls and sources.cache is not None else None
    cached = await asyncio.to_thread(cache.load) if cache else {}
    unneeded = conf.blocked | cached.keys()
    resolvers = [resolver for resolver in core if not unneeded.issuperset(PROVIDES.get(resolver, ("",)))]
    if sources.ruby_program and "ruby" not in unneeded:
        resolvers.append(ruby_resolver(sources.ruby_program))
    external_folders = () if conf.no_external else (*sources.external, *(conf.external or sources.system))
    custom_folders = () if conf.no_custom else (*sources.custom, *_facterlib(host), *conf.custom)
    results, external = await asyncio.gather(
        asyncio.gather(*(_resolve_core(resolver, host, sources.core_seconds) for resolver in resolvers)),
        external_facts(external_folders, environ=host.environ, limits=sources.limits, blocked=conf.blocked),
    )
    known: dict[str, Any] = {"facterversion": FACTER_VERSION, **sources.added}
    for result in results:
        known |= result
    known = conf.without_blocked({**known, **cached})
    if sources.legacy and "legacy" not in conf.blocked:
        known = {**conf.without_blocked(legacy_facts(known)), **known}
    machine = known
    fallbacks = conf.without_blocked(await _fallbacks(host, sources, machine))
    external = _without_reserved(external, "external")
    environment = _without_reserved(environment_facts(host.environ), "environment")
    weights = {**dict.fromkeys(machine, 0), **dict.fromkeys(external, 10_000), **dict.fromkeys(environment, 1_000_000)}
    known = {**fallbacks, **machine, **external, **environment}
    if files := await asyncio.to_thread(ruby_only, custom_folders):
        run = skip_ruby_facts if sources.ruby is None or conf.no_ruby else sources.ruby
        request = RubyFactRequest(
            files, custom_folders, host.environ, machine, external, environment, fallbacks, conf.blocked | frozenset(cached)
        )
        known |= _without_reserved({name: value for name, value in (await run(request)).items() if name not in conf.blocked}, "custom")
    declarations = [
        declaration for declaration in await asyncio.to_thread(load_all, custom_folders) if declaration.name not in conf.blocked
    ]
    if declarations:
        known |= _without_reserved(await custom_facts(declarations, host, known, weights), "custom")
    if cache:
        await asyncio.to_thread(cache.store, known)
    return {name: known[name] for name in sorted(known) if known[name] is not None}


def _facterlib(host: Host) -> list[Path]:
    return [Path(folder) for folder in host.environ.get("FACTERLIB", "").split(":") if folder]


async def _fallbacks(host: Host, sources: FactSources, core: Mapping[str, Any]) -> dict[str, Any]:
    find = sources.fallbacks
    return {} if find is None else await _resolve_core(lambda _: dict(find(core)), host, sources.core_seconds, name="fallback facts")


async def _resolve_core(resolver: Callable[[Host], dict[str, Any]], host: Host, seconds: float, name: str = "") -> dict[str, Any]:
    name = name or resolver.__name__
    try:
        return await run_in_thread(lambda: resolver(host), seconds=seconds, name=name)
    except TimeoutError:
        log.error("Timed out after %g seconds in %s; its facts are missing", seconds, name)
    except Exception as err:  # noqa: BLE001  # one broken resolver must not cost the run its other facts
        log.error("Could not resolve facts in %s: %s: %s", name, type(err).__name__, err)
    return {}


def environment_facts(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the facts of variables `FACTER_name` or `FACTERname`: always text, with more weight than any other."""
    return {name[6:].lstrip("_").lower(): value for name, value in environ.items() if name.startswith("FACTER") and len(name) > 7}


def _without_reserved(facts: Mapping[str, Any], kind: str) -> dict[str, Any]:
    refused = sorted(RESERVED & facts.keys())
    if refused:
        log.warning("Ignoring the %s facts %s: these names are reserved", kind, ", ".join(refused))
    return {name: value for name, value in facts.items() if name not in RESERVED}


class Facter(Terminus[Facts]):
    """This machine's facts; `now` gives ISO 8601 text."""

    def __init__(self, host: Host, sources: FactSources, now: Callable[[], str]) -> None:
        self.host = host
        self.sources = sources
        self.now = now

    async def find(self, request: Request[Facts]) -> Facts:
        values = await gather(self.host, self.sources)
        return Facts(name=request.key, values=values, timestamp=self.now())

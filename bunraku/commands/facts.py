"""Print this machine's facts, or send them to the master. Source: command line reference 2.11."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent.facts.builtin.host import Host
from agent.facts.facter import FactSources, gather
from agent.facts.known import Known
from agent.facts.legacy import legacy_facts
from agent.facts.own import own_facts, puppet_facts
from agent.run.factsources import fact_sources
from agent.run.nodename import with_node_name
from shared.errors import ConfigError, NotFound
from shared.indirector import Request
from shared.indirector.rest import Rest
from shared.models.facts import FACTS, Facts
from shared.names import valid_certname
from shared.process import log as logs
from shared.process.cli import flag, maybe_text, text, texts
from shared.process.command import CommandSpec
from shared.settings import AgentSettings, MasterSettings, load
from shared.wire.dialects import MODERN

from ..faces import INDIRECTION_ACTIONS, IndirectionOptions, render


@dataclass(frozen=True, slots=True)
class FactsOptions(IndirectionOptions):
    """The command line of `puppet facts`."""

    config_file: str | None = maybe_text("FILE", "another facter.conf")
    external_dir: tuple[str, ...] = texts("DIR", "external facts from there, and not from the system's folders; may be repeated")
    custom_dir: tuple[str, ...] = texts("DIR", "more custom facts; may be repeated")
    modulepath: str = text("FOLDERS", "facts of the modules there, too; separated by colons")
    show_legacy: bool = flag("show: also the flat names of structured facts")
    value_only: bool = flag("show: print only the value of the one fact")
    cache: bool = flag("ignore facter's cache (facter.conf)", default=True, negatable=True)
    block: bool = flag("also resolve facts that facter.conf blocks", default=True, negatable=True)


@CommandSpec(
    "facts",
    FactsOptions,
    actions={
        "show [NAME...]": "print this machine's facts, or those of the names given (os.name reaches into a structure), as JSON by "
        "default; the default action",
        "find [NODE]": "print them as a master gets them; with --terminus puppetdb, postgresql, yaml or json those that a master has "
        "stored for a node, with rest the master's answer",
        "upload": "send them to the master",
        **INDIRECTION_ACTIONS,
    },
    notes="Exit codes: 0; 1 for a usage error, or when the master refused them.",
).main
def main(options: FactsOptions, flags: dict[str, Any]) -> int:
    settings = load(AgentSettings, section="user", flags=flags)
    logs.set_up(level=logs.level_of(settings))
    action, names = (options.action, options.names) if options.arguments else ("show", ())
    if action == "upload":
        settings = load(AgentSettings, section="agent", flags=flags)
        return _upload(settings, _sources(settings, options, flags))
    if options.arguments and options.is_for_indirection:
        from ..modulefaces.builtin import run_action

        return run_action(options, flags)
    if action == "find" and options.terminus not in ("", "facter"):
        stored = asyncio.run(_stored(flags, options.terminus, names[0] if names else settings.node_name_value))
        print(render(stored, options.as_yaml))
        return 0
    sources = _sources(settings, options, flags)
    if action == "find":
        print(render(asyncio.run(_found(settings, sources, names[0] if names else settings.node_name_value)), options.as_yaml))
        return 0
    names = names if action == "show" else options.arguments  # `show` may be left out
    print(_facts_text(asyncio.run(_values(sources)), names, options))
    return 0


def _sources(settings: AgentSettings, options: FactsOptions, flags: Mapping[str, Any]) -> FactSources:
    sources = fact_sources(settings)
    if options.modulepath:
        from ..catalogs.compilation import with_module_facts  # much of the master
        from ..environment import environment_of

        master = load(MasterSettings, section="user", flags=flags)
        sources = with_module_facts(sources, environment_of(master, modulepath=options.modulepath))
    if options.config_file is not None:
        sources = replace(sources, conf=Path(options.config_file))
    if options.external_dir:
        sources = replace(sources, external=[*sources.external, *map(Path, options.external_dir)], system=())
    if options.custom_dir:
        sources = replace(sources, custom=[*sources.custom, *map(Path, options.custom_dir)])
    if not options.block:
        sources = replace(sources, conf=None, cache=None)
    return replace(sources, legacy=True) if options.cache else replace(sources, legacy=True, cache=None)


async def _values(sources: FactSources) -> dict[str, Any]:
    return {**await gather(Host(), sources), **puppet_facts(MODERN.version)}


def _facts_text(values: Mapping[str, Any], names: Sequence[str], options: FactsOptions) -> str:
    known, yaml = Known(values), options.as_yaml
    if names:
        if options.value_only and len(names) == 1:
            value = known.get(names[0])
            return value if isinstance(value, str) and not options.as_json else render(value, yaml)
        return render({name: known.get(name, "") for name in sorted(names)}, yaml)
    if options.show_legacy:
        return render(dict(values), yaml)
    flat = legacy_facts(values)
    return render({name: value for name, value in values.items() if name not in flat}, yaml)


async def _found(settings: AgentSettings, sources: FactSources, name: str) -> dict[str, Any]:
    values = await gather(Host(), sources)
    own = own_facts(settings.certname, MODERN.version, noop=settings.noop)
    return {"name": name, "values": {**values, **own}, "timestamp": datetime.now(UTC).astimezone().isoformat()}


async def _stored(flags: Mapping[str, Any], terminus: str, name: str) -> Any:
    """Return a node's facts that a master has stored, as plain data; raise NotFound."""
    from master.bindings import facts_factories  # all of the master, which the other actions do not need
    from shared.settings.master import settings_beside_master

    settings = settings_beside_master(flags)
    factories = facts_factories(settings)
    if terminus not in factories:
        raise ConfigError(f"There is no terminus {terminus} for facts", hint=f"There are {', '.join(sorted(factories))}, and facter.")
    facts = await factories[terminus]().find(Request(valid_certname(name.lower()), settings.environment))
    if facts is None:
        raise NotFound(f"Could not find facts for {name}")
    return facts.to_data(MODERN)


def _upload(settings: AgentSettings, sources: FactSources) -> int:
    """Send the facts to the master, with this host's certificate."""
    from ..peer import open_server  # all that speaks HTTP: as much again as everything else here

    async def upload() -> None:
        data = await _found(settings, sources, settings.node_name_value)
        name = with_node_name(settings, data["values"]).node_name_value
        async with open_server(settings) as server:
            logging.getLogger("puppet.facts").log(logs.NOTICE, "Uploading facts for '%s' to '%s'", name, server.site.host)
            facts = Facts(name=name, values=data["values"], timestamp=data["timestamp"])
            await Rest(FACTS, server).save(Request(name, settings.environment or "production", body=facts))

    asyncio.run(upload())
    return 0

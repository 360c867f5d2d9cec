"""`puppet node clean|find`. Source: command line reference 2.11."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from master.ca import bootstrap, cli
from master.ca.registry import Registry
from master.choice import Choice
from master.environments import Environments
from master.termini.node import WithFacts
from master.wiring import environment_settings, facts_makers, node_makers, report_termini
from shared import log as logs
from shared.dialects import MODERN
from shared.errors import ConfigError, NotFound, PuppetError
from shared.indirector import Binding, Request
from shared.models.facts import FACTS, Facts
from shared.models.node import NODE
from shared.models.report import REPORT
from shared.names import certname
from shared.settings import MasterSettings, flags_of, load

from .certificates import place_for
from .faces import call_of, rendered

log = logging.getLogger("puppet.node")

HELP = """Usage: puppet node clean NAME...
       puppet node find NAME [--terminus TERMINUS] [--json | --yaml | --render-as json|yaml]

On a master.

  clean    what is kept of nodes that are gone: certificates are revoked and removed where the CA is; facts, cached nodes and stored
           reports are removed
  find     environment, classes and parameters of a node, as its catalog is compiled with them: what the classifier says, facts below it

Exit codes: 0; 1 when something could not be done, or there is no such node."""


def main(argv: Sequence[str]) -> int:
    """Run `puppet node …`; the exit code."""
    flags, left = flags_of(list(argv), MasterSettings, shorts={"-v": "--verbose", "-d": "--debug"})
    call = call_of("node", left, options=("terminus",), yaml=True)
    if call.help:
        print(HELP)
        return 0
    if not call.words:
        raise ConfigError("'node' has no default action.  See `puppet help node`.")
    settings = load(MasterSettings, section="master", flags=flags)
    logs.set_up(level=logs.level_of(settings), colour=settings.color)
    if call.words[0] == "find":
        (name,) = call.counted("find", 1)
        found = asyncio.run(Kept(settings, call.options.get("terminus", "")).node(certname(name.lower())))
        print(rendered(found, not call.json))
        return 0
    if call.words[0] != "clean":
        raise call.unknown_action(call.words[0])
    if not call.words[1:]:
        raise ConfigError("At least one node should be passed", hint="puppet node clean NAME...")
    names = [certname(name.lower()) for name in call.words[1:]]  # all of them, before anything is done
    failed = [name for name in names if not cleaned(name, settings, flags)]
    return 1 if failed else 0


def cleaned(name: str, settings: MasterSettings, flags: dict[str, Any]) -> bool:
    """Remove all that is kept of a node; whether all that could be done."""
    done = _without_certificates(name, flags)
    kept = Kept(settings)
    for what, forget in (("facts", kept.forget_facts), ("cached node", kept.forget_node), ("reports", kept.forget_reports)):
        try:
            asyncio.run(forget(name))
        except (PuppetError, OSError) as err:
            log.error("Could not remove the %s of %s: %s", what, name, err)
            done = False
        else:
            log.info("%s's %s removed", name, what)
    return done


def _without_certificates(name: str, flags: dict[str, Any]) -> bool:
    place = place_for(flags, make=False)
    if not place.ca or not bootstrap.prepare(place.files):
        log.info("Not managing %s certs as this host is not a CA", name)
        return True
    authority = bootstrap.open_authority(place.files, place.rules, now=place.now, report=place.report)
    if not authority.serials_of(name) and Registry(authority).request(name) is None:
        log.info("%s has no certificate", name)
        return True
    return cli.cert(["clean", name], place) == 0


class Kept:
    """What a master keeps of nodes, where its settings and routes.yaml have it. `node_terminus`: another one to ask for nodes."""

    def __init__(self, settings: MasterSettings, node_terminus: str = "") -> None:
        self.settings = settings
        choice = Choice(settings, Environments(environment_settings(settings)))
        facts, nodes, reports = facts_makers(settings), node_makers(settings), report_termini(settings)
        self._facts: Binding[Facts] = Binding(
            FACTS, choice.terminus(FACTS, facts, settings.facts_terminus or "yaml"), cache=choice.cache(FACTS, facts)
        )
        self._nodes = choice.named(NODE, nodes, node_terminus) if node_terminus else choice.terminus(NODE, nodes, settings.node_terminus)
        self._node_cache = choice.cache(NODE, nodes, settings.node_cache_terminus or "yaml")
        self._reports = choice.terminus(REPORT, reports, "processor")

    async def forget_facts(self, name: str) -> None:
        """PuppetError, OSError: they cannot be removed."""
        await self._facts.destroy(name, environment=self.settings.environment)

    async def forget_node(self, name: str) -> None:
        """From the cache, also one that is no longer in use: a classifier's nodes are its own."""
        if self._node_cache is not None:
            await self._node_cache.destroy(Request(name, self.settings.environment))

    async def forget_reports(self, name: str) -> None:
        """Those that report processors keep."""
        await self._reports.destroy(Request(name, self.settings.environment))

    async def node(self, name: str) -> Any:
        """A node with its facts, as plain data; NotFound."""
        found = await WithFacts(self._nodes, self._facts).find(Request(name, self.settings.environment))
        if found is None:
            raise NotFound(f"Could not find node {name}")
        return found.to_data(MODERN)

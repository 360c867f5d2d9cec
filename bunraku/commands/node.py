"""`puppet node clean|find`. Source: command line reference 2.11."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from master.bindings import facts_binding, node_factories, report_factories
from master.ca.commands import puppet_cert
from master.ca.commands.site import CaSite
from master.ca.registry import CertificateRegistry
from master.ca.setup import bootstrap
from master.environments.directories import Environments
from master.environments.settings import environment_settings
from master.termini.node import WithFacts
from master.termini.registry import TerminusRegistry
from shared.errors import ConfigError, NotFound, PuppetError
from shared.indirector import Request
from shared.models.node import NODE
from shared.models.report import REPORT
from shared.names import valid_certname
from shared.process import log as logs
from shared.process.cli import text
from shared.settings import MasterSettings, load
from shared.wire.dialects import MODERN

from ..faces import DataFaceOptions, parse_face, render
from .certificates import place_for

log = logging.getLogger("puppet.node")

HELP = """Usage: puppet node clean NAME...
       puppet node find NAME [--terminus TERMINUS] [--json | --yaml | --render-as json|yaml]

On a master.

  clean    what is kept of nodes that are gone: certificates are revoked and removed where the CA is; facts, cached nodes and stored
           reports are removed
  find     environment, classes and parameters of a node, as its catalog is compiled with them: what the classifier says, facts below it

Exit codes: 0; 1 when something could not be done, or there is no such node."""


@dataclass(frozen=True, slots=True)
class NodeOptions(DataFaceOptions):
    """The command line of `puppet node`."""

    face = "node"

    terminus: str = text()


def main(argv: Sequence[str]) -> int:
    """Run `puppet node …`; the exit code."""
    options, flags = parse_face(NodeOptions, argv, MasterSettings)
    if options.help:
        print(HELP)
        return 0
    action = options.action
    settings = load(MasterSettings, section="master", flags=flags)
    logs.set_up(level=logs.level_of(settings), colour=settings.color)
    if action == "find":
        (name,) = options.exactly(1)
        node = asyncio.run(classified_node(valid_certname(name.lower()), settings, options.terminus))
        print(render(node, not options.as_json))
        return 0
    if action != "clean":
        raise options.unknown_action(("find", "clean"))
    if not options.names:
        raise ConfigError("At least one node should be passed", hint="puppet node clean NAME...")
    names = [valid_certname(name.lower()) for name in options.names]  # all of them, before anything is done
    place, stored = place_for(flags), StoredNodes(settings)
    failed = [name for name in names if not clean_node(name, place, stored)]
    return 1 if failed else 0


async def classified_node(name: str, settings: MasterSettings, terminus: str = "") -> Any:
    """Return a node with its facts, as plain data, from another terminus than the settings' if one is named; NotFound."""
    registry = choice_of(settings)
    factories = node_factories(settings)
    nodes = registry.terminus_named(NODE, factories, terminus) if terminus else registry.terminus(NODE, factories, settings.node_terminus)
    node = await WithFacts(nodes, facts_binding(settings, registry)).find(Request(name, settings.environment))
    if node is None:
        raise NotFound(f"Could not find node {name}")
    return node.to_data(MODERN)


def clean_node(name: str, place: CaSite, stored: StoredNodes) -> bool:
    """Remove all that is kept of a node; whether all that could be done."""
    done = _without_certificates(name, place)
    for what, forget in (("facts", stored.forget_facts), ("cached node", stored.forget_node), ("reports", stored.forget_reports)):
        try:
            asyncio.run(forget(name))
        except (PuppetError, OSError) as err:
            log.error("Could not remove the %s of %s: %s", what, name, err)
            done = False
        else:
            log.info("%s's %s removed", name, what)
    return done


def _without_certificates(name: str, place: CaSite) -> bool:
    if not place.ca or not bootstrap.prepare(place.files):
        log.info("Not managing %s certs as this host is not a CA", name)
        return True
    authority = bootstrap.open_authority(place.files, place.rules, now=place.now, report=place.report)
    if not authority.serials_of(name) and CertificateRegistry(authority).request(name) is None:
        log.info("%s has no certificate", name)
        return True
    return puppet_cert.cert(["clean", name], place) == 0


def choice_of(settings: MasterSettings) -> TerminusRegistry:
    """Where a master's settings and routes.yaml have things."""
    return TerminusRegistry(settings, Environments(environment_settings(settings)))


class StoredNodes:
    """What a master keeps of nodes."""

    def __init__(self, settings: MasterSettings) -> None:
        self.settings = settings
        registry = choice_of(settings)
        self._facts = facts_binding(settings, registry)
        self._node_cache = registry.cache(NODE, node_factories(settings), settings.node_cache_terminus or "yaml")
        self._reports = registry.terminus(REPORT, report_factories(settings), "processor")

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

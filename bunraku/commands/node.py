"""Remove the data of decommissioned nodes; show a node. Source: command line reference 2.11."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

from ca.commands import puppet_cert
from ca.commands.site import CaSite
from ca.registry import CertificateRegistry
from ca.setup import bootstrap
from environments.directories import Environments
from environments.settings import environment_settings
from master.bindings import facts_binding, node_factories, report_factories
from master.puppetdb.client import QUERY_PATH, PuppetDbClient
from master.puppetdb.configured import puppetdb_client
from master.puppetdb.termini import PuppetDbNodes
from master.termini.node import WithFacts
from master.termini.registry import TerminusRegistry
from shared.data import plainjson
from shared.errors import ConfigError, NotFound, PuppetError
from shared.indirector import Request
from shared.models.node import NODE
from shared.models.report import REPORT
from shared.names import valid_certname
from shared.process import log as logs
from shared.process.command import CommandSpec
from shared.settings import MasterSettings
from shared.settings.master import settings_beside_master
from shared.wire.dialects import MODERN

from ..faces import INDIRECTION_ACTIONS, IndirectionOptions, render
from .cert import place_for

log = logging.getLogger("puppet.node")

_NO_NAMES = {
    "clean": "At least one node should be passed",
    "deactivate": "Please provide at least one node for deactivation",
    "status": "Please provide at least one node",
}


@CommandSpec(
    "node",
    IndirectionOptions,
    (MasterSettings,),
    actions={
        "clean NAME...": "remove the data of decommissioned nodes: revoke and remove their certificates where the CA is, remove facts, "
        "cached nodes and stored reports; with storeconfigs deactivate them as well",
        "deactivate NAME...": "deactivate nodes in the PuppetDB of puppetdb.conf: their exported resources are no longer collected",
        "find NAME": "print a node's environment, classes and parameters, from the classifier and its facts, as they are used "
        "to compile its catalog",
        "status NAME...": "print whether nodes are active in the PuppetDB, and since when it has their catalog and facts",
        **INDIRECTION_ACTIONS,
    },
    text="Run it on a master.",
    notes="Exit codes: 0; 1 when something could not be done, or there is no such node.",
).main
def main(options: IndirectionOptions, flags: dict[str, Any]) -> int:
    action = options.action
    settings = settings_beside_master(flags)
    logs.set_up(level=logs.level_of(settings), colour=settings.color)
    if options.is_for_indirection:
        from ..modulefaces.builtin import run_action

        return run_action(options, flags)
    if action == "find":
        (name,) = options.exactly(1)
        node = asyncio.run(classified_node(valid_certname(name.lower()), settings, options.terminus))
        print(render(node, not options.as_json))
        return 0
    if action not in _NO_NAMES:
        raise options.unknown_action(main.action_docs)
    if not options.names:
        raise ConfigError(_NO_NAMES[action], hint=f"puppet node {action} NAME...")
    names = [valid_certname(name.lower()) for name in options.names]  # all of them, before anything is done
    if action == "deactivate":
        if not (options.as_json or options.as_yaml):
            return asyncio.run(deactivate(names, puppetdb_client(settings)))
        uuids: dict[str, str] = {}
        code = asyncio.run(deactivate(names, puppetdb_client(settings), uuids.__setitem__))
        print(render(uuids, options.as_yaml))
        return code
    if action == "status":
        statuses = asyncio.run(node_statuses(names, puppetdb_client(settings)))
        if options.as_json or options.as_yaml:
            print(render(statuses, options.as_yaml))
        elif statuses:
            print("\n\n".join(map(status_text, statuses)))
        return 0 if len(statuses) == len(names) else 1
    place, stored = place_for(flags), StoredNodes(settings)
    with closing(place.store):
        failed = [name for name in names if not clean_node(name, place, stored)]
    return 1 if failed else 0


def print_submission(name: str, uuid: str) -> None:
    """Print that a node is deactivated."""
    print(f"Submitted 'deactivate node' for {name} with UUID {uuid}")


async def deactivate(names: Sequence[str], client: PuppetDbClient, on_submission: Callable[[str, str], None] = print_submission) -> int:
    """Deactivate nodes in a PuppetDB and return the exit code; raise SubmissionFailed at the first that fails."""
    nodes, code = PuppetDbNodes(client), 0
    for name in names:
        uuid = await nodes.destroy(Request(name))
        if uuid is None:
            code = 1  # the log says why: soft_write_failure is set
        else:
            on_submission(name, uuid)
    return code


async def node_statuses(names: Sequence[str], client: PuppetDbClient) -> list[dict[str, Any]]:
    """Return the states of nodes in a PuppetDB; unknown nodes are left out, and logged."""
    statuses = []
    for name in names:
        try:
            answer = await client.get(f"{QUERY_PATH}/nodes/{name}")
            if not answer.is_success:
                raise PuppetError(answer.problem)
            status: dict[str, Any] = plainjson.loads(answer.body)
        except PuppetError as err:
            log.error("Could not retrieve status for %s: %s", name, err.message)
        else:
            statuses.append(status)
    return statuses


def status_text(status: Mapping[str, Any]) -> str:
    """Return a node's state in a PuppetDB, as text for people."""
    state = "Currently active"
    if status.get("deactivated"):
        state = f"Deactivated at {status['deactivated']}"
    elif status.get("expired"):
        state = f"Expired at {status['expired']}"
    times = [(what, status.get(f"{what.lower()}_timestamp")) for what in ("Catalog", "Facts")]
    lines = [f"Last {what.lower()}: {time}" if time else f"No {what.lower()} received" for what, time in times]
    return "\n".join([str(status.get("certname", "")), state, *lines])


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
    """Remove all stored data of a node; return whether everything succeeded."""
    done = _without_certificates(name, place)
    for what, forget in stored.parts():
        try:
            asyncio.run(forget(name))
        except (PuppetError, OSError) as err:
            log.error("Could not remove the %s of %s: %s", what, name, err)
            done = False
        else:
            log.info("%s's %s removed", name, what)
    return done


def _without_certificates(name: str, place: CaSite) -> bool:
    if not place.ca or not place.store.prepare():
        log.info("Not managing %s certs as this host is not a CA", name)
        return True
    authority = bootstrap.open_authority(place.store, place.rules, now=place.now, report=place.report)
    if not authority.serials_of(name) and CertificateRegistry(authority).request(name) is None:
        log.info("%s has no certificate", name)
        return True
    return puppet_cert.cert(["clean", name], place) == 0


def choice_of(settings: MasterSettings) -> TerminusRegistry:
    """Return the place that a master's settings and routes.yaml select."""
    return TerminusRegistry(settings, Environments(environment_settings(settings)))


class StoredNodes:
    """A master's stored data of nodes."""

    def __init__(self, settings: MasterSettings) -> None:
        self.settings = settings
        registry = choice_of(settings)
        self._puppetdb = PuppetDbNodes(puppetdb_client(settings)) if settings.storeconfigs else None
        self._facts = facts_binding(settings, registry)
        self._node_cache = registry.cache(NODE, node_factories(settings), settings.node_cache_terminus or settings.place_of_state("yaml"))
        self._reports = registry.terminus(REPORT, report_factories(settings), "processor")

    def parts(self) -> Iterable[tuple[str, Callable[[str], Coroutine[Any, Any, None]]]]:
        """Yield the kinds of stored data, each with the function that removes it for a node."""
        yield "facts", self.forget_facts
        yield "cached node", self.forget_node
        yield "reports", self.forget_reports
        if self._puppetdb is not None:
            yield "node in the PuppetDB", self.deactivate

    async def deactivate(self, name: str) -> None:
        """PuppetError: no server of the PuppetDB takes it."""
        assert self._puppetdb is not None
        await self._puppetdb.destroy(Request(name, self.settings.environment))

    async def forget_facts(self, name: str) -> None:
        """PuppetError, OSError: they cannot be removed."""
        await self._facts.destroy(name, environment=self.settings.environment)

    async def forget_node(self, name: str) -> None:
        """From the cache, also one that is no longer in use: a classifier's nodes are its own."""
        if self._node_cache is not None:
            await self._node_cache.destroy(Request(name, self.settings.environment))

    async def forget_reports(self, name: str) -> None:
        """Remove the reports of a node that report processors have stored."""
        await self._reports.destroy(Request(name, self.settings.environment))

"""The termini that a face reaches: those of a master on this host, those of modules, and servers by `rest`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from agent.servers.server import Server
from shared.errors import ConfigError, Unsupported
from shared.filesystem.trust import check_place_of_code
from shared.indirector import Binding, Indirection, Terminus
from shared.indirector.paths import Outgoing
from shared.indirector.plugins import PluginContext, find_models, find_plugins, indirection_in, indirection_of, terminus_of
from shared.indirector.rest import Answer, OpenAnswer, Rest
from shared.settings import AgentSettings, load
from shared.settings.master import settings_beside_master
from shared.suggestions import did_you_mean
from shared.wire.dialects import Dialect

from ..peer import open_server, open_wiring

_AT_CA = ("certificate", "certificate_request", "certificate_revocation_list", "certificate_status", "ocsp")
_FILES = ("file_metadata", "file_content")
_BUILT_IN = (*_AT_CA, *_FILES, "catalog", "facts", "file_bucket_file", "node", "report", "resource_type", "status")
Factories = Mapping[str, Callable[[], Terminus[Any]]]


class Services:
    """
    The termini for one call of a face; connections end with `stack`.

    Args:
        flags: the settings of the command line.
        folders: those of all modules' plugins.
    """

    def __init__(self, settings: AgentSettings, flags: dict[str, Any], folders: Sequence[Path], stack: AsyncExitStack) -> None:
        self.settings = settings
        self.flags = flags
        self.folders = folders
        self.stack = stack

    async def binding(self, indirection: str, terminus: str = "") -> Binding[Any]:
        """Return an indirection with one of its termini, '' for its default: that of the settings, or else `rest`; raise ConfigError."""
        declared = await asyncio.to_thread(self._indirection, indirection)
        factories, default = await asyncio.to_thread(self._local_termini, declared)
        name = terminus or default
        if name in factories:
            return Binding(declared, factories[name]())
        plugins = await asyncio.to_thread(find_plugins, self.folders)
        plugin = plugins.get((indirection, name))
        if plugin is not None:
            await asyncio.to_thread(check_place_of_code, plugin.path)
            return Binding(declared, terminus_of(plugin, await asyncio.to_thread(self._context, declared)))
        if name == "rest":
            return Binding(declared, await self._rest(declared))
        names = sorted({*factories, "rest", *(own for of, own in plugins if of == indirection)})
        hint = did_you_mean(name, names, otherwise=f"There are {', '.join(names)}.")
        raise ConfigError(f"There is no terminus {name} for {indirection}", hint=hint)

    async def default_terminus(self, indirection: str) -> str:
        """Return the name of the terminus that `binding` takes without a choice; raise ConfigError for an unknown indirection."""
        return (await asyncio.to_thread(self._local_termini, await asyncio.to_thread(self._indirection, indirection)))[1]

    def _indirection(self, name: str) -> Indirection[Any]:
        if name in _BUILT_IN:
            built_in: Indirection[Any] = getattr(import_module(f"shared.models.{name}"), name.upper())
            return built_in
        models = find_models(self.folders, check_place_of_code)
        if name in models:
            check_place_of_code(models[name])
            return indirection_in(models[name])
        for (of, _), plugin in find_plugins(self.folders).items():
            if of != name:
                continue
            check_place_of_code(plugin.path)
            declared = indirection_of(plugin)
            if declared is not None:
                return declared
        known = sorted({*_BUILT_IN, *models})
        raise ConfigError(
            f"There is no indirection {name}",
            hint=did_you_mean(name, known, otherwise=f"A module declares one in lib/puppet/model/{name}.py."),
        )

    def _context(self, indirection: Indirection[Any]) -> PluginContext:
        settings = {**settings_beside_master(self.flags).model_dump(), **self.settings.model_dump()}
        return PluginContext(settings, _LateServer(self._agent(), self.stack), indirection)

    def _agent(self) -> AgentSettings:
        """Return the settings that an agent has: where its servers and its certificate are."""
        return load(AgentSettings, section="agent", flags=self.flags)

    async def _rest(self, indirection: Indirection[Any]) -> Terminus[Any]:
        name = indirection.name
        service = "report" if name == "report" else "fileserver" if name in _FILES else "ca" if name in _AT_CA else "puppet"
        wiring = await self.stack.enter_async_context(open_wiring(self._agent(), service))
        if name in ("certificate_status", "ocsp"):
            return Rest(indirection, wiring.ca_server, prefix="puppet-ca")
        return wiring.rest(indirection)

    def _local_termini(self, indirection: Indirection[Any]) -> tuple[Factories, str]:
        """Return the makers of an indirection's termini on this host, and which of all is the default."""
        name = indirection.name
        if name not in ("node", "facts", "catalog", "report"):
            return {}, "rest"
        from master.bindings import catalog_factories, facts_factories, node_factories, report_factories
        from master.puppetdb.configured import puppetdb_client

        master = settings_beside_master(self.flags)
        if name == "node":
            return node_factories(master), master.node_terminus
        if name == "catalog":
            return catalog_factories(master, _no_compiler, puppetdb_client(master)), master.catalog_terminus
        if name == "report":
            return report_factories(master), "processor"
        return {**facts_factories(master), "facter": self._facter}, "facter"

    def _facter(self) -> Terminus[Any]:
        from datetime import UTC, datetime

        from agent.facts.builtin.host import Host
        from agent.facts.facter import Facter
        from agent.run.factsources import fact_sources

        return Facter(Host(), fact_sources(self.settings), lambda: datetime.now(UTC).astimezone().isoformat())


def _no_compiler() -> Any:
    raise Unsupported(
        "The terminus compiler is not to be had in a face", hint="Use 'puppet catalog compile', or --terminus rest, json, yaml."
    )


class _LateServer:
    """The master as a terminus of a module reaches it; the connection is opened when it is first used."""

    def __init__(self, settings: AgentSettings, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._stack = stack
        self._server: Server | None = None

    async def _opened(self) -> Server:
        if self._server is None:
            self._server = await self._stack.enter_async_context(open_server(self._settings))
        return self._server

    async def dialect(self) -> Dialect:
        return await (await self._opened()).dialect()

    async def send(self, outgoing: Outgoing, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
        return await (await self._opened()).send(outgoing, headers, body)

    async def open(self, outgoing: Outgoing, headers: Mapping[str, str], body: AsyncIterator[bytes] | None = None) -> OpenAnswer:
        return await (await self._opened()).open(outgoing, headers, body)

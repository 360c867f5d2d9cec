"""
Catalogs of facts and trusted facts that the client sends: `POST /puppet/v4/catalog`.

Tools use it for catalogs of nodes other than themselves and of code that is not in use yet. Source: protocol reference 3.15.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from environments.runs import VersionForRun
from shared.data import plainjson
from shared.errors import NotFound, PuppetError
from shared.indirector import Binding, Request
from shared.models.catalog import Catalog
from shared.models.facts import Facts
from shared.models.node import Node
from shared.names import valid_certname
from shared.process.log import LEVELS, NOTICE

from ..pools.compiled_catalog import CompiledCatalog
from ..pools.jobs import CompileJob, CompileLogEntry
from ..puppetdb.termini import PuppetDbCatalogs
from ..termini.node import WithFacts
from .compiler_terminus import PreparedCatalog
from .v4_request import CatalogRequest

log = logging.getLogger("puppet.compiler")


class LoggedCompile(Protocol):
    async def __call__(self, job: CompileJob, log_entries: list[CompileLogEntry] | None = None) -> CompiledCatalog:
        """Return the catalog as JSON with rich data, and the log of its compilation; raise CompileError or Unavailable."""


@dataclass(kw_only=True, eq=False, repr=False)
class V4Catalogs:
    """
    The compiler of catalogs from data in the request, where the compiler terminus takes them from a certificate and an agent.

    Args:
        catalogs: Its cache, if it has one, gets catalogs that are to be saved: nothing else ever stores them.
        environments: Returns whether an environment exists; blocks, briefly.
        code_id: Returns the version of an environment's code.
        version_for: Decides on the folder that the code is read from.
    """

    facts: Binding[Facts]
    nodes: Binding[Node]
    catalogs: Binding[Catalog]
    compile: LoggedCompile
    server_facts: Mapping[str, Any]
    environments: Callable[[str], bool]
    code_id: Callable[[str], Awaitable[str | None]]
    version_for: VersionForRun
    now: Callable[[], datetime]

    async def find(self, catalog_request: CatalogRequest) -> bytes:
        """
        Return the answer as JSON: the catalog, and the log of its compilation if requested.

        Raises:
            BadName: It is not a certname.
            NotFound: There is no such environment.
            CompileError: The manifest is wrong; with file, line and column.
        """
        name = valid_certname(catalog_request.certname)
        await self._check_environment(catalog_request.environment)
        facts, trusted = await self._facts_and_trusted(catalog_request)
        node = await self._node(catalog_request, facts)
        # As in puppetserver, the classifier's environment wins unless the request insists.
        environment = catalog_request.environment if catalog_request.prefer_environment or not node.environment else node.environment
        await self._check_environment(environment)
        if catalog_request.save_facts:
            await self.nodes.expire(name, environment=catalog_request.environment)
            await self.facts.save(facts.with_trusted(trusted), environment=catalog_request.environment)
        log_entries: list[CompileLogEntry] | None = [] if catalog_request.log_level else None
        is_stored = catalog_request.save_catalog and isinstance(self.catalogs.cache, PuppetDbCatalogs)
        compiled = await self._compile(node, environment, facts, trusted, log_entries, is_stored)
        body = await asyncio.to_thread(bytes, compiled.text)
        if catalog_request.save_catalog and self.catalogs.cache is not None:
            saved = PreparedCatalog(
                name=name, environment=environment, text=compiled.text, is_rich=compiled.is_rich, stored=compiled.stored
            )
            options = {"transaction_uuid": catalog_request.transaction_uuid, "job_id": catalog_request.job_id}
            await self.catalogs.cache.save(Request(name, environment, body=saved, options=options))
        if log_entries is None:
            return b'{"catalog":' + body + b"}"
        text = f"Compiled catalog for {name} in environment {environment} using the v4 catalog endpoint"
        log_entries.append(CompileLogEntry("info", text, "", None, None, self.now()))
        return b'{"catalog":' + body + b',"logs":' + plainjson.dumps(list(_logs_to_data(log_entries, catalog_request.log_level))) + b"}"

    async def _check_environment(self, name: str) -> None:
        if not await asyncio.to_thread(self.environments, name):
            raise NotFound(f"Could not find environment '{name}'")

    async def _facts_and_trusted(self, catalog_request: CatalogRequest) -> tuple[Facts, Mapping[str, Any]]:
        """
        Return the facts and the trusted data of the node.

        The client chooses the trusted facts, by design: this is why a rule of the site must allow each client. They never come from
            stored facts, which a node sends about itself: with a fact called `trusted` it would choose them.
        """
        stamp = self.now().isoformat()
        if catalog_request.facts is None:
            # Past the cache: the request wants the newest facts, of whichever master stored them.
            stored = await self.facts.find(catalog_request.certname, environment=catalog_request.environment, ignore_cache=True)
            return stored or Facts(name=catalog_request.certname, timestamp=stamp), catalog_request.trusted or {}
        # A copy, because `trusted` is taken out of it.
        values = dict(catalog_request.facts)
        trusted = values.pop("trusted", None)
        facts = Facts(name=catalog_request.certname, values=values, timestamp=stamp)
        if catalog_request.trusted is not None:
            return facts, catalog_request.trusted
        return facts, trusted if isinstance(trusted, Mapping) else {}

    async def _node(self, catalog_request: CatalogRequest, facts: Facts) -> Node:
        """Return the node, without reading or filling a cache, because the facts may not be those of a real node."""
        options = {"transaction_uuid": catalog_request.transaction_uuid} if catalog_request.transaction_uuid else {}
        request: Request[Node] = Request(catalog_request.certname, catalog_request.environment, options=options)
        terminus = self.nodes.terminus
        assert isinstance(terminus, WithFacts)
        node = await terminus.find_with(request, facts)
        if node is None:
            raise PuppetError(
                f"Could not find node '{catalog_request.certname}'; cannot compile", hint="The node terminus does not know it."
            )
        return node

    async def _compile(
        self,
        node: Node,
        environment: str,
        facts: Facts,
        trusted: Mapping[str, Any],
        log_entries: list[CompileLogEntry] | None,
        is_stored: bool,
    ) -> CompiledCatalog:
        code_id = await self.code_id(environment)
        job = CompileJob.of(node.name, node, environment, facts, trusted, self.server_facts, code_id=code_id)
        job = replace(job, exported=True, is_stored=is_stored, pin=await asyncio.to_thread(self.version_for, node.name, environment))
        started = time.monotonic()
        compiled = await self.compile(job, log_entries)
        took = time.monotonic() - started
        version = f", code {compiled.code_id}" if compiled.code_id else ""
        log.log(NOTICE, "Compiled catalog of given facts for %s in environment %s in %.2f seconds%s", node.name, environment, took, version)
        return compiled


def _logs_to_data(log_entries: Iterable[CompileLogEntry], level: str) -> Iterable[dict[str, Any]]:
    """Yield log entries in puppetserver's form, without those that are less severe."""
    for entry in log_entries:
        if LEVELS.get(entry.level, NOTICE) >= LEVELS[level]:
            yield {
                "level": entry.level,
                "message": entry.message,
                "source": entry.source or "Puppet",
                "tags": [entry.level],
                "time": entry.time.strftime("%Y-%m-%dT%H:%M:%S.%f000+00:00"),
                "file": entry.file,
                "line": entry.line,
            }

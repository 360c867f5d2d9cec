"""
The compiler terminus: facts in, catalog out.

Facts are taken from the request and stored, the node is found with them, and the compiler gets plain data. Source: protocol
reference 3.3.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from shared.data import plainjson
from shared.errors import BadRequest, NoEnvironment, PuppetError, Unavailable
from shared.filesystem.checksums import Algorithm
from shared.indirector import Binding, Request, Terminus
from shared.models.catalog import CATALOG, Catalog
from shared.models.facts import FACTS, Facts
from shared.models.node import Node
from shared.names import valid_certname
from shared.process.log import NOTICE
from shared.wire.deflated import DeflatedText
from shared.wire.dialects import LEGACY, MODERN, Dialect
from shared.wire.formats import Format, of_content_type

from ..authorization.trusted import certname_behind, trusted_data
from ..pools.body_parser import BodyParser
from ..pools.compiled_catalog import CompiledCatalog
from ..pools.jobs import CompileJob
from ..puppetdb.termini import StorableCatalog
from ..termini.node import with_facts_in_hand
from .static import CodeVersion, StaticCatalogs, negotiate_checksum

log = logging.getLogger("puppet.compiler")


class Compile(Protocol):
    async def __call__(self, job: CompileJob) -> CompiledCatalog:
        """Return the catalog as JSON with rich data; CompileError, Unavailable."""


class PreparedCatalog(StorableCatalog):
    """
    A catalog in the JSON that a worker made; it is parsed only for formats that cannot hold all that is in it.

    Attributes:
        is_rich: Whether there are values in it that JSON has not.
    """

    text: DeflatedText
    is_rich: bool = False

    def encoded(self, dialect: Dialect, format: Format) -> DeflatedText | None:
        # Agents of 3.x get the catalog inside a document, for which it has to be unpacked.
        if dialect.wraps:
            return None
        is_fit = format.name == "rich_data_json" or (format.name in ("json", "pson") and not self.is_rich)
        return self.text if is_fit else None

    def to_data(self, dialect: Dialect) -> Any:
        return CATALOG.model.from_data(plainjson.loads_trusted(bytes(self.text))).to_data(dialect)


async def _nothing(name: str) -> Mapping[str, Any]:
    return {}


@dataclass(kw_only=True, eq=False, repr=False)
class CompilerTerminus(Terminus[Catalog]):
    """
    The terminus that compiles catalogs on demand.

    Args:
        compile: Compiles in another process.
        server_facts: `$server_facts`: servername, serverip, serverversion.
        environments: Returns whether an environment of that name exists.
        now: Gives the time at which facts arrive.
        default_environment: The environment of a node whose classifier names none and which asks for one that does not exist.
        static: Makes catalogs static and knows the version of the code; None: neither.
        external: Returns `$trusted['external']` for a certname.
        parser: Parses facts; by default without processes of its own.
        is_stored: Whether a PuppetDB gets the catalogs.
    """

    facts: Binding[Facts]
    nodes: Binding[Node]
    compile: Compile
    server_facts: Mapping[str, Any]
    environments: Callable[[str], Awaitable[bool]]
    default_environment: str
    now: Callable[[], datetime]
    static: StaticCatalogs | None = None
    external: Callable[[str], Awaitable[Mapping[str, Any]]] = _nothing
    parser: BodyParser = field(default_factory=BodyParser)
    is_stored: bool = False

    async def find(self, request: Request[Catalog]) -> Catalog | None:
        """
        Return the node's catalog.

        Raises:
            BadRequest: The facts do not parse, or are of another node.
            CompileError: The manifest is wrong; with file, line and column.
        """
        name = valid_certname(request.key)
        # First, so that a malformed request costs neither a classifier nor a program for trusted facts.
        sent_facts = await self._sent_facts(request)
        requested, exists = await self._environment_for(request)
        trusted = trusted_data(name, request.client, await self.external(certname_behind(name, request.client)))
        if sent_facts is not None:
            sent_facts = sent_facts.with_trusted(trusted)
            # The cached node was merged with the old facts.
            await self.nodes.expire(name, environment=requested)
            # Before the classifier runs, since some classifiers read the file.
            await self._save_facts(sent_facts, requested)
        facts = sent_facts or await self.facts.find(name, environment=requested)
        node = await with_facts_in_hand(self.nodes, facts).find(
            name,
            environment=requested,
            transaction_uuid=request.option("transaction_uuid") or None,
            configured_environment=request.option("configured_environment") or None,
        )
        if node is None:
            raise PuppetError(f"Could not find node '{name}'; cannot compile", hint="The node terminus does not know it.")
        environment = node.environment or requested
        if not (exists and environment == requested) and not await self.environments(environment):
            raise NoEnvironment(environment)
        if request.flag("check_environment") and environment != request.environment:
            # This tells the agent to start over in that environment: it must not apply a catalog of its own one.
            return Catalog(name=name, environment=environment, catalog_format=2, version=int(self.now().timestamp()))
        # Before the compile: plugins, catalog and files of one run must come from one version (decision 050).
        transaction = request.option("transaction_uuid")
        version = await self.static.version_for(environment, request.client, transaction) if self.static else CodeVersion()
        checksum = await self._checksum_for_static(request, environment, version.pin) if version.code_id else None
        job = CompileJob.of(name, node, environment, facts, trusted, self.server_facts, code_id=version.code_id)
        job = replace(job, pin=version.pin, is_stored=self.is_stored and not request.ignore_cache_save)
        return await self._compile(job, request, checksum)

    async def _save_facts(self, facts: Facts, environment: str) -> None:
        try:
            await self.facts.save(facts, environment=environment)
        except Unavailable as err:
            # The catalog needs only the facts in hand, and the node sends new ones with its next run.
            log.info("The facts of %s are not stored: %s", facts.name, err.message)
            await self.facts.save(facts, environment=environment, ignore_terminus=True)

    async def _checksum_for_static(self, request: Request[Catalog], environment: str, pin: str) -> Algorithm | None:
        """Return the checksum type of a static catalog; None when it is not static. Raises CompileError when the sides share none."""
        if self.static is None or not request.flag("static_catalog"):
            return None
        if not await asyncio.to_thread(self.static.is_static, environment, pin):
            return None
        return negotiate_checksum(request.option("checksum_type"))

    async def _compile(self, job: CompileJob, request: Request[Catalog], checksum: Algorithm | None) -> Catalog:
        name, environment = job.certname, job.environment
        started = time.monotonic()
        compiled = await self.compile(job)  # the caller logs its error
        text = compiled.text
        if self.static is not None and checksum is not None:
            text = DeflatedText(await asyncio.to_thread(self.static.make_static, text, environment, checksum, request.client, job.pin))
        elif self.static is not None and request.flag("inline_metadata"):
            offered = negotiate_checksum(request.option("checksum_type"))
            text = DeflatedText(await asyncio.to_thread(self.static.add_metadata, text, environment, offered, request.client, job.pin))
        kind = "catalog" if checksum is None else "static catalog"
        took, code_id = time.monotonic() - started, compiled.code_id
        version = f", code {code_id}" if code_id else ""
        log.log(NOTICE, "Compiled %s for %s in environment %s in %.2f seconds%s", kind, name, environment, took, version)
        return PreparedCatalog(name=name, environment=environment, text=text, is_rich=compiled.is_rich, stored=compiled.stored)

    async def _environment_for(self, request: Request[Catalog]) -> tuple[str, bool]:
        """Return the requested environment of the node, or else the default one, and whether that one exists."""
        requested = request.environment
        if await self.environments(requested):
            return requested, True
        if await self.environments(self.default_environment):
            # As in puppetserver: the agent starts over there, so that the removal of an environment leaves no node unmanaged.
            log.warning("%s asks for the environment '%s', which does not exist", request.key, requested)
            return self.default_environment, True
        return requested, False

    async def _sent_facts(self, request: Request[Catalog]) -> Facts | None:
        """Return the facts that came with the request, None when there were none."""
        text = request.option("facts")
        if not text:
            return None
        form = request.option("facts_format")
        if not form:
            raise BadRequest(f"Facts but no fact format provided for {request.key}")
        dialect = request.dialect or MODERN
        format = of_content_type(form, dialect.formats_read(FACTS))
        own_facts = {"clientcert": certname_behind(request.key, request.client)}  # the certificate's name, never a fact
        arrived = self.now().isoformat()
        facts = await self.parser.load_escaped_facts(text, dialect, format)
        if facts is None:
            return None  # `puppet catalog download` has none and says so
        # Otherwise one node could overwrite the stored facts of another.
        if facts.name != request.key:
            raise BadRequest(f'Catalog for "{request.key}" was requested with fact definition for the wrong node ("{facts.name}").')
        timestamp = arrived if dialect is LEGACY or not facts.timestamp else facts.timestamp
        values = facts.values if own_facts.items() <= facts.values.items() else {**facts.values, **own_facts}
        return facts.model_copy(update={"values": values, "timestamp": timestamp, "expiration": None})

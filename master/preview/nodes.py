"""The nodes of a preview, with facts, trusted data and classification as their last run had them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ca.configured import ca_store
from certs import certificates
from certs.files import bundles
from certs.oids import OidNames
from shared.client import Client
from shared.errors import BadData, NotFound, PuppetError
from shared.indirector import Binding, Request
from shared.indirector.termini import StoredBodies
from shared.models.facts import Facts, permitted_facts
from shared.models.node import Node
from shared.names import is_certname, valid_certname
from shared.settings import MasterSettings
from shared.state.masters import SharedState

from ..authorization.trusted import trusted_data
from ..bindings import server_facts
from ..endpoints.preview import STORED
from ..pools.jobs import CompileJob
from ..puppetdb.client import PuppetDbClient, rows_in_pql
from ..puppetdb.termini import PuppetDbFacts
from ..termini.facts import StoredFacts
from ..termini.node import NodeFiles, Plain, WithFacts, with_facts_in_hand
from ..termini.trusted_external import TrustedExternal


@dataclass(kw_only=True)
class PreviewNodes:
    """
    A master's data of its nodes.

    Args:
        client: asks the site's PuppetDB or store.
        environment: the name of the environment in which nodes are compiled.
        classification: `stored`: that of each node's last run; `current`: as the classifier says now.
        given_facts: are laid over those of each node.

    Attributes:
        classified_now: the nodes that were classified now because no node of a run is stored.
    """

    settings: MasterSettings
    facts: Binding[Facts]
    nodes: Binding[Node]
    client: PuppetDbClient
    environment: str
    classification: str = STORED
    given_facts: Mapping[str, Any] = field(default_factory=dict)
    classified_now: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._server_facts = server_facts(self.settings)
        self._external = TrustedExternal.of(self.settings).about
        self._oid_names = OidNames.load(self.settings.trusted_oid_mapping_file)
        # Once for all nodes; a connection to a database ends with each answer.
        self._certificates = ca_store(self.settings, SharedState.at(self.settings.state, keep_alive=False))

    async def all(self) -> list[str]:
        """Return the certnames of all nodes whose facts are stored, sorted; those of the PuppetDB where one is in use."""
        return await NodeSelector(self.facts, self.client).all()

    async def matching(self, query: str) -> list[str]:
        """Return the certnames that a query finds; see `certnames_matching`."""
        return await certnames_matching(self.client, query)

    async def job(self, name: str) -> CompileJob | None:
        """
        Return the inputs for the compilation of a node; None when the node is in another environment.

        Raises:
            NotFound: The node's facts are not stored. PuppetError: It cannot be classified.
        """
        valid_certname(name)
        facts = await self._facts(name)
        values = {**(facts.values if facts is not None else {}), **self.given_facts}
        values.pop("trusted", None)  # a PuppetDB has it among the facts
        if facts is None and not self.given_facts:
            raise NotFound(
                f"No facts available for target node: {name}",
                hint="It has not sent any to this master. Give them with --facts FILE (JSON or YAML).",
            )
        merged = Facts(name=name, values=values)
        node = await self._stored_node(name, facts, merged) or await with_facts_in_hand(self.nodes, merged).find(
            name, environment=self.environment, ignore_cache=True, ignore_cache_save=True
        )
        if node is None:
            raise PuppetError(f"Could not find node '{name}'; cannot compile", hint="The node terminus does not know it.")
        if node.environment not in (None, self.environment):
            return None
        trusted = await self._trusted(name, facts)
        return CompileJob.of(name, node, self.environment, merged, trusted, self._server_facts, code_id=None)

    async def _stored_node(self, name: str, run_facts: Facts | None, facts: Facts) -> Node | None:
        """
        Return the node of its last run, with other facts; None when it must be classified now, or when there is no classifier.

        Args:
            run_facts: the facts of that run, which are among the node's parameters.
        """
        terminus = self.nodes.terminus
        if self.classification != STORED or (isinstance(terminus, WithFacts) and isinstance(terminus.inner, Plain)):
            return None
        cache = self.nodes.cache
        request: Request[Node] = Request(name, self.environment)
        stored = await cache.last(name) if isinstance(cache, NodeFiles) else await cache.find(request) if cache is not None else None
        if stored is None:
            self.classified_now.append(name)
            return None
        old = run_facts.values if run_facts is not None else {}
        own = {key: value for key, value in stored.parameters.items() if key not in old or old[key] != value}
        return stored.model_copy(update={"parameters": own}).merged(permitted_facts(facts), self.environment)

    async def _facts(self, name: str) -> Facts | None:
        request: Request[Facts] = Request(name, self.environment)
        facts = await self.facts.terminus.find(request)
        return await self.facts.cache.find(request) if facts is None and self.facts.cache is not None else facts

    async def _trusted(self, name: str, facts: Facts | None) -> Mapping[str, Any]:
        """
        Return the trusted data of a node: from its certificate if this host is the CA, otherwise from its last run in the PuppetDB.

        Never from a fact in a file, which the node sends about itself.
        """
        client = await asyncio.to_thread(self._client_of, name)
        stored = facts.values.get("trusted") if facts is not None and isinstance(self.facts.terminus, PuppetDbFacts) else None
        if client is None and isinstance(stored, Mapping):
            return stored
        return trusted_data(name, client or Client(name, "", authenticated=True), await self._external(name))

    def _client_of(self, name: str) -> Client | None:
        """Return a node as the client that it is with its certificate; None when this host has none of it. Blocks."""
        try:
            pem = self._certificates.signed(name)
            certificate = bundles.certificate(pem) if pem is not None else None
        except (OSError, BadData):
            return None
        if certificate is None:
            return None
        return Client(name, "", authenticated=True, extensions=certificates.trusted_extensions(certificate, self._oid_names))


class NodeQuestion(Protocol):
    """Says which nodes: all, those that a query finds, or those with some names."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def query(self) -> str | None: ...
    @property
    def all(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """The nodes that a master knows; `client` asks the site's PuppetDB or store."""

    facts: Binding[Facts]
    client: PuppetDbClient

    async def __call__(self, question: NodeQuestion) -> list[str]:
        """Return the certnames that a question is about; raise PuppetError."""
        if question.all:
            return await self.all()
        return await certnames_matching(self.client, question.query) if question.query is not None else list(question.names)

    async def all(self) -> list[str]:
        """Return the certnames of all nodes whose facts are stored, sorted; those of the PuppetDB where one is in use."""
        terminus = self.facts.terminus
        if isinstance(terminus, StoredFacts) and not isinstance(self.facts.cache, PuppetDbFacts):
            return await asyncio.to_thread(_names_of, terminus.files)
        return await certnames_matching(self.client, "nodes[certname]{}")


async def certnames_matching(client: PuppetDbClient, query: str) -> list[str]:
    """Return the certnames that a query in PQL finds, sorted; raise BadData when it finds something else, PuppetError."""
    rows = await rows_in_pql(client, query, "nodes")
    try:
        return sorted({valid_certname(str(row["certname"])) for row in rows})
    except (KeyError, TypeError) as err:
        raise BadData("The query for nodes finds rows without a certname", hint="Write: nodes[certname] { … }") from err


def _names_of(stored: StoredBodies[Facts]) -> list[str]:
    keys = stored.keys()
    return [key for key in keys if is_certname(key)]

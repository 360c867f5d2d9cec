"""The node termini: plain, and an external classifier; facts are merged below their parameters. Source: protocol reference 1.7."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from shared.data import plainyaml
from shared.errors import BadData, PuppetError
from shared.indirector import Binding, Request, Terminus
from shared.indirector.termini import ExecTerminus, StoredBodies
from shared.models.facts import RESERVED_FACTS, Facts, permitted_facts
from shared.models.node import Node
from shared.names import valid_environment

from ..pools.body_parser import BodyParser

log = logging.getLogger("puppet.node")

_STORED = ("trusted",)


class Plain(Terminus[Node]):
    """The terminus for which every name is a node with nothing but its facts."""

    async def find(self, request: Request[Node]) -> Node | None:
        return Node(name=request.key)


class Classifier(ExecTerminus[Node]):
    """
    An external node classifier: `external_nodes` plus the name prints YAML with classes, parameters, environment.

    No output means that there is no such node. A failure or other output is an error, never a node without classes.
    """

    def instance(self, request: Request[Node], output: bytes) -> Node | None:
        return parse_node(request.key, output)


def parse_node(name: str, output: bytes) -> Node | None:
    """Return the node in a classifier's YAML; None for an empty document."""
    try:
        data = plainyaml.loads(output, aliases=True)
    except BadData as err:
        raise PuppetError(
            f"Could not load external node results for {name}: {err}", hint="The classifier must print one YAML map."
        ) from err
    if data is None:
        return None
    if not isinstance(data, Mapping):
        raise PuppetError(f"Could not load external node results for {name}: not a map", hint="Print a map with classes and parameters.")
    node_data: dict[str, Any] = {"name": name}
    classes = data.get("classes")
    if classes is not None:
        if not isinstance(classes, list | dict) or not all(isinstance(class_name, str) for class_name in classes):
            raise PuppetError(f"The classes of node {name} must be a list of names or a map")
        if isinstance(classes, dict) and not all(v is None or isinstance(v, dict) for v in classes.values()):
            raise PuppetError(f"The parameters of each class of node {name} must be a map")
        node_data["classes"] = classes
    parameters = data.get("parameters")
    if parameters is not None:
        if not isinstance(parameters, dict):
            raise PuppetError(f"The parameters of node {name} must be a map")
        node_data["parameters"] = {str(key): value for key, value in parameters.items()}
    if data.get("environment") is not None:
        node_data["environment"] = valid_environment(str(data["environment"]))
    return Node.from_data(node_data)


class WithFacts(Terminus[Node]):
    """
    A node terminus that adds to another one the node's stored facts, below its parameters, and the requested environment as default.

    Facts with the names of variables that only the master sets (trusted, facts, …) are dropped, with a warning.
    """

    def __init__(self, inner: Terminus[Node], facts: Binding[Facts]) -> None:
        self.inner = inner
        self.facts = facts

    async def find(self, request: Request[Node]) -> Node | None:
        node = await self.inner.find(request)
        if node is None:
            return None
        # The master's own store has `trusted` among the facts that it was sent: no agent has forged what is stored there.
        return _with(node, await self.facts.find(request.key, environment=request.environment), request, expected=_STORED)

    async def find_with(self, request: Request[Node], facts: Facts | None) -> Node | None:
        """Return the node with other facts than those that are stored."""
        node = await self.inner.find(request)
        return None if node is None else _with(node, facts, request)


class NodeFiles(Terminus[Node]):
    """Nodes, as one body each (`files` is a terminus on files or a database); `parser` reads large ones."""

    def __init__(self, files: StoredBodies[Node], parser: BodyParser | None = None) -> None:
        self.files = files
        self.parser = parser or BodyParser()

    async def find(self, request: Request[Node]) -> Node | None:
        return await self.files.find(request)

    async def last(self, key: str) -> Node | None:
        """Return the node that was saved last, also where `find` finds none because the files are a record for other programs."""
        return await self.parser.stored(self.files, key)

    async def search(self, request: Request[Node]) -> list[Node]:
        return await self.files.search(request)

    async def head(self, request: Request[Node]) -> bool:
        return await self.files.head(request)

    async def save(self, request: Request[Node]) -> object:
        return await self.files.save(request)

    async def destroy(self, request: Request[Node]) -> object:
        return await self.files.destroy(request)


class WithFactsInHand(Terminus[Node]):
    """The node terminus of one request whose facts are known already: they came with it or were just read."""

    def __init__(self, inner: WithFacts, facts: Facts | None) -> None:
        self.inner = inner
        self.facts = facts

    async def find(self, request: Request[Node]) -> Node | None:
        return await self.inner.find_with(request, self.facts)


def with_facts_in_hand(nodes: Binding[Node], facts: Facts | None) -> Binding[Node]:
    """
    Return the same binding, cache and all, with these facts for the one requested node.

    A binding whose terminus merges no facts stays as it is.
    """
    if not isinstance(nodes.terminus, WithFacts):
        return nodes
    terminus = WithFactsInHand(nodes.terminus, facts)
    return Binding(nodes.indirection, terminus, cache=nodes.cache, ttl=nodes.ttl, now=nodes.now)


def _with(node: Node, facts: Facts | None, request: Request[Node], *, expected: Collection[str] = ()) -> Node:
    forged = RESERVED_FACTS & set(facts.values if facts else ())
    _warn(forged - frozenset(expected), request)
    return node.merged(permitted_facts(facts), request.environment)


def _warn(names: Iterable[str], request: Request[Node]) -> None:
    for name in sorted(names):
        log.warning("Ignoring the fact %s of %s: only the master sets it", name, request.key)

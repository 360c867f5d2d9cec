"""The node termini: plain, an external classifier, LDAP; facts are merged below what they say. Source: protocol reference 1.7."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from shared import plainyaml
from shared.errors import BadData, ConfigError, PuppetError, Unsupported
from shared.indirector import Binding, Request, Terminus
from shared.indirector.termini import Exec
from shared.models.facts import Facts
from shared.models.node import Node
from shared.names import environment as environment_name

log = logging.getLogger("puppet.node")

# Names that only the master sets at top scope: a node cannot forge them by facts.
RESERVED_FACTS = frozenset({"trusted", "facts", "server_facts", "environment", "settings"})


class Plain(Terminus[Node]):
    """Every name is a node, with nothing but its facts."""

    async def find(self, request: Request[Node]) -> Node | None:
        return Node(name=request.key)


class Classifier(Exec[Node]):
    """
    An external node classifier: `external_nodes` plus the name prints YAML with classes, parameters, environment.

    Nothing printed: no such node. A failure or something else than that YAML is an error: never a node without classes.
    """

    def instance(self, request: Request[Node], output: bytes) -> Node | None:
        return node_from(request.key, output)


def node_from(name: str, output: bytes) -> Node | None:
    """The node in a classifier's YAML; None for an empty document."""
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
    found: dict[str, Any] = {"name": name}
    classes = data.get("classes")
    if classes is not None:
        if not isinstance(classes, list | dict) or not all(isinstance(each, str) for each in classes):
            raise PuppetError(f"The classes of node {name} must be a list of names or a map")
        if isinstance(classes, dict) and not all(v is None or isinstance(v, dict) for v in classes.values()):
            raise PuppetError(f"The parameters of each class of node {name} must be a map")
        found["classes"] = classes
    parameters = data.get("parameters")
    if parameters is not None:
        if not isinstance(parameters, dict):
            raise PuppetError(f"The parameters of node {name} must be a map")
        found["parameters"] = {str(key): value for key, value in parameters.items()}
    if data.get("environment") is not None:
        found["environment"] = environment_name(str(data["environment"]))
    return Node.from_data(found)


class Ldap(Terminus[Node]):
    """
    Nodes in a directory, found by `query` (%s is the name, escaped); needs the optional package ldap3.

    `class_attributes` name classes, `parent_attribute` a node whose classes and parameters are inherited; `attributes` become
    parameters ("all": all others), and so do the texts `name=value` in `stacked_attributes`.
    """

    def __init__(
        self,
        *,
        server: str,
        port: int,
        base: str,
        query: str,
        class_attributes: Sequence[str],
        parent_attribute: str,
        user: str = "",
        password: str = "",
        attributes: Sequence[str] = ("all",),
        stacked_attributes: Sequence[str] = (),
        tls: Literal["", "from the start", "by StartTLS"] = "",
        timeout: float = 10.0,
        strategy: Any = None,
    ) -> None:
        try:
            import ldap3
        except ImportError as err:
            raise Unsupported("The ldap node terminus needs the package ldap3", hint="pip install 'bunraku[ldap]'") from err
        if not base:
            raise ConfigError("The setting ldapbase is empty", hint="It says where nodes are searched, as in ou=Hosts,dc=example,dc=com.")
        self._ldap3 = ldap3
        self._server = ldap3.Server(server, port=port, use_ssl=tls == "from the start", connect_timeout=timeout, get_info=ldap3.NONE)
        self.base, self.query = base, query
        self.class_attributes, self.parent_attribute = tuple(class_attributes), parent_attribute
        self.attributes, self.stacked_attributes = tuple(attributes), tuple(stacked_attributes)
        self.starts_tls = tls == "by StartTLS"
        self.user, self.password, self.timeout = user, password, timeout
        self.strategy = strategy if strategy is not None else ldap3.SYNC

    async def find(self, request: Request[Node]) -> Node | None:
        return await asyncio.to_thread(self._find, request.key)

    def _find(self, name: str) -> Node | None:
        try:
            with self._connection() as connection:
                return self._node(connection, name, frozenset())
        except self._ldap3.core.exceptions.LDAPException as err:
            raise PuppetError(f"Could not find {name} in LDAP: {err}") from err

    def _connection(self) -> Any:
        return self._ldap3.Connection(
            self._server,
            user=self.user or None,
            password=self.password or None,
            auto_bind=self._ldap3.AUTO_BIND_TLS_BEFORE_BIND if self.starts_tls else self._ldap3.AUTO_BIND_NO_TLS,
            read_only=True,
            receive_timeout=self.timeout,
            client_strategy=self.strategy,
        )

    def _wanted(self) -> list[str]:
        if "all" in self.attributes:
            return [self._ldap3.ALL_ATTRIBUTES]
        return [*self.attributes, *self.class_attributes, *self.stacked_attributes, self.parent_attribute, "environment"]

    def _node(self, connection: Any, name: str, seen: frozenset[str]) -> Node | None:
        from ldap3.utils.conv import escape_filter_chars

        if name in seen or len(seen) > 20:
            raise PuppetError(f"Found loop in LDAP node parents; {name} appears twice")
        connection.search(self.base, self.query.replace("%s", escape_filter_chars(name)), attributes=self._wanted())
        if not connection.entries:
            return None
        values = {key: [str(v) for v in found] for key, found in connection.entries[0].entry_attributes_as_dict.items()}
        classes = [each for attribute in self.class_attributes for each in values.get(attribute, [])]
        parameters: dict[str, Any] = {
            key: found[0] if len(found) == 1 else found
            for key, found in values.items()
            if found and key not in (*self.class_attributes, *self.stacked_attributes, self.parent_attribute, "objectClass", "environment")
        }
        stacked = (each.partition("=") for attribute in self.stacked_attributes for each in values.get(attribute, []))
        parameters |= {key: value for key, equals, value in stacked if equals}
        environment = environment_name(values["environment"][0]) if values.get("environment") else None
        parent = values.get(self.parent_attribute)
        if parent:
            above = self._node(connection, parent[0], seen | {name})
            if above is None:
                raise PuppetError(f"Could not find parent node {parent[0]} of {name} in LDAP")
            classes = list(dict.fromkeys([*classes, *above.class_parameters()]))
            parameters = {**above.parameters, **parameters}
            environment = environment or above.environment
        return Node(name=name, classes=classes, parameters=parameters, environment=environment)


class WithFacts(Terminus[Node]):
    """
    Any node terminus, with the node's stored facts below its parameters and the asked environment where it names none.

    Facts that forge what only the master says (trusted, facts, …) are dropped, with a warning.
    """

    def __init__(self, inner: Terminus[Node], facts: Binding[Facts]) -> None:
        self.inner = inner
        self.facts = facts

    async def find(self, request: Request[Node]) -> Node | None:
        node = await self.inner.find(request)
        if node is None:
            return None
        facts = await self.facts.find(request.key, environment=request.environment)
        return _with(node, facts.values if facts else {}, request)

    async def find_with(self, request: Request[Node], facts: Mapping[str, Any]) -> Node | None:
        """The node with other facts than those that are stored."""
        node = await self.inner.find(request)
        return None if node is None else _with(node, facts, request)


def _with(node: Node, facts: Mapping[str, Any], request: Request[Node]) -> Node:
    values = dict(facts)
    for name in sorted(RESERVED_FACTS & set(values)):
        log.warning("Ignoring the fact %s of %s: only the master sets it", name, request.key)
        del values[name]
    return node.merged(values, request.environment)

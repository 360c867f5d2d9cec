"""Nodes in an LDAP directory. Source: protocol reference 1.7."""

from __future__ import annotations

import asyncio
import logging
import math
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from shared.errors import ConfigError, PeerNotTrusted, PuppetError, Unsupported
from shared.indirector import Request, Terminus
from shared.models.node import Node
from shared.names import valid_environment

from .ldap_conf import HINT, LdapTrust

log = logging.getLogger("puppet.node")


@dataclass(frozen=True, slots=True)
class LdapServer:
    """
    A directory, and who asks it.

    Attributes:
        tls: Over it the server's certificate has to be verified by `trust`, before anything else is sent.
        trust: By default the system's authorities.
        timeout: Seconds of an exchange.
    """

    host: str
    port: int
    user: str = ""
    password: str = ""
    tls: Literal["", "from the start", "by StartTLS"] = ""
    trust: LdapTrust = field(default_factory=LdapTrust)
    timeout: float = 10.0


@dataclass(frozen=True, slots=True)
class LdapSearch:
    """
    Where nodes are, and what their entries say.

    Attributes:
        query: Finds a node; %s is its name, escaped.
        class_attributes: Name classes.
        parent_attribute: Names a node whose classes and parameters are inherited.
        attributes: Become parameters; "all": all others.
        stacked_attributes: Have texts `name=value`, which become parameters.
    """

    base: str
    query: str
    class_attributes: tuple[str, ...]
    parent_attribute: str
    attributes: tuple[str, ...] = ("all",)
    stacked_attributes: tuple[str, ...] = ()


class Ldap(Terminus[Node]):
    """Nodes in an LDAP directory; needs the optional package ldap3."""

    def __init__(self, server: LdapServer, search: LdapSearch, *, strategy: Any = None) -> None:
        try:
            import ldap3
        except ImportError as err:
            raise Unsupported("The ldap node terminus needs the package ldap3", hint="pip install 'bunraku[ldap]'") from err
        if not search.base:
            raise ConfigError("The setting ldapbase is empty", hint="It says where nodes are searched, as in ou=Hosts,dc=example,dc=com.")
        self._ldap3 = ldap3
        self.server = server
        self.entries = search
        self.strategy = strategy if strategy is not None else ldap3.SYNC
        if server.tls and not server.trust.demanded:
            log.warning("Nobody looks at the certificate of the LDAP server %s: TLS_REQCERT in %s", server.host, server.trust.source)

    async def find(self, request: Request[Node]) -> Node | None:
        return await asyncio.to_thread(self._find, request.key)

    def _find(self, name: str) -> Node | None:
        try:
            with self._connect() as connection:
                return self._node(connection, name, frozenset())
        except self._ldap3.core.exceptions.LDAPException as err:
            raise PuppetError(f"Could not find {name} in LDAP: {err}") from err

    @contextmanager
    def _connect(self) -> Iterator[Any]:
        """Return a connection with the user logged in; raise PeerNotTrusted, before anything is sent, when the server is not trusted."""
        refused: list[ssl.SSLError] = []
        connection = self._connection(refused.append)
        try:
            try:
                connection.open()
                if self.server.tls == "by StartTLS":
                    connection.start_tls()
            except self._ldap3.core.exceptions.LDAPException as err:
                if not refused:
                    raise
                why = getattr(refused[0], "verify_message", None) or refused[0].reason or str(refused[0])
                raise PeerNotTrusted(
                    f"Could not connect to LDAP: {self.server.host}:{self.server.port} is not trusted: {why}", hint=HINT
                ) from err
            connection.bind()
            yield connection
        finally:
            connection.strategy.close()  # ldap3 would send an unbind first, which fails where TLS has failed

    def _connection(self, refused: Callable[[ssl.SSLError], None]) -> Any:
        """Return a connection that is not open yet; `refused` gets the fault of the server's TLS."""
        ldap3 = self._ldap3
        seconds = math.ceil(self.server.timeout)

        class Server(ldap3.Server):  # type: ignore[misc, name-defined]
            def candidate_addresses(self) -> Iterator[list[Any]]:
                """Yield the addresses in the order in which they are tried; ldap3 leaves the sockets of those that failed open."""
                for address in super().candidate_addresses():
                    yield address
                    if connection.socket is not None:
                        connection.socket.close()

        connection = ldap3.Connection(
            Server(
                self.server.host,
                port=self.server.port,
                use_ssl=self.server.tls == "from the start",
                tls=self._handshakes(refused) if self.server.tls else None,
                connect_timeout=seconds,
                get_info=ldap3.NONE,
                allowed_referral_hosts=[("*", False)],  # the password is sent to no server that this one refers to
            ),
            user=self.server.user or None,
            password=self.server.password or None,
            auto_referrals=not self.server.tls,  # that server's certificate would not be checked in the same way
            read_only=True,
            raise_exceptions=True,  # otherwise a refused search would look like a missing node
            receive_timeout=seconds,
            client_strategy=self.strategy,
        )
        return connection

    def _handshakes(self, refused: Callable[[ssl.SSLError], None]) -> Any:
        """Return TLS as ldap3 takes it, with our own context: ldap3's does not name the server and checks the certificate's names late."""
        context = self.server.trust.context()

        class Handshakes(self._ldap3.Tls):  # type: ignore[misc, name-defined]
            def wrap_socket(self, connection: Any, do_handshake: bool = False) -> None:
                try:
                    connection.socket = context.wrap_socket(
                        connection.socket, server_hostname=connection.server.host, do_handshake_on_connect=do_handshake
                    )
                except ssl.SSLError as err:
                    refused(err)
                    raise

        return Handshakes(validate=context.verify_mode)

    def _requested_attributes(self) -> list[str]:
        if "all" in self.entries.attributes:
            return [self._ldap3.ALL_ATTRIBUTES]
        return [
            *self.entries.attributes,
            *self.entries.class_attributes,
            *self.entries.stacked_attributes,
            self.entries.parent_attribute,
            "environment",
        ]

    def _node(self, connection: Any, name: str, below: frozenset[str]) -> Node | None:
        from ldap3.utils.conv import escape_filter_chars

        if name in below or len(below) > 20:
            raise PuppetError(f"Found loop in LDAP node parents; {name} appears twice")
        connection.search(
            self.entries.base, self.entries.query.replace("%s", escape_filter_chars(name)), attributes=self._requested_attributes()
        )
        if not connection.entries:
            if connection.result["result"] != self._ldap3.core.results.RESULT_SUCCESS:  # a referral, or the server's time limit
                raise PuppetError(f"Could not find {name} in LDAP: the server answered {connection.result['description']}")
            return None
        values = {key: [str(v) for v in texts] for key, texts in connection.entries[0].entry_attributes_as_dict.items()}
        classes = [text for attribute in self.entries.class_attributes for text in values.get(attribute, [])]
        parameters: dict[str, Any] = {
            key: texts[0] if len(texts) == 1 else texts
            for key, texts in values.items()
            if texts
            and key
            not in (
                *self.entries.class_attributes,
                *self.entries.stacked_attributes,
                self.entries.parent_attribute,
                "objectClass",
                "environment",
            )
        }
        stacked = (text.partition("=") for attribute in self.entries.stacked_attributes for text in values.get(attribute, []))
        parameters |= {key: value for key, equals, value in stacked if equals}
        environment = valid_environment(values["environment"][0]) if values.get("environment") else None
        parent = values.get(self.entries.parent_attribute)
        if parent:
            above = self._node(connection, parent[0], below | {name})
            if above is None:
                raise PuppetError(f"Could not find parent node {parent[0]} of {name} in LDAP")
            classes = list(dict.fromkeys([*classes, *above.class_parameters()]))
            parameters = {**above.parameters, **parameters}
            environment = environment or above.environment
        return Node(name=name, classes=classes, parameters=parameters, environment=environment)

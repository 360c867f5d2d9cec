"""The termini that store facts, catalogs and nodes in a PuppetDB."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import quote, quote_plus

from shared.clock import utc_now
from shared.data import plainjson
from shared.errors import BadRequest, NotFound, PuppetError
from shared.indirector import Request, Terminus
from shared.indirector.core import Option
from shared.models.catalog import Catalog
from shared.models.facts import Facts, NodeName
from shared.models.node import Node
from shared.names import quoted_for_log, valid_certname
from shared.wire.packed_catalogs import PackedCatalog

from ..authorization.trusted import trusted_data
from .client import QUERY_PATH, PuppetDbAnswer, PuppetDbClient, rows_of
from .commands import PuppetDbCommand, wire_time
from .facts import facts_command

CATALOG, CATALOG_VERSION = "replace catalog", 9
DEACTIVATION, DEACTIVATION_VERSION = "deactivate node", 3
_OPERATORS = {"eq": "=", "gt": ">", "lt": "<", "ge": ">=", "le": "<="}


class StorableCatalog(Catalog):
    """A catalog with its packed form for a PuppetDB (see `catalog.stored_catalog`); empty when it will not be stored."""

    stored: bytes = b""


class _ByClient:
    """A terminus that asks a PuppetDB."""

    def __init__(self, client: PuppetDbClient, *, now: Callable[[], datetime] = utc_now) -> None:
        self.client = client
        self.now = now


class PuppetDbFacts(_ByClient, Terminus[Facts]):
    """The facts of nodes in a PuppetDB."""

    async def find(self, request: Request[Facts]) -> Facts | None:
        name = valid_certname(request.key)
        try:
            answer = await self.client.get(f"{QUERY_PATH}/nodes/{quote(name, safe='')}/facts")
        except NotFound:
            return None
        except PuppetError as err:
            raise PuppetError(f"Failed to find facts from PuppetDB at {err.message}", hint=err.hint) from err
        if not answer.is_success:
            raise PuppetError(f"Failed to find facts from PuppetDB at {answer.problem}")
        return Facts(name=name, values=await asyncio.to_thread(_fact_values, answer))

    async def save(self, request: Request[Facts]) -> object:
        """Send facts; SubmissionFailed when no server takes them."""
        facts = request.instance
        valid_certname(facts.name)
        trusted = facts.trusted if facts.trusted is not None else trusted_data(facts.name, request.client, {})
        await self.client.deliver(partial(facts_command, facts, trusted, request.environment, self.client.producer, self.now()))
        return None

    async def destroy(self, request: Request[Facts]) -> object:
        """Remove nothing: a PuppetDB drops the facts of a node that is deactivated."""
        return None

    async def search(self, request: Request[Facts]) -> list[Facts] | None:
        """Return the names of the nodes whose facts meet all conditions."""
        conditions = [_condition(name, value) for name, value in sorted(request.options.items())]
        query = json.dumps(["and", *conditions], separators=(",", ":"))
        answer = await self.client.get(f"{QUERY_PATH}/nodes?query={quote_plus(query)}")
        if not answer.is_success:
            raise PuppetError(answer.problem)
        rows = await asyncio.to_thread(lambda: list(rows_of(answer)))
        names: list[Any] = [NodeName(name=str(row["certname"])) for row in rows]
        return names


def _fact_values(answer: PuppetDbAnswer) -> dict[str, Any]:
    return {str(row["name"]): row["value"] for row in rows_of(answer)}


def _condition(name: str, value: Option) -> list[Any]:
    """Return the query for `facts.<name>[.<operator>] = value`; BadRequest for anything else."""
    kind, _, rest = name.partition(".")
    if kind != "facts":
        raise BadRequest(f"Fact search against keys of type {quoted_for_log(kind)} is unsupported")
    fact, dot, operator = rest.rpartition(".")
    if not dot or operator not in (*_OPERATORS, "ne"):
        fact, operator = rest, "eq"
    if not fact or not isinstance(value, str):
        raise BadRequest(f"Facts cannot be searched by {quoted_for_log(name)}")
    test = ["fact", fact]
    return ["not", ["=", test, value]] if operator == "ne" else [_OPERATORS[operator], test, value]


class PuppetDbCatalogs(_ByClient, Terminus[Catalog]):
    """What a PuppetDB gets of each catalog; nothing is found there, so that it can be a cache."""

    async def find(self, request: Request[Catalog]) -> Catalog | None:
        return None

    async def save(self, request: Request[Catalog]) -> object:
        """Send a catalog; raise SubmissionFailed when no server accepts it, unless soft_write_failure tolerates that."""
        catalog = request.instance
        if not isinstance(catalog, StorableCatalog) or not catalog.stored:
            return None
        when = self.now()
        rest = {
            "job_id": request.option("job_id") or None,
            "transaction_uuid": request.option("transaction_uuid") or None,
            "environment": catalog.environment or request.environment,
            "producer_timestamp": wire_time(when),
            "producer": self.client.producer,
        }
        await self.client.deliver(partial(catalog_command, catalog.name, catalog.stored, rest, when))
        return None


def catalog_command(certname: str, stored: bytes, rest: Mapping[str, Any], when: datetime) -> PuppetDbCommand:
    """Return the command that replaces a node's catalog: `stored`, which is packed, with the fields of its request."""
    return PuppetDbCommand(CATALOG, CATALOG_VERSION, certname, PackedCatalog.unpack(stored).with_members(rest), when)


class PuppetDbNodes(_ByClient, Terminus[Node]):
    """Nodes, of which a PuppetDB knows only whether they are active."""

    async def find(self, request: Request[Node]) -> Node | None:
        return None

    async def save(self, request: Request[Node]) -> object:
        return None

    async def destroy(self, request: Request[Node]) -> str | None:
        """Deactivate a node; return the command's UUID, None when it failed and soft_write_failure lets that pass."""
        name, when = valid_certname(request.key), self.now()
        payload = plainjson.dumps({"certname": name, "producer_timestamp": wire_time(when)})
        return await self.client.submit(PuppetDbCommand.create(DEACTIVATION, DEACTIVATION_VERSION, name, payload, when))

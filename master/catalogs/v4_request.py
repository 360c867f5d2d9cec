"""What a body of `POST /puppet/v4/catalog` asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from shared.models.facts import PackedFacts

from ..pools.catalog_schema import parse_catalog_body
from ..pools.parse_pool import ParsePool

__all__ = ["CatalogRequest", "parse_catalog_request", "parse_large_catalog_request"]


@dataclass(frozen=True, slots=True)
class CatalogRequest:
    """
    What is asked for.

    Attributes:
        environment: where the node is, unless its classifier says otherwise and `prefer_environment` does not overrule that.
        facts: None: those that are stored. trusted: what `$trusted` is; None: the fact of that name, if facts are given.
        packed: the facts, when another process has read them; it has taken what is trusted out of them.
        save_facts, save_catalog: whether they are kept as those of a run would be.
        log_level: the least severe lines of the log that are answered with the catalog; '': none at all.
    """

    certname: str
    environment: str
    facts: Mapping[str, Any] | None = None
    trusted: Mapping[str, Any] | None = None
    save_facts: bool = False
    save_catalog: bool = False
    prefer_environment: bool = False
    log_level: str = ""
    transaction_uuid: str = ""
    packed: PackedFacts | None = None


def parse_catalog_request(body: bytes) -> CatalogRequest:
    """Return what a body asks for; BadRequest when it is not JSON, or of another shape."""
    return catalog_request_of(parse_catalog_body(body))


async def parse_large_catalog_request(body: bytes, parsers: ParsePool) -> CatalogRequest:
    """Do what `parse_catalog_request` does, in a process of `parsers`; the facts come packed."""
    data, facts = await parsers.catalog_wanted(body, timestamp=datetime.now(UTC).isoformat())
    return replace(catalog_request_of(data), packed=facts)


def catalog_request_of(data: Mapping[str, Any]) -> CatalogRequest:
    """Return what data of the right shape asks for."""
    options = data.get("options", {})
    return CatalogRequest(
        certname=data["certname"],
        environment=data["environment"],
        facts=data["facts"]["values"] if "facts" in data else None,
        trusted=data["trusted_facts"]["values"] if "trusted_facts" in data else None,
        save_facts=data["persistence"]["facts"],
        save_catalog=data["persistence"]["catalog"],
        prefer_environment=options.get("prefer_requested_environment", False),
        log_level=options.get("log_level", "info") if options.get("capture_logs") else "",
        transaction_uuid=data.get("transaction_uuid", ""),
    )

"""Requests to `POST /puppet/v4/catalog`, parsed from their bodies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CatalogRequest:
    """
    A request for the catalog of a node.

    Attributes:
        environment: The node's environment, unless its classifier names another and `prefer_environment` is false.
        facts: The node's facts; None: the stored ones.
        trusted: `$trusted`; None: the fact of that name, if the request has facts.
        save_facts: Whether the facts are stored, as those of a run would be.
        save_catalog: Whether the catalog is stored, as that of a run would be.
        log_level: The least severe log lines that are returned with the catalog; '': none at all.
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
    job_id: str = ""


def catalog_request_of(data: Mapping[str, Any]) -> CatalogRequest:
    """Return the request in data of the right form."""
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
        job_id=data.get("job_id", ""),
    )

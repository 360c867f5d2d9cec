"""`$trusted`: the data of a node's certificate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.indirector import Client


def certname_behind(name: str, client: Client | None) -> str:
    """Return the certname behind a request about a node, which may go by another name."""
    return client.name if client is not None and client.authenticated else name


def trusted_data(name: str, client: Client | None, external: Mapping[str, Any]) -> dict[str, Any]:
    """Return `$trusted`, the data of the certificate. Source: protocol reference 5.5."""
    authenticated: str | bool = "local" if client is None else "remote" if client.authenticated else False
    valid_certname = certname_behind(name, client)
    host, _, domain = valid_certname.partition(".")
    return {
        "authenticated": authenticated,
        "certname": valid_certname,
        "extensions": dict(client.extensions) if client is not None else {},
        "hostname": host,
        "domain": domain or None,
        "external": dict(external),
    }

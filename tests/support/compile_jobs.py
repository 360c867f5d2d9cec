"""What a compile worker is asked, as its pool words it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def catalog_job(certname: str, facts: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the question for a node's catalog; `fields` replace or add members."""
    return {
        "ask": "catalog",
        "certname": certname,
        "environment": "production",
        "facts": facts,
        "parameters": facts,
        "classes": {},
        "trusted": {"certname": certname},
        "server_facts": {},
        "code_id": None,
        "exported": False,
        "is_stored": False,
        "generation": 0,
        **fields,
    }

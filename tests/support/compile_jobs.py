"""What a compile worker is asked, as its pool words it; and pools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from environments.directories import Environments
from master.pools.compile_pool import CompilePool
from master.pools.process_pool import PoolOptions, ProcessPool


def catalog_job(certname: str, facts: Mapping[str, Any], **members: Any) -> dict[str, Any]:
    """Return the question for a node's catalog; `members` replace others or are added."""
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
        **members,
    }


def compile_pool(environments: Environments, **options: Any) -> CompilePool:
    """Return a pool with these fields of PoolOptions and arguments of ProcessPool."""
    names = {field.name for field in fields(PoolOptions)}
    pool_options = PoolOptions(**{name: value for name, value in options.items() if name in names})
    return CompilePool(ProcessPool(environments, pool_options, **{name: value for name, value in options.items() if name not in names}))

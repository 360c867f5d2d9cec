"""The numbers of nodes and resources in a store, under the names of PuppetDB's metrics."""

from __future__ import annotations

from collections.abc import Mapping

from ..jsontext import Json
from ..queries.batches import first_row
from ..queries.questions import Question
from ..queries.service import QueryService

_COUNT: Json = ["function", "count"]


async def count_population(queries: QueryService) -> Mapping[str, float]:
    """Return the numbers by name; counts are whole numbers, which clients show as they are."""
    active = await _count(queries, "nodes", ["=", "node_state", "active"])
    inactive = await _count(queries, "nodes", ["=", "node_state", "inactive"])
    resources = await _count(queries, "resources", None)
    return {
        "num-nodes": active,
        "num-active-nodes": active,
        "num-inactive-nodes": inactive,
        "num-resources": resources,
        "avg-resources-per-node": resources / active if active else 0,
    }


async def _count(queries: QueryService, entity: str, condition: Json) -> int:
    query: Json = ["extract", [_COUNT], *([condition] if condition is not None else [])]
    row = await first_row(await queries.answer(Question(entity, query)))
    count = row.get("count") if row is not None else None
    return count if isinstance(count, int) else 0

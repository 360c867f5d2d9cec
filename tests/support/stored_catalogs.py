"""What a master's store gets of a catalog, as data."""

from __future__ import annotations

import json
from typing import Any

from shared.wire.packed_catalogs import PackedCatalog


def stored_data(packed: bytes) -> dict[str, Any]:
    """Return a packed catalog as data; nothing of an empty one."""
    if not packed:
        return {}
    data: dict[str, Any] = json.loads(PackedCatalog.unpack(packed).text(2**30))
    return data

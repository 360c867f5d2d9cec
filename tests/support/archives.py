"""Archives of a store or a PuppetDB, opened by Python's own library."""

from __future__ import annotations

import json
import tarfile
from io import BytesIO
from typing import Any


def archive_contents(archive: bytes) -> dict[str, Any]:
    """Return the payloads of an archive by their names. Lists are sorted, for a store has no order for them."""
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        payloads = {entry.name: in_order(json.load(file)) for entry in tar if (file := tar.extractfile(entry)) is not None}
    assert "command_versions" in payloads.pop("puppetdb-bak/export-metadata.json")
    return payloads


def in_order(value: Any) -> Any:
    """Return a value whose lists are sorted."""
    if isinstance(value, dict):
        return {key: in_order(member) for key, member in value.items()}
    if isinstance(value, list):
        return sorted((in_order(member) for member in value), key=lambda member: json.dumps(member, sort_keys=True))
    return value

"""An administrator's files for certificates: csr_attributes.yaml and custom_trusted_oid_mapping.yaml, both a map in YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared.data import plainyaml
from shared.errors import BadData, ConfigError


def yaml_map(path: Path, *, hint: str = "") -> dict[Any, Any] | None:
    """
    Return the map in a file; None when there is no such file, or nothing in it.

    Args:
        hint: how the file should look, for error messages.
    Raises:
        ConfigError: it cannot be read, is not YAML, or is not a map.
    """
    try:
        document = plainyaml.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, BadData) as err:
        raise ConfigError(f"Could not read {path}: {err.strerror if isinstance(err, OSError) else err}") from err
    if document is not None and not isinstance(document, dict):
        raise ConfigError(f"Could not read {path}: expected a map, found a {type(document).__name__}", hint=hint)
    return document

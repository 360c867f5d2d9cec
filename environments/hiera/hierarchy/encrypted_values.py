"""Values of YAML files with encrypted texts in them. Source: language reference 18.8."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from language.host import NotFoundInData
from language.values.core import Value, key_of
from shared.errors import BadData, Unsupported

from ..data.eyaml import decrypt_text
from ..data.sources import DataSources
from ..errors import DataError
from ..invocation import Invocation


def decrypt_value(invocation: Invocation, sources: DataSources, key: str, options: Mapping[str, Any], function: str) -> Value:
    """
    Return a value of the YAML file at `options["path"]`, decrypted and interpolated.

    Args:
        function: the label of the backend function, for messages.
    Raises:
        NotFoundInData: the file does not have the key.
        DataError: a text cannot be decrypted; the message does not contain it.
    """
    path = str(options["path"])
    file = sources.data.read("yaml_data", path, invocation.context.warn)
    if key not in file.data:
        raise NotFoundInData
    encrypted, _ = file.value(key, lambda: f"{function}, when using location '{path}',")

    def decrypt(value: Value) -> Value:
        if isinstance(value, str):
            try:
                return invocation.interpolate(decrypt_text(value, lambda: sources.keys(options)))
            except (BadData, Unsupported) as error:
                raise DataError(f"A value cannot be decrypted when looking up {key} in {path}: {error.message}", hint=error.hint) from error
        if isinstance(value, list):
            return [decrypt(item) for item in value]
        if isinstance(value, dict):
            return {key_of(invocation.interpolate(name)): decrypt(item) for name, item in value.items()}
        return value

    return decrypt(encrypted)

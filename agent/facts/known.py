"""The facts that are resolved so far, read by dotted names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Known(Mapping[str, Any]):
    """`known["os.name"]` or `known.get("os.name")`: a flat fact of that very name, else the path into a structured one."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        value: Any = self._values
        for part in name.split("."):
            if isinstance(value, Mapping) and part in value:
                value = value[part]
            elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
                value = value[int(part)]
            else:
                raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

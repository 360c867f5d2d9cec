"""Attributes that are lists: of names or `key=value` pairs, complete or a minimum, or of folders. Source: resource layer reference 1.3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...ral import ABSENT, Param, Property, State, Type, displayed
from ...ral.attributes import as_list, text_of


class NameList(Property[Any]):
    """
    Names whose order does not matter; `membership` names the parameter that is `inclusive` or `minimum`.

    Messages show the desired names as text, joined and sorted; with `minimum` they include the present ones.
    """

    def __init__(self, *, membership: str = "membership", **options: Any) -> None:
        super().__init__(str, many=True, **options)
        self.membership = membership

    def should(self, resource: Type, state: State, desired: list[Any]) -> str:
        current = state.get(self.name, ABSENT)
        names = set(map(text_of, desired))
        if resource.value_of(self.membership) != "inclusive" and isinstance(current, list | tuple):
            names |= set(current)
        return ",".join(sorted(names))

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        current = state.get(self.name, ABSENT)
        names = current if isinstance(current, list | tuple) else []
        return ",".join(sorted(names)) == self.should(resource, state, desired)

    def is_text(self, resource: Type, value: Any) -> str:
        return displayed(value) if value == ABSENT else ",".join(value)

    def change_text(self, resource: Type, current: Any, desired: Any) -> str:
        names = desired.split(",") if desired else []
        if current == ABSENT:
            return f"defined '{self.name}' as {displayed(names)}"
        return f"{self.name} changed {self.is_text(resource, current)} to {displayed(names)}"


class FolderList(Param[list[str]]):
    """Folders, as a list or joined by colons."""

    def accept(self, resource: Type, raw: Any) -> list[str]:
        return [folder for value in as_list(raw) for folder in text_of(value).split(":") if folder]


class KeyValueList(NameList):
    """`key=value` items, or a hash; of keys with several values the last counts."""

    def accept(self, resource: Type, raw: Any) -> list[Any]:
        if isinstance(raw, Mapping):
            raw = [f"{key}={text_of(value)}" for key, value in raw.items()]
        for value in as_list(raw):
            if "=" not in text_of(value):
                raise ValueError(f"Key/value pairs must be separated by an =: {text_of(value)!r}")
        return super().accept(resource, raw)

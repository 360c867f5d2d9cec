"""Puppet's own types, one a file that is called as the type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from functools import cache
from importlib import import_module
from pathlib import Path

from ..ral import Type
from ..ral.known import CORE, KNOWN, UnsupportedType

__all__ = ["CORE", "KNOWN", "UnsupportedType", "builtin_types"]


@cache
def _names() -> frozenset[str]:
    return frozenset(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


class _Builtin(Mapping[str, type[Type]]):
    """The types by name. One is imported when somebody looks it up, for a catalog uses few of them."""

    def __init__(self, names: Set[str]) -> None:
        self._names = names
        self._loaded: dict[str, type[Type]] = {}

    def __getitem__(self, name: str) -> type[Type]:
        loaded = self._loaded.get(name)
        if loaded is None:
            if name not in self._names:
                raise KeyError(name)
            declared = [each for each in vars(import_module(f".{name}", __name__)).values() if isinstance(each, type) and each is not Type]
            loaded = next(each for each in declared if issubclass(each, Type) and each.declaration.name == name)
            self._loaded[name] = loaded
        return loaded

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._names))

    def __len__(self) -> int:
        return len(self._names)


def builtin_types(*, without: Set[str] = frozenset()) -> Mapping[str, type[Type]]:
    """Return all types that can be applied, by name, but for those of the names `without`; one is imported when it is looked up."""
    return _Builtin(_names() - without)

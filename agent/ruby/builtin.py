"""Providers that modules have in Ruby for the agent's own types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.errors import ResourceError
from shared.ral import ABSENT, Platform, Provider, State, Type
from shared.ral.providers import ProviderFactories
from shared.types import builtin_types
from shared.types.package import NOT_INSTALLED

from .process import RubyProcess, RubyReport

NO_RUBY = "a program ruby (Debian, Ubuntu, Fedora: the package ruby)"
_PROVIDE = re.compile(r"\bprovide\b")
_ENSURABLE = frozenset(("present", ABSENT))
_SERVED = frozenset(("package", "service", "user", "group"))
"""The types whose `ensure` has further values, of which it is known what they call."""


def files_of_providers(folders: Sequence[Path], types: Iterable[str]) -> dict[str, dict[str, Path]]:
    """
    Return the files of providers in Ruby in folders like a module's `lib`, by type and name; of two with one name the first counts. A file
    that declares none is one that providers require.
    """
    wanted = frozenset(types)
    files: dict[str, dict[str, Path]] = {}
    for folder in folders:
        root = folder / "puppet" / "provider"
        for type_name in sorted(wanted.intersection(path.name for path in root.iterdir()) if root.is_dir() else ()):
            for path in sorted((root / type_name).glob("*.rb")):
                if _PROVIDE.search(path.read_text(errors="replace")):
                    files.setdefault(type_name, {}).setdefault(path.stem, path)
    return files


def providers_in_ruby(ruby: RubyProcess | None, files: Mapping[str, Mapping[str, Path]], builtin: ProviderFactories) -> ProviderFactories:
    """
    Return the factory of the providers of those types that have some in Ruby: `builtin`, then those in Ruby. A provider in Python counts
    first.

    Args:
        ruby: the run's process, which is started when a provider is needed; None: there is no ruby.
        files: see `files_of_providers`.
    """

    def maker(type_name: str) -> Callable[[], Sequence[Provider[Any]]]:
        def make() -> Sequence[Provider[Any]]:
            own = list(builtin[type_name]()) if type_name in builtin else []
            names = {provider.name for provider in own}
            if ruby is not None:
                ruby.builtin_providers = {**ruby.builtin_providers, type_name: frozenset(names)}
            serves = builtin_types()[type_name]
            return [*own, *(RubyServing(ruby, serves, name, path) for name, path in files[type_name].items() if name not in names)]

        return make

    return {type_name: maker(type_name) for type_name in files}


class RubyServing(Provider[Type]):
    """
    A provider in Ruby of one of the agent's own types. Ruby is asked when a resource names it, or when it may be the default.

    Args:
        ruby: None: there is no ruby.
        name: the provider's, which is that of its file.
        file: where it is declared.
    """

    def __init__(self, ruby: RubyProcess | None, serves: type[Type], name: str, file: Path) -> None:
        self.ruby = ruby
        self.serves = serves  # type: ignore[misc]  # of this one instance
        self.name = name  # type: ignore[misc]
        self.file = file
        self._data: Mapping[str, Any] | None = None
        self._fits = False
        self._numbers: dict[Type, int] = {}
        self._prefetched: list[Type] = []
        self._generation = 0  # of the process that has what was prefetched

    @property
    def _subject(self) -> str:
        return f"The {self.serves.declaration.name} provider '{self.name}'"

    def _live(self) -> RubyProcess:
        if self.ruby is None:
            raise ResourceError(f"{self._subject} is in Ruby, and there is no ruby to run it")
        return self.ruby

    def _declaration(self) -> Mapping[str, Any]:
        """Return Ruby's description of it; raise ResourceError when it cannot be loaded."""
        if self._data is None:
            answer: Mapping[str, Any] = self._live().ask("provider_of", self.serves.declaration.name, self.name, subject=self._subject)
            self._data = answer
            self.features = frozenset(answer["features"])
        return self._data

    # --- the choice

    @property
    def on_request(self) -> bool:  # type: ignore[override]  # it depends on the file
        """Return whether it is never the default while another fits: it declares no platform as its own."""
        return self.ruby is None or "defaultfor" not in self.file.read_text(errors="replace")

    def unmet(self, platform: Platform) -> list[str]:
        if self._fits:
            return []
        if self.ruby is None:
            return [NO_RUBY]
        values = self.serves.declaration.attributes.get("ensure")
        known = {value.value for value in getattr(values, "values", ())}
        if self.serves.declaration.name not in _SERVED and not known <= _ENSURABLE:
            return [f"an agent that can use providers in Ruby of the type {self.serves.declaration.name}"]
        try:
            self._declaration()
            missing = self.ruby.ask("unmet", self.serves.declaration.name, self.name, subject=self._subject)
        except ResourceError as err:
            return [f"its file to be loaded: {err.message}"]
        self._fits = not missing
        return [str(each) for each in missing]

    def is_default(self, platform: Platform) -> bool:
        return bool(self._declaration()["default"])

    def specificity(self, platform: Platform) -> int:
        return int(self._declaration()["specificity"])

    # --- reading

    async def prefetch(self, resources: Mapping[str, Type]) -> Mapping[str, State | None]:
        if self._declaration()["prefetches"]:
            self._prefetched = list(resources.values())
            await self._prefetch()
        return {}

    async def _prefetch(self) -> None:
        numbers = [await self._number(resource) for resource in self._prefetched]
        await self._live().asked("prefetch", self.serves.declaration.name, self.name, numbers, subject=self._subject)
        self._generation = self._live().generation

    async def _number(self, resource: Type) -> int:
        """Return the number of a resource, which Ruby has or gets now."""
        if resource in self._numbers:
            return self._numbers[resource]
        ruby = self._live()
        where = resource.origin.where
        number = ruby.number()
        data = {
            "id": number,
            "type": resource.declaration.name,
            "title": resource.title,
            "parameters": {**_values(resource), "provider": self.name},
            "sensitive": sorted(resource.origin.sensitive),
            "file": where.file if where else None,
            "line": where.line if where else None,
            "tags": list(resource.origin.tags),
        }
        answer = (await ruby.asked("make", [data], subject=self._subject))[str(number)]
        if "error" in answer:
            raise RubyReport.of(answer["error"]).error(self._subject)
        ruby.remember(number, data).resource = resource
        self._numbers[resource] = number
        return number

    async def retrieve(self, resource: Type) -> State | None:
        number = await self._number(resource)
        if self._prefetched and self._generation != self._live().generation:
            await self._prefetch()  # it died since
        state: dict[str, Any] = await self._live().asked("read_builtin", number, self._wanted(resource), subject=self._subject)
        if "latest" in state:
            resource.latest = state["latest"]  # type: ignore[attr-defined]  # of packages
        return None if state.get("ensure") == ABSENT and self.serves.declaration.name != "package" else state

    def _wanted(self, resource: Type) -> list[str]:
        """Return the properties to read: those that are managed or audited, and `ensure`, unless the type does without."""
        declaration = resource.declaration
        names = [each.name for each in declaration.properties if resource.wanted(each.name) is not None or each.name in resource.audit]
        usable = [name for name in names if set(declaration.attributes[name].requires) <= self.features]
        return usable if "ensure" in usable or not declaration.ensure_retrieved else ["ensure", *usable]

    async def insync(self, resource: Type, attribute: str, state: State, desired: list[Any]) -> bool:
        if attribute == "enable" and "enabled_insync" in state:
            return bool(state["enabled_insync"])
        return await super().insync(resource, attribute, state, desired)

    def reads_as(self, other: Provider[Any]) -> bool:
        return self is other

    async def instances(self) -> Mapping[str, State]:
        declaration = self.serves.declaration
        self._declaration()
        names = [each.name for each in declaration.properties if set(each.requires) <= self.features]
        found: dict[str, State] = await self._live().asked("builtin_instances", declaration.name, self.name, names, subject=self._subject)
        return found

    # --- changing

    async def create(self, resource: Type, state: State | None) -> None:
        await self.set(resource, "ensure", "present", state)

    async def destroy(self, resource: Type, state: State | None) -> None:
        await self.set(resource, "ensure", ABSENT, state)

    async def set(self, resource: Type, attribute: str, desired: Any, state: State | None) -> None:
        number = await self._number(resource)
        await self._live().asked("change_builtin", number, attribute, desired, subject=self._subject)
        enable = resource.wanted("enable") if self.serves.declaration.name == "service" and attribute == "ensure" else None
        if enable is not None:  # a change of `ensure` also sets `enable`, in the same event
            now = await self._live().asked("read_builtin", number, ["enable"], subject=self._subject)
            if not await self.insync(resource, "enable", now, enable):
                await self._live().asked("change_builtin", number, "enable", enable[0], subject=self._subject)

    async def flush(self, resource: Type, now: State | None) -> None:
        await self._live().asked("flush_builtin", await self._number(resource), subject=self._subject)

    async def refresh(self, resource: Type) -> None:
        number = await self._number(resource)
        if self.serves.declaration.name == "service":
            now = await self._live().asked("read_builtin", number, ["ensure"], subject=self._subject)
            if now.get("ensure") != "running":
                resource.log("debug", "Skipping restart; service is not running")
                return
            await self._live().asked("call_builtin", number, "restart", subject=self._subject)
            return
        wanted = resource.value_of("reinstall_on_refresh") and resource.value_of("ensure") not in NOT_INSTALLED
        if "reinstallable" in self.features and wanted:
            await self._live().asked("call_builtin", number, "reinstall", subject=self._subject)

    async def finish(self) -> None:
        if self._data is not None and self._data.get("finishes"):
            await self._live().asked("finish", self.serves.declaration.name, self.name, subject=self._subject)


def _values(resource: Type) -> dict[str, Any]:
    """Return a resource's own attributes that have values, as Ruby is given them."""
    declaration = resource.declaration
    names = [each.name for each in (*declaration.properties, *declaration.parameters) if each.name != "provider"]
    values = {name: resource.value_of(name) for name in names}
    return {name: value for name, value in values.items() if value is not None and value != []}

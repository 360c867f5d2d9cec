"""Providers that modules have in Ruby, as providers of the resource layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.errors import ResourceError, Unsupported
from shared.ral import Platform, Provider, State, Type
from shared.ral.core import Origin

from .process import RubyProcess, RubyReport
from .types import RubyType


class RubyProvider(Provider[RubyType]):
    """
    One provider of a type in Ruby.

    Args:
        data: what Ruby says about its declaration; None: the type has no providers and does everything itself.
        declaration: what Ruby says about the type.
    """

    def __init__(self, ruby: RubyProcess, serves: type[RubyType], data: Mapping[str, Any] | None, declaration: Mapping[str, Any]) -> None:
        self.ruby = ruby
        self.serves = serves  # type: ignore[misc]  # of this one instance
        self.name = str(data["name"]) if data else ""  # type: ignore[misc]
        self.features = frozenset(data["features"]) if data else frozenset()
        self._data = data or {}
        self._generates = frozenset(declaration["generates"])
        self._lists = bool(self._data.get("lists") or declaration["lists"])
        self.doc = str(self._data.get("doc", ""))
        self._fits = data is None
        self._prefetched: list[RubyType] = []
        self._generation = 0  # of the process that has what was prefetched
        self._ahead: dict[RubyType, Any] = {}
        self._outdated = False  # what Ruby knows of the type may have changed since

    @property
    def _subject(self) -> str:
        return f"The {self.serves.declaration.name} provider '{self.name}'"

    # --- the choice

    def unmet(self, platform: Platform) -> list[str]:
        if not self._fits:
            missing = self.ruby.ask("unmet", self.serves.declaration.name, self.name, subject=self._subject)
            self._fits = not missing
            return [str(each) for each in missing]
        return []

    def is_default(self, platform: Platform) -> bool:
        return bool(self._data.get("default"))

    def specificity(self, platform: Platform) -> int:
        return int(self._data.get("specificity", 0))

    # --- reading

    async def prefetch(self, resources: Mapping[str, RubyType]) -> Mapping[str, State | None]:
        if self._data.get("prefetches"):
            self._prefetched = list(resources.values())
            await self._prefetch()
        return {}

    async def _prefetch(self) -> None:
        numbers = [resource.number for resource in self._prefetched]
        await self.ruby.asked("prefetch", self.serves.declaration.name, self.name, numbers, subject=self._subject)
        self._generation = self.ruby.generation

    async def retrieve(self, resource: RubyType) -> State | None:
        answer = self._ahead.pop(resource, None)
        if answer is None:
            answer = (await self._read([resource], collect=False))[str(resource.number)]
        for level, text, source in answer.get("logs", ()):
            self.ruby.write(level, text, source)
        if "error" in answer:
            raise RubyReport.of(answer["error"]).error(self._subject)
        resource.state, resource.present, resource.verdicts, resource.changes = answer["state"], answer["present"], answer["verdicts"], {}
        return resource.state

    async def read_ahead(self, resources: Sequence[RubyType]) -> None:
        resources = [resource for resource in resources if not resource.pending]
        answers = await self._read(resources, collect=True)
        self._ahead = {resource: answers[str(resource.number)] for resource in resources}

    def forget_ahead(self) -> None:
        self._ahead.clear()
        self._outdated = True

    async def _read(self, resources: Sequence[RubyType], *, collect: bool) -> dict[str, Any]:
        if self._prefetched and self._generation != self.ruby.generation:
            await self._prefetch()  # it died since
        names = [[resource.number, self.name] for resource in resources]
        answers: dict[str, Any] = await self.ruby.asked("read", names, collect, self._outdated, subject=self._subject)
        self._outdated = False
        return answers

    async def insync(self, resource: RubyType, attribute: str, state: State, desired: list[Any]) -> bool:
        if desired is not resource.wanted(attribute):
            earlier = await self.ruby.asked("compare", resource.number, attribute, desired, subject=self._subject)
            return bool(earlier["insync"])
        if attribute not in resource.verdicts:
            resource.verdicts[attribute] = await self.ruby.asked("compare", resource.number, attribute, None, subject=self._subject)
        verdict = resource.verdicts[attribute]
        if verdict.get("error"):
            raise RubyReport.of(verdict["error"]).error(self._subject)
        return bool(verdict["insync"])

    def reads_as(self, other: Provider[Any]) -> bool:
        return self is other

    async def instances(self) -> Mapping[str, State]:
        if not self._lists:
            raise Unsupported(
                f"The {self.serves.declaration.name} provider '{self.name}' cannot list what exists",
                hint="It would have to have a class method `instances`.",
            )
        found: dict[str, State] = await self.ruby.asked("instances", self.serves.declaration.name, self.name, subject=self._subject)
        return found

    # --- changing

    async def create(self, resource: RubyType, state: State | None) -> None:
        await self.set(resource, "ensure", "present", state)

    async def destroy(self, resource: RubyType, state: State | None) -> None:
        await self.set(resource, "ensure", "absent", state)

    async def set(self, resource: RubyType, attribute: str, desired: Any, state: State | None) -> None:
        resource.changes[attribute] = await self.ruby.asked("sync", resource.number, attribute, subject=self._subject)

    async def flush(self, resource: RubyType, now: State | None) -> None:
        await self.ruby.asked("flush", resource.number, subject=self._subject)

    async def refresh(self, resource: RubyType) -> None:
        await self.ruby.asked("refresh", resource.number, subject=self._subject)

    # --- more resources

    async def generate(self, resource: RubyType) -> Sequence[Type]:
        return await self._generated(resource, "generate")

    async def eval_generate(self, resource: RubyType) -> Sequence[Type]:
        return await self._generated(resource, "eval_generate")

    async def _generated(self, resource: RubyType, method: str) -> Sequence[Type]:
        if method not in self._generates:
            return ()
        found = await self.ruby.asked("generate", resource.number, method, subject=self._subject)
        return [self._resource(resource, data) for data in found]

    def _resource(self, parent: RubyType, data: Mapping[str, Any]) -> Type:
        name = str(data["type"])
        declared = self.ruby.types.get(name)
        if declared is None:
            raise ResourceError(f"Ruby generated a resource of the type {name}, which the catalog does not have")
        if "made" not in data or not issubclass(declared, RubyType):
            return parent.child(data["title"], data["parameters"], type=declared)
        made = declared.adopt(data["title"], data["parameters"], Origin(tags=parent.origin.tags), data["id"], data["made"])
        made.surroundings = parent.surroundings
        return made

    async def finish(self) -> None:
        if self._data.get("finishes"):
            await self.ruby.asked("finish", self.serves.declaration.name, self.name, subject=self._subject)

"""The base of providers whose things are records of files: read once, changed in memory, written whole after each resource."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar

from shared.errors import PuppetError, ResourceError
from shared.ral import ABSENT, Provider, State, Type

from ...state.runlog import RunLog
from .records import LineFormat, ParsedRecord
from .storage import Storage

R = TypeVar("R", bound=Type)


def local_now() -> datetime:
    return datetime.now().astimezone()


@dataclass(slots=True)
class ParsedTarget:
    """The present and future records of one file."""

    records: list[ParsedRecord] = field(default_factory=list)
    problem: str = ""  # why it could not be read; then it is never written
    backed_up: bool = False


class ParsedFile(Provider[R], Generic[R]):
    """
    Base of providers of lines; a subclass provides the format and overrides the peculiarities of its files.

    A target that cannot be read fails its resources and is not written. Of two records of one name the last is the resource's; one in the
    resource's own target counts before those of others.

    Args:
        default_target: the target of resources that name none; '': there is none.
    Source: resource layer reference 2.4.
    """

    own_keys: ClassVar[tuple[str, ...]] = ("ensure", "target")  # properties that are not part of a record

    def __init__(
        self, form: LineFormat, storage: Storage, log: RunLog, *, default_target: str = "", now: Callable[[], datetime] = local_now
    ) -> None:
        self.form = form
        self.storage = storage
        self.log = log
        self.default_target = default_target
        self.now = now
        self.targets: dict[str, ParsedTarget] = {}
        self._bound: dict[str, tuple[str, ParsedRecord]] = {}  # resource key -> (target, record)
        self._modified: dict[str, None] = {}

    # --- what a subclass may say

    def target_of(self, resource: R) -> str:
        """Return the target of a resource's record."""
        return str(resource.value_of("target") or self.default_target)

    def known_targets(self) -> Iterable[str]:
        """Return the targets that are read for `instances`, and for every prefetch."""
        return (self.default_target,) if self.default_target else ()

    def adopt(self, resource: R, target: str) -> ParsedRecord | None:
        """Return a record that has another name but is the resource's nevertheless; None: there is none."""
        return None

    def state_of(self, target: str, record: ParsedRecord) -> dict[str, Any]:
        """Return the state that a record describes."""
        values = {k: v for k, v in record.values.items() if not k.startswith("_") and v is not None}
        return {"ensure": "present", **values, "target": target}

    def with_context(self, target: str, records: list[ParsedRecord]) -> list[ParsedRecord]:
        """Return the records of a newly read target, completed from their sequence."""
        return records

    def complete_values(self, resource: R, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values for the line, with the format's values in addition to the resource's attributes."""
        return values

    # --- reading

    async def prefetch(self, resources: Mapping[str, R]) -> Mapping[str, State | None]:
        def targets() -> list[str]:
            return [*self.known_targets(), *(self.target_of(resource) for resource in resources.values())]

        for target in dict.fromkeys(filter(None, await asyncio.to_thread(targets))):
            await self._load(target)
        states: dict[str, State | None] = {}
        for key, resource in resources.items():
            if not self._unreadable(resource):
                states[key] = self._bind(resource)
        return states

    async def retrieve(self, resource: R) -> State | None:
        for target in dict.fromkeys(filter(None, (*self.targets, self.target_of(resource)))):
            await self._load(target)
        problem = self._unreadable(resource)
        if problem:
            raise ResourceError(problem, hint="Nothing is written to a file that could not be read.")
        return self._bind(resource)

    def _unreadable(self, resource: R) -> str:
        target = self.targets.get(self.target_of(resource))
        return target.problem if target else ""

    async def _load(self, path: str) -> None:
        if path in self.targets:
            return
        self.targets[path] = ParsedTarget()
        try:
            text = await self.storage.read(path)
            self.targets[path].records = await asyncio.to_thread(lambda: self.with_context(path, self.form.parse(text)))
        except (PuppetError, OSError) as err:
            detail = err.message if isinstance(err, PuppetError) else err.strerror or str(err)
            self.targets[path].problem = f"Could not read {path}: {detail}"

    def _bind(self, resource: R) -> State | None:
        self._bound.pop(resource.key, None)
        own = self.target_of(resource)
        elsewhere = [target for target in self.targets if target != own] if resource.is_given("target") else []
        for target in (own, *elsewhere):
            record = self._record_of(resource, target)
            if record is not None:
                self._bound[resource.key] = target, record
                return self.state_of(target, record)
        return None

    def _record_of(self, resource: R, target: str) -> ParsedRecord | None:
        if target not in self.targets:
            return None
        return _last_record_of(self.targets[target].records, resource.key) or self.adopt(resource, target)

    async def instances(self) -> Mapping[str, State]:
        states: dict[str, State] = {}
        for path in await asyncio.to_thread(lambda: tuple(self.known_targets())):
            await self._load(path)
            target = self.targets[path]
            states_of_file: dict[str, State] = {}
            if target.problem:
                self.log.log("warning", target.problem)
            for record in target.records:
                if record.text is None:
                    states_of_file[record.name] = self.state_of(path, record)
            states = states_of_file | states
        return states

    # --- changing

    async def create(self, resource: R, state: State | None) -> None:
        if resource.key in self._bound:
            return
        record = ParsedRecord(name=resource.key, values={"name": resource.value_of("name") or resource.key})
        for declared in resource.declaration.properties:
            if declared.name not in self.own_keys and resource.wanted(declared.name) is not None:
                self._assign(record, declared.name, self.value_to_write(resource, declared.name))
        path = self.target_of(resource)
        if not path:
            raise ResourceError(f"{resource.ref} has no target to be written to")
        target = self.targets.setdefault(path, ParsedTarget())
        target.records.append(record)
        self._bound[resource.key] = path, record
        self._modified[path] = None

    def value_to_write(self, resource: R, attribute: str) -> Any:
        """Return the value of a property to be written."""
        desired = resource.wanted(attribute) or []
        if resource.declaration.attributes[attribute].many:
            return ABSENT if desired == [ABSENT] else desired
        return desired[0] if desired else ABSENT

    async def destroy(self, resource: R, state: State | None) -> None:
        bound = self._bound.pop(resource.key, None)
        if bound is not None:
            path, record = bound
            self.targets[path].records.remove(record)
            self._modified[path] = None

    async def set(self, resource: R, attribute: str, desired: Any, state: State | None) -> None:
        path, record = self._bound[resource.key]
        if attribute == "target":
            self.targets[path].records.remove(record)
            self.targets.setdefault(desired, ParsedTarget()).records.append(record)
            self._bound[resource.key] = desired, record
            self._modified |= {path: None, desired: None}
            return
        self._assign(record, attribute, self.value_to_write(resource, attribute))
        self._modified[path] = None

    def _assign(self, record: ParsedRecord, attribute: str, value: Any) -> None:
        if value in (ABSENT, [ABSENT]):
            record.values.pop(attribute, None)
        else:
            record.values[attribute] = value

    # --- writing

    async def flush(self, resource: R, now: State | None) -> None:
        modified, self._modified = list(self._modified), {}
        bound = self._bound.get(resource.key)
        try:
            if bound is not None:
                bound[1].values = self.complete_values(resource, bound[1].values)
            for path in modified:
                await self._write(resource, path)
        except (PuppetError, OSError):
            for path in modified:
                await self._forget(path)
            self._bound.pop(resource.key, None)
            raise

    async def _write(self, resource: R, path: str) -> None:
        target = self.targets[path]
        if target.problem:
            raise ResourceError(target.problem, hint="Nothing is written to a file that could not be read.")
        if not target.backed_up:
            await self.storage.back_up(path)
            target.backed_up = True
        text = self.form.write(target.records, self.now())
        await self.store(resource, path, text)

    async def store(self, resource: R, path: str, text: str) -> None:
        """Replace a file's text."""
        await self.storage.write(path, text)

    async def _forget(self, path: str) -> None:
        """Forget a target that could not be written, so that it is read again and the next resource does not write the same."""
        backed_up = self.targets.pop(path).backed_up
        await self._load(path)
        self.targets[path].backed_up = backed_up
        for key, (target, record) in list(self._bound.items()):
            if target == path:
                same = _last_record_of(self.targets[path].records, record.name)
                if same is None:
                    del self._bound[key]
                else:
                    self._bound[key] = path, same


def _last_record_of(records: Sequence[ParsedRecord], name: str) -> ParsedRecord | None:
    """Return the record of a name; of several the last, as in the reference; None when there is none."""
    return next((record for record in reversed(records) if record.text is None and record.name == name), None)

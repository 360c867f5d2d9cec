"""The interface of a provider for a run: it reads and changes the things of a type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ..errors import Unsupported
from .attributes import State


class Handled(Protocol):
    """The part of a resource that a provider can use."""

    @property
    def key(self) -> str: ...

    @property
    def ref(self) -> object: ...

    @property
    def declaration(self) -> Any: ...


R = TypeVar("R", bound=Handled)


class Handler(Generic[R]):
    """The methods of a provider that handle resources. Each may raise ResourceError; its message is the report's."""

    serves: ClassVar[Any]  # the type
    name: ClassVar[str]
    features: frozenset[str] = frozenset()  # an instance may set its own

    # --- reading

    async def prefetch(self, resources: Mapping[str, R]) -> Mapping[str, State | None]:
        """
        Return the state of each of `resources` (key → resource), all read at once; None: absent.

        Called once per run, just before the first of them is evaluated. A key that is left out is read by `retrieve`.
        """
        return {}

    async def retrieve(self, resource: R) -> State | None:
        """Return the state of one resource; None: absent. By default a prefetch of this one alone."""
        states = await self.prefetch({resource.key: resource})
        if resource.key not in states:
            raise Unsupported(f"The {self.serves.declaration.name} provider '{self.name}' cannot read {resource.ref}")
        return states[resource.key]

    async def read_ahead(self, resources: Sequence[R]) -> None:
        """
        Read several resources at once, before the first is evaluated: they follow each other directly.

        The states are cached for `retrieve`, until `forget_ahead`. Reading may not log or change anything. By default nothing is read.
        """

    def forget_ahead(self) -> None:
        """Discard the cached states of resources that are not evaluated yet, because another resource was evaluated or changed."""

    async def instances(self) -> Mapping[str, State]:
        """Return all things of this type on the system, by name."""
        raise Unsupported(f"The {self.serves.declaration.name} provider '{self.name}' cannot list what exists")

    def identity(self, state: State) -> Mapping[str, Any]:
        """Return the attributes, in addition to its name, that identify the thing of a resource made for one of `instances`."""
        return {}

    async def insync(self, resource: R, attribute: str, state: State, desired: list[Any]) -> bool:
        """Return whether the complete `state` satisfies the desired values of a property. By default the property itself compares."""
        declared: Any = resource.declaration.attributes[attribute]
        return bool(declared.insync(resource, state, desired))

    async def preview(self, resource: R, attribute: str, desired: Any, state: State | None) -> None:
        """Log more about a property that is out of sync (a diff) before it is changed; also called in noop."""

    # --- changing; never called in noop

    async def create(self, resource: R, state: State | None) -> None:
        """Create the thing (`ensure => present`) with all its properties. By default nothing: `flush` does it."""

    async def destroy(self, resource: R, state: State | None) -> None:
        """Remove the thing (`ensure => absent`). By default nothing: `flush` does it."""

    async def set(self, resource: R, attribute: str, desired: Any, state: State | None) -> None:
        """
        Change one property to the `desired` value; also `ensure` with another value than present and absent.

        By default calls `set_<attribute>(resource, desired, state)` if there is one, else nothing: `flush` does it.
        """
        setter = getattr(self, f"set_{attribute}", None)
        if setter is not None:
            await setter(resource, desired, state)

    async def flush(self, resource: R, now: State | None) -> None:
        """
        Write the changes that create, destroy and set left pending, after the last change of a resource. `now`: the state that was read.
        """

    async def refresh(self, resource: R) -> None:
        """React to a change of something that the resource subscribes to. Only for types declared `refreshable`."""

    # --- more resources

    async def generate(self, resource: R) -> Sequence[Any]:
        """Return further resources, before the run starts."""
        return ()

    async def eval_generate(self, resource: R) -> Sequence[Any]:
        """Return resources contained in this one (a directory's files), just before it is evaluated."""
        return ()

    async def finish(self) -> None:
        """Clean up after the run's last resource."""

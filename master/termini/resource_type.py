"""The definitions in an environment's manifests, which a worker process parses. Source: protocol reference 3.14."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from shared.errors import Unsupported
from shared.indirector import Request, Terminus
from shared.models.resource import LiveResource
from shared.models.resource_type import ResourceType

from ..pools.jobs import DefinitionsQuery

Ask = Callable[[DefinitionsQuery], Awaitable[list[dict[str, Any]]]]


class Parser(Terminus[ResourceType]):
    """The definitions of an environment; `ask` answers in another process, since a client's pattern may take endless work."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask

    async def find(self, request: Request[ResourceType]) -> ResourceType | None:
        """Return the class, define or node of that name; BadRequest when it cannot be one."""
        definitions = await self.ask(DefinitionsQuery(request.environment, name=request.key))
        return ResourceType.from_data(definitions[0]) if definitions else None

    async def search(self, request: Request[ResourceType]) -> list[ResourceType] | None:
        """Return those whose name the key, a regular expression or `*`, fits; None when there are none. BadRequest for an unknown kind."""
        definitions = await self.ask(DefinitionsQuery(request.environment, pattern=request.key, kind=request.option("kind")))
        return [ResourceType.from_data(definition) for definition in definitions] or None


class NotManaged(Terminus[LiveResource]):
    """The live resources of a master, which has none: it describes machines, it does not manage its own."""

    async def find(self, request: Request[LiveResource]) -> LiveResource | None:
        raise self._no(request)

    async def search(self, request: Request[LiveResource]) -> list[LiveResource] | None:
        raise self._no(request)

    async def save(self, request: Request[LiveResource]) -> object:
        raise self._no(request)

    def _no(self, request: Request[LiveResource]) -> Unsupported:
        return Unsupported(
            f"Live resources such as {request.key} are read and changed by an agent's providers, which a master does not load",
            hint="Run `puppet resource` on the machine itself.",
        )

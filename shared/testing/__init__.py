"""Fakes for tests, ours and those of module authors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from ..indirector.core import Model, Request, Stream, Terminus

M = TypeVar("M", bound=Model)


class Shelf(Terminus[M], Generic[M]):
    """
    A dict as a terminus. `asked` holds (verb, key) of every question, `requests` the requests themselves.

    `fail` is raised by every verb when it is set; streams are stored as bytes, so that they can be read more than once.
    """

    def __init__(self, *instances: M, result: object = None) -> None:
        self.instances: dict[str, M] = {instance.name: instance for instance in instances}
        self.streams: dict[str, bytes] = {}
        self.asked: list[tuple[str, str]] = []
        self.requests: list[Request[M]] = []
        self.result = result
        self.fail: BaseException | None = None

    def _ask(self, verb: str, request: Request[M]) -> None:
        self.asked.append((verb, request.key))
        self.requests.append(request)
        if self.fail is not None:
            raise self.fail

    async def find(self, request: Request[M]) -> M | None:
        self._ask("find", request)
        return self.instances.get(request.key)

    async def search(self, request: Request[M]) -> list[M] | None:
        self._ask("search", request)
        return list(self.instances.values()) or None

    async def save(self, request: Request[M]) -> object:
        self._ask("save", request)
        instance = request.instance
        if isinstance(instance, Stream):
            self.streams[request.key] = b"".join([chunk async for chunk in instance.chunks()])
        else:
            self.instances[request.key] = instance
        return self.result

    async def destroy(self, request: Request[M]) -> object:
        self._ask("destroy", request)
        return 1 if self.instances.pop(request.key, None) else None

    async def head(self, request: Request[M]) -> bool:
        self._ask("head", request)
        return request.key in self.instances


class Clock:
    """A time that does not advance until it is moved."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **delta: float) -> None:
        """Move the time on; the arguments are those of timedelta."""
        self.now += timedelta(**delta)


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    """Yield the chunks, one after the other, as the body of a Stream."""
    for chunk in chunks:
        yield chunk

"""Files of Puppet's file servers and of this host, which modules' Ruby requests by their sources."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from shared.errors import NotFound, ResourceError, Unsupported

from ..servers.sources import FileSources

Sources = Callable[[], FileSources]


class RubyFiles:
    """
    Fetches contents for Ruby, whose questions arrive in threads, over the connections of the run's event loop.

    Args:
        sources: returns what fetches files, for the first question.
        limit: bytes of one file.
        timeout: seconds for one file.
    """

    def __init__(self, sources: Sources, *, limit: int, timeout: float) -> None:
        self._sources = sources
        self._limit = limit
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def content(self, source: str) -> bytes | None:
        """
        Return the bytes of a file, None when there is none. Blocks.

        Raises:
            PuppetError: the file cannot be had, or is too large.
        """
        if threading.get_ident() == self._thread:
            raise Unsupported(
                f"The file {source} cannot be fetched at this moment", hint="A provider can fetch it when it reads or changes."
            )
        fetching = asyncio.run_coroutine_threadsafe(self._fetched(source), self._loop)
        try:
            return fetching.result(self._timeout)
        except TimeoutError:
            fetching.cancel()
            raise ResourceError(f"Fetching {source} took longer than ruby_timeout ({self._timeout:g} seconds)") from None

    async def _fetched(self, source: str) -> bytes | None:
        content = bytearray()
        try:
            async for chunk in self._sources().content(source, None):
                content += chunk
                if len(content) > self._limit:
                    raise ResourceError(f"{source} is larger than ruby_answer allows ({self._limit} bytes)")
        except (NotFound, FileNotFoundError):
            return None
        return bytes(content)


def no_file(source: str) -> bytes | None:
    """Refuse a file where nothing fetches any."""
    raise Unsupported(f"The file {source} cannot be fetched here", hint="Files are fetched while a catalog is applied.")

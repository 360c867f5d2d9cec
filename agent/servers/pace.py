"""How much a server may send, and how slowly: no body takes a node's disk, or its time, without end."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from shared.errors import PeerUnreachable, TooLarge

HINT = "See http_least_rate and http_body_timeout; the next run tries again."


@dataclass(frozen=True, slots=True)
class Bounds:
    """
    Of one body.

    Attributes:
        size: Bytes of content that goes to disk.
        rate: The least bytes a second, over each `window` seconds; 0: any.
        seconds: The longest that a server may keep us waiting in all; 0: any.
    """

    size: int = 16 * 2**30
    rate: int = 512
    window: float = 30.0
    seconds: float = 1800.0


class Pace:
    """
    Watches one body as it comes. Only the time that we wait for the server counts, not what we do with its bytes.

    Args:
        what: The body, for messages. clock: seconds that only ever grow.
    """

    def __init__(self, bounds: Bounds, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.bounds = bounds
        self.what = what
        self._clock = clock
        self._size = 0
        self._waited = 0.0
        self._window_waited = 0.0
        self._window_size = 0

    def add(self, size: int, waited: float) -> None:
        """
        Count `size` bytes that came after `waited` seconds.

        Raises:
            PeerUnreachable: they come too slowly, or took too long in all. TooLarge: more than may come.
        """
        self._size += size
        self._waited += waited
        self._window_size += size
        self._window_waited += waited
        bounds = self.bounds
        if self._size > bounds.size:
            raise TooLarge(
                f"{self.what} is larger than {bounds.size} bytes", hint="See max_source_size, if the server is right to send so much."
            )
        if bounds.seconds and self._waited > bounds.seconds:
            raise PeerUnreachable(f"{self.what} did not come within {bounds.seconds:g} seconds: {self._size} bytes of it did", hint=HINT)
        if self._window_waited >= bounds.window:
            if self._window_size < bounds.rate * self._window_waited:
                rate = self._window_size / self._window_waited
                raise PeerUnreachable(f"{self.what} comes too slowly: {rate:.0f} bytes a second, {self._size} in all", hint=HINT)
            self._window_size, self._window_waited = 0, 0.0

    async def watch(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The same chunks; raises as `add`."""
        while True:
            began = self._clock()
            chunk = await anext(chunks, None)
            if chunk is None:
                return
            self.add(len(chunk), self._clock() - began)
            yield chunk

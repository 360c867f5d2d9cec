"""Limits of size and of slowness for bodies, so that no server can fill a node's disk or delay it forever."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from shared.errors import PeerUnreachable, TooLarge

HINT = "See http_least_rate and http_body_timeout; the next run tries again."


@dataclass(frozen=True, slots=True)
class Bounds:
    """
    The limits of one body.

    Attributes:
        size: The most bytes of a content that goes to disk.
        rate: The least bytes a second, over each `window` seconds; 0: no limit.
        seconds: The longest time that a body may take in all; 0: no limit.
    """

    size: int = 16 * 2**30
    rate: int = 512
    window: float = 30.0
    seconds: float = 1800.0


class Pace:
    """
    The measured size and speed of one body. Only the time spent waiting for the server counts, not the time that its bytes take to process.

    Args:
        what: The name of the body in messages.
        clock: Returns monotonic seconds.
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
        Count `size` bytes that arrived after `waited` seconds.

        Raises:
            PeerUnreachable: the body arrives too slowly, or takes too long in all.
            TooLarge: the body is larger than allowed.
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
            raise PeerUnreachable(f"{self.what} did not arrive within {bounds.seconds:g} seconds: only {self._size} bytes did", hint=HINT)
        if self._window_waited >= bounds.window:
            if self._window_size < bounds.rate * self._window_waited:
                rate = self._window_size / self._window_waited
                raise PeerUnreachable(f"{self.what} arrives too slowly: {rate:.0f} bytes a second, {self._size} in all", hint=HINT)
            self._window_size, self._window_waited = 0, 0.0

    async def watch(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the same chunks; raise the errors of `add`."""
        while True:
            began = self._clock()
            chunk = await anext(chunks, None)
            if chunk is None:
                return
            self.add(len(chunk), self._clock() - began)
            yield chunk

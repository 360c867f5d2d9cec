"""The garbage collector of a long-lived process."""

from __future__ import annotations

import gc


def settle(*, circles: bool = False) -> None:
    """
    Tell the garbage collector that what is loaded now stays.

    It then looks at new objects only, and seldom: work makes many that live until its end, and breaks its own circles. Looking
    at all of them stops every thread of the process, the one with the event loop included.

    Args:
        circles: the work leaves some, as connections and errors do: it looks again at what has lived a little, or they would
            stay for as long as the process.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*((10_000, 5, 2) if circles else (50_000, 20, 100)))


__all__ = ["settle"]

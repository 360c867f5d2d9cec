"""What goes on at the same time as the thing that is tested."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def meanwhile(action: Callable[[], object]) -> Iterator[None]:
    """`action` again and again, in another thread."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                action()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(10)
        assert not thread.is_alive()

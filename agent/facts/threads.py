"""Blocking code with a deadline, in a thread that cannot prevent the process from exiting."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def run_in_thread(work: Callable[[], T], *, seconds: float, name: str) -> T:
    """
    Return the result of `work`; raise TimeoutError after `seconds`, or the exception of `work`.

    It runs in a daemon thread, not in the loop's pool: one that hangs (a name server, a dead mount) is abandoned and ends with the process.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as err:  # noqa: BLE001  # handed over to the waiter
            error = err
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    threading.Thread(target=run, name=name, daemon=True).start()
    async with asyncio.timeout(seconds):
        return await done

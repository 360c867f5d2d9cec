"""
`python -m store.process.child`: the store of a master, which starts it, sends it its settings, and stops it when it ends.

The first line of standard input is the settings in JSON; a line on standard output means that the store listens, and logs go to
standard error. The input ends with the master, whatever ends that, and the store with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys

from shared.process import log as logs
from shared.process.daemon import give_way
from shared.process.logqueue import queued
from shared.process.memory import use_single_malloc_arena
from shared.settings import MasterSettings

from .service import StopRequest, exit_code, serve

READY = b"ready\n"
"""The store's output once it listens."""

MAX_SETTINGS = 1024 * 1024  # bytes
THREADS = 8


def main() -> int:
    """Run the store of the master at the other end of standard input; return the exit code."""
    import setproctitle
    import uvloop

    use_single_malloc_arena()
    os.umask(0o077)
    line = sys.stdin.buffer.readline(MAX_SETTINGS)
    if not line.endswith(b"\n"):
        return 1  # the master has ended already
    settings = MasterSettings.model_validate(json.loads(line))
    ready = os.dup(1)
    os.dup2(2, 1)  # the console's log, which the master must not take for its answer
    logs.set_up_by(settings, foreground=not settings.daemonize, ident="puppet-store")
    give_way(settings.store_niceness)
    setproctitle.setproctitle("puppet db: the store of a master")
    with queued(settings.log_queue) as queues:
        code = exit_code(lambda: uvloop.run(_serve(settings, ready)))
    if queues.stuck:
        os._exit(code)  # an orderly end waits for the destination that nobody reads
    return code


async def _serve(settings: MasterSettings, ready: int) -> int:
    request, input_reader = StopRequest(), asyncio.StreamReader()
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(input_reader), sys.stdin)
    try:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(_stop_with_master(input_reader, request))
            code = await serve(settings, request, THREADS, on_ready=lambda: _say_ready(ready))
            watch.cancel()
        return code
    finally:
        pipe.close()


def _say_ready(ready: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # the end of the input says the same
        os.write(ready, READY)


async def _stop_with_master(input_reader: asyncio.StreamReader, request: StopRequest) -> None:
    """Wait for the end of the input, which the master closes to stop the store, and the kernel when the master has been killed."""
    await input_reader.read()
    request.stop("The store is stopping because the master is")


if __name__ == "__main__":
    sys.exit(main())

"""The end of a master that cannot stop, because of a thread that cannot be interrupted or a parse that does not return."""

from __future__ import annotations

import concurrent.futures.thread
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from shared.process.logqueue import LogQueues

log = logging.getLogger("puppet.master")

GRACE = 5.0  # seconds after drain_timeout: for cutting connections, ending processes, writing logs
KERNEL_GRACE = 3.0  # seconds after that for the thread below, until the kernel ends the process
OVERDUE = 75  # EX_TEMPFAIL of sysexits.h
_FLUSH = 1.0  # seconds for the lines that wait
_MAX_THREADS = 10  # threads in the log line
_ROOT = Path(__file__).parents[2]
_POOL = Path(concurrent.futures.thread.__file__)


class HardEnd:
    """
    Ends the process at a given time, even if its threads hang.

    Args:
        log_queues: The queues that are written out before the end, within a second.
        clean_up: Is called before the end, for example to remove a pid file.
    """

    def __init__(self, log_queues: LogQueues, clean_up: Callable[[], object]) -> None:
        self._log_queues = log_queues
        self._clean_up = clean_up
        self._disarmed = threading.Event()
        self._thread: threading.Thread | None = None

    def arm(self, seconds: float) -> None:
        """End the process in this many seconds; a second call changes the time. Must be called in the main thread."""
        self.disarm()
        self._disarmed = threading.Event()
        # A thread that holds the interpreter's lock lets no other one run. The kernel needs none.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds + KERNEL_GRACE)
        self._thread = threading.Thread(target=self._wait, args=(seconds, self._disarmed), name="hard end", daemon=True)
        self._thread.start()

    def disarm(self) -> None:
        """Cancel the end of the process."""
        if self._thread is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._disarmed.set()
            self._thread.join()
            self._thread = None

    def _wait(self, seconds: float, called_off: threading.Event) -> None:
        if called_off.wait(seconds):
            return
        log.critical("Stopping took too long: this master exits now. It was waiting for %s", "; ".join(busy_threads()) or "no thread")
        self._clean_up()
        for handler in self._log_queues.handlers.values():
            handler.finish(_FLUSH / len(self._log_queues.handlers))
        os._exit(OVERDUE)


def busy_threads() -> list[str]:
    """Return a description of each thread that a process waits for at its end, except for the main one and idle ones."""
    frames = sys._current_frames()
    threads = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    places = [(thread.name, _place(frames[thread.ident])) for thread in threads if thread.ident in frames]
    return [f"{name} in {place}" for name, place in places if place][:_MAX_THREADS]


def _place(frame: FrameType) -> str:
    """Return the innermost function of a thread and the innermost one of this program, '' for a thread of a pool with nothing to do."""
    calls = [(Path(caller.f_code.co_filename), caller.f_code.co_name, line) for caller, line in traceback.walk_stack(frame)]
    innermost = calls[0]
    if innermost[:2] == (_POOL, "_worker"):
        return ""
    own = next((call for call in calls if call[0].is_relative_to(_ROOT) and "site-packages" not in call[0].parts), innermost)
    return " called by ".join(f"{name} ({path.name}, line {line})" for path, name, line in dict.fromkeys((innermost, own)))

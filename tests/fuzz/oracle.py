"""Asks the reference implementation and our compiler, many questions at a time."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import selectors
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

from tests.conformance import runner
from tests.gate import caches

__all__ = ["Reference", "our_answer", "reference_is_here", "stdlib_folder"]

SCRIPT = Path(__file__).parent / "oracle.rb"
QUESTIONS_OF_A_PROCESS = 1500
"""After so many the Ruby process is replaced, as it keeps something of every environment."""
REFERENCE_SECONDS = 120.0
OUR_SECONDS = 20.0
STDLIB_FOLDERS = (Path("/usr/share/puppet/modules"), caches.folder("stdlib"))


def reference_is_here() -> bool:
    """Whether this machine has Ruby with Debian's Puppet 7.23."""
    ruby = shutil.which("ruby")
    if ruby is None:
        return False
    program = "require 'puppet/version'; exit Puppet.version == '7.23.0'"
    return subprocess.run([ruby, "-e", program], check=False, capture_output=True, timeout=60).returncode == 0


def stdlib_folder() -> str | None:
    """The folder of modules that holds the reference's stdlib, or None: its topics are then left out."""
    return next((str(folder) for folder in STDLIB_FOLDERS if (folder / "stdlib" / "metadata.json").is_file()), None)


class ReferenceProcess:
    """One Ruby with Puppet loaded; it is replaced when it dies, hangs or has answered many questions."""

    def __init__(self, modules: str | None) -> None:
        self._command = ["ruby", str(SCRIPT), *([modules] if modules else [])]
        self._process: subprocess.Popen[bytes] | None = None
        self._asked = 0

    def ask(self, case: Mapping[str, object]) -> dict[str, Any]:
        """The answer to one case; that it gave none is an answer with the class `NoAnswer`."""
        if self._process is not None and self._asked >= QUESTIONS_OF_A_PROCESS:
            self.close()
        process = self._process or self._start()
        self._asked += 1
        assert process.stdin is not None and process.stdout is not None
        line = b""
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(case).encode() + b"\n")
            process.stdin.flush()
            if _is_readable(process.stdout, REFERENCE_SECONDS):
                line = process.stdout.readline()
        if not line:
            self.close()
            return {"error": "The reference gave no answer", "class": "NoAnswer", "logs": []}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self._asked = 0
        return self._process

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _is_readable(stream: Any, seconds: float) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        return bool(selector.select(seconds))


class Reference:
    """Some processes of the reference, which answer side by side; a context manager."""

    def __init__(self, processes: int, modules: str | None) -> None:
        self._free: queue.SimpleQueue[ReferenceProcess] = queue.SimpleQueue()
        self._processes = [ReferenceProcess(modules) for _ in range(processes)]
        for process in self._processes:
            self._free.put(process)
        self._threads = ThreadPoolExecutor(processes)

    def __enter__(self) -> Reference:
        return self

    def __exit__(self, *exception: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        for process in self._processes:
            process.close()

    def answers(self, cases: Sequence[Mapping[str, object]]) -> Iterator[dict[str, Any]]:
        """The answers to the cases, in their order; all are asked at once, while the caller does something else."""
        futures = [self._threads.submit(self._ask, case) for case in cases]
        return (future.result() for future in futures)

    def _ask(self, case: Mapping[str, object]) -> dict[str, Any]:
        process = self._free.get()
        try:
            return process.ask(case)
        finally:
            self._free.put(process)


SITE_MODULES = "old"
"""The folder of an environment that stands for the one with the reference's stdlib; answers of both sides name it so."""


@lru_cache(maxsize=1)
def _stdlib_files() -> dict[str, str]:
    """The manifests of the reference's stdlib, and metadata by which our bundled one knows that the site's is older than itself."""
    files = {"environment.conf": f"modulepath = modules:{SITE_MODULES}\n"}
    files[f"{SITE_MODULES}/stdlib/metadata.json"] = json.dumps({"name": "puppetlabs-stdlib", "version": "8.5.0"})
    modules = stdlib_folder()
    if modules is not None:
        for path in sorted((Path(modules) / "stdlib" / "manifests").glob("*.pp")):
            files[f"{SITE_MODULES}/stdlib/manifests/{path.name}"] = path.read_text()
    return files


def _with_stdlib_of_the_reference(case: Mapping[str, object]) -> Mapping[str, object]:
    """The case with what a site with the reference's stdlib has on its module path, but for the functions."""
    files = case.get("files")
    return case if not case.get("stdlib") or not isinstance(files, dict) else {**case, "files": _stdlib_files() | files}


class OutOfTime(BaseException):
    """Our compiler took longer than OUR_SECONDS; no `except Exception` on the way holds it up."""


def _run_out(number: int, frame: FrameType | None) -> None:
    raise OutOfTime


def our_answer(case: Mapping[str, object]) -> dict[str, Any]:
    """What our compiler answers, in the form of the recordings; only in the main thread, whose alarm ends what takes too long."""
    assert threading.current_thread() is threading.main_thread(), "alarms are for the main thread"
    before = signal.signal(signal.SIGALRM, _run_out)
    signal.setitimer(signal.ITIMER_REAL, OUR_SECONDS)
    limit = sys.getrecursionlimit()
    try:
        return runner.answer(_with_stdlib_of_the_reference(case)).data
    except OutOfTime:
        return {"error": f"CRASH no answer in {OUR_SECONDS:.0f} s", "logs": []}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.setrecursionlimit(limit)

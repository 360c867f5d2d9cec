"""
A pool of processes that compile: plain data in, plain data and bytes out; the event loop never computes.

A process that dies, hangs or has grown is replaced. Its job is given to another process once, unless the job made it hang: a compile has
no effect but its answer.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from environments.directories import Environments
from shared.errors import CompileError, PuppetError, Unavailable, Unsupported
from shared.process.log import LEVELS
from shared.process.supervision import Supervisor

from ..observability.catalog_origins import MEMORY
from ..observability.longtasks import RETIRE_WORKER, master_supervisor
from ..observability.metrics import Metrics
from . import frames
from .jobs import CompileLogEntry
from .worker_process import Worker, start_failure

log = logging.getLogger("puppet.compiler")

GRACE = 2.0  # seconds after compile_timeout in which a process may report itself that it took too long, and where; then it is killed
SELF_TEST = 20.0  # seconds for a process to compile a minimal catalog on a busy machine
MAX_SERVED = 20_000  # nodes whose last process is remembered


REASONS = ("abandoned", "died", "hung", "jobs", "memory", "reload")  # why processes are replaced


OnQuestion = Callable[[Mapping[str, Any]], Awaitable[bytes]]


async def refuse_question(question: Mapping[str, Any]) -> bytes:
    """Raise Unsupported: there is no PuppetDB."""
    raise Unsupported("There is no PuppetDB to ask here")


def log_problem(problem: str) -> None:
    if problem:
        log.error("%s", problem)


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """What a process has answered: plain data, and the bytes behind it."""

    message: Mapping[str, Any]
    body: bytes


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """
    What the settings say of a pool.

    Attributes:
        size: The most processes.
        timeout: Seconds for one answer.
        memory: Bytes for one process beyond its size at the start.
        queue: How many questions may wait.
        cache: The folder of generated code; None: it is not kept.
        memo: Bytes of catalogs that each process caches.
        jobs: After how many jobs a process is replaced; 0: never.
        start_as: User and group of the processes, when they differ from the master's.
        records: The descriptor of a socket to which the processes send what catalogs depended on (see `dependencies.recorder`).
    """

    size: int
    timeout: float
    memory: int
    queue: int
    cache: Path | None
    memo: int = 0
    jobs: int = 0
    start_as: tuple[int, int] | None = None
    records: int | None = None


class _WorkerLost(Exception):
    """A process ended in the middle of a job that another may well do; `error` is for the caller if the second one ends, too."""

    def __init__(self, error: PuppetError) -> None:
        super().__init__(str(error))
        self.error = error


class _Overdue(CompileError):
    """A compile that took longer than it may."""


class ProcessPool:
    """
    Up to `options.size` processes, started when they are needed; `warm` starts the first at once.

    Attributes:
        waiting: How many questions have no process yet.
        ended: How many processes were replaced, by reason.
        problem: Why no process could be started or compile a minimal catalog at the last attempt; '' when it succeeded, None before.

    Args:
        command: Starts a process; (): a compiling one.
        on_answer: Called after each question with its outcome (done, memory, failed, timeout, died) and the seconds it took;
            memory: the catalog came from the cache.
        on_problem: Called with `problem` when it changes; by default it is logged.
        on_question: Answers what a compilation asks a PuppetDB (see `puppetdb.queries`).
    """

    CONDITION = "compiling"

    def __init__(
        self,
        environments: Environments,
        options: PoolOptions,
        *,
        command: Sequence[str] = (),
        delay: Callable[[], float] = random.random,
        on_answer: Callable[[str, float], None] = lambda how, seconds: None,
        supervisor: Supervisor | None = None,
        on_problem: Callable[[str], None] = log_problem,
        on_question: OnQuestion = refuse_question,
    ) -> None:
        self.environments = environments
        self.options = options
        self.timeout = options.timeout
        self.command = command
        self.delay = delay
        self.on_answer = on_answer
        self.supervisor = supervisor or master_supervisor()
        self.on_problem = on_problem
        self.on_question = on_question
        self.problem: str | None = None
        self.waiting = 0
        self.ended: Counter[str] = Counter()
        self.warnings: set[str] = set()  # about what the processes lack; each is logged once
        self._setup = {
            "settings": asdict(environments.settings),
            "cache": str(options.cache) if options.cache else "",
            "memory": options.memory,
            "memo": options.memo,
        }
        self._descriptors = () if options.records is None else (options.records,)
        if options.records is not None:
            self._setup["records"] = options.records
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        self._starting: set[asyncio.Future[None]] = set()  # done when a process is there, or cannot be started
        # The process that served a node last, which may have its catalog in its cache.
        self._served: OrderedDict[str, Worker] = OrderedDict()
        self._slots = asyncio.Semaphore(options.size)
        self._round = 0
        self._failed_starts = 0  # in succession
        self._closed = False

    @property
    def alive(self) -> int:
        """How many processes there are."""
        return sum(worker.alive for worker in self._all)

    @property
    def busy(self) -> int:
        """How many processes are at work."""
        return len(self._all) - len(self._idle)

    def describe(self, metrics: Metrics) -> None:
        """Have what there is to know of the processes in the metrics."""
        metrics.read("puppet_compiles_waiting", "gauge", "Catalogs that wait for a process.", lambda: [((), self.waiting)])
        metrics.read(
            "puppet_compile_workers",
            "gauge",
            "Compiling processes.",
            lambda: [(("busy",), self.busy), (("idle",), len(self._idle))],
            "state",
        )
        metrics.read(
            "puppet_compile_workers_replaced_total",
            "counter",
            "Compiling processes that were replaced.",
            lambda: [((reason,), self.ended[reason]) for reason in REASONS],
            "reason",
        )

    async def warm(self) -> None:
        """Have one process ready, unless all are at work; a failure is only logged, the first compile will say it again."""
        if self._slots.locked():
            return
        try:
            async with self._slots:
                self._idle.append(await self._take_worker())
        except (PuppetError, _WorkerLost) as err:
            log.error("%s", err)

    async def self_test(self) -> None:
        """
        Have a process compile next to nothing, so that `problem` is of now. While all are at work there is nothing to find out.

        What one process cannot do, another may try: the first may have been killed while it was idle.
        """
        if self._slots.locked():
            return
        async with self._slots:
            problem = ""
            for _ in range(2):
                try:
                    worker = await self._take_worker()
                except _WorkerLost:
                    continue  # after the second one `problem` says why
                except PuppetError:
                    return
                problem = await self._test(worker)
                if not problem:
                    return
            if problem:
                self._set_problem(problem)

    async def _test(self, worker: Worker) -> str:
        """Return why a process, which is ended then, does not compile next to nothing; '' when it does."""
        question = {"ask": "self_test", "generation": self.environments.generation, "seconds": SELF_TEST, "what": "A self-test"}
        try:
            async with asyncio.timeout(SELF_TEST + GRACE):
                await worker.ask(question)
                await self._receive_answer(worker, None, SELF_TEST)
        except TimeoutError:
            await self._drop(worker, "hung")
            return f"a process did not compile next to nothing within {SELF_TEST:g} seconds"
        except PuppetError as err:
            await self._drop(worker, "died")
            return f"a process did not compile next to nothing: {err}"
        except (asyncio.IncompleteReadError, ConnectionError):
            await self._let_end(worker, "died")
            return f"a process ended with {worker.process.returncode} instead of compiling next to nothing"
        except BaseException:
            await self._drop(worker, "abandoned")
            raise
        worker.answered -= 1  # a self-test does not count as a job
        self._put_back(worker)
        return ""

    def _set_problem(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self.on_problem(problem)

    async def ask(self, question: dict[str, Any], subject: str, log_entries: list[CompileLogEntry] | None = None) -> WorkerAnswer:
        """Return the answer to a question; messages call what is asked for `subject`."""
        if self.waiting >= self.options.queue:
            raise Unavailable(f"{self.waiting} catalogs wait to be compiled", retry_after=5 + int(self.delay() * 55))
        message = question | {"generation": self.environments.generation, "seconds": self.timeout, "what": subject}
        self.waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self.waiting -= 1
        began, outcome = time.monotonic(), "failed"
        try:
            try:
                answer, outcome = await self._ask_worker(message, subject, log_entries)
            except _WorkerLost as lost:
                log.warning("%s; another process is asked", lost.error)
                answer, outcome = await self._ask_worker(message, subject, log_entries)
            return answer
        except _WorkerLost as lost:
            outcome = "died"
            raise lost.error from lost
        except _Overdue:
            outcome = "timeout"
            raise
        finally:
            self._slots.release()
            self.on_answer(outcome, time.monotonic() - began)

    async def _ask_worker(
        self, message: dict[str, Any], subject: str, log_entries: list[CompileLogEntry] | None
    ) -> tuple[WorkerAnswer, str]:
        if log_entries is not None:
            log_entries.clear()  # these entries are of a process that was lost
        node = str(message.get("certname", ""))
        worker = await self._take_worker(node)
        try:
            async with asyncio.timeout(self.timeout + GRACE):
                await worker.ask({**message, "debug": log_entries is not None or log.isEnabledFor(LEVELS["debug"])})
                answer = await self._receive_answer(worker, log_entries, self.timeout)
        except TimeoutError:
            await self._drop(worker, "hung")
            raise _Overdue(
                f"{subject} took longer than compile_timeout ({self.timeout:g} seconds)",
                hint="Raise it, or look for an endless loop.",
            ) from None
        except (asyncio.IncompleteReadError, ConnectionError) as err:
            # It is ending: to kill it as well would hide its exit code from the loop.
            await self._let_end(worker, "died")
            raise _WorkerLost(PuppetError(f"{subject} could not be made: its process ended with {worker.process.returncode}")) from err
        except PuppetError as err:
            if worker.in_step and not worker.spent:
                self._put_back(worker)
                raise
            await self._drop(worker, "memory" if worker.spent else "died")
            if not worker.in_step:
                raise _WorkerLost(PuppetError(f"{subject} could not be made: {err.message}")) from err
            if worker.answered:  # what earlier jobs left may have been too much
                raise _WorkerLost(err) from err
            raise
        except BaseException:
            # The caller was cancelled; the process still works on the answer.
            await self._drop(worker, "abandoned")
            raise
        self._put_back(worker)
        if node:
            self._served[node] = worker
            self._served.move_to_end(node)
            if len(self._served) > MAX_SERVED:
                self._served.popitem(last=False)
        return answer

    async def _receive_answer(self, worker: Worker, log_entries: list[CompileLogEntry] | None, seconds: float) -> tuple[WorkerAnswer, str]:
        """Return an answer and its outcome; what the compilation asks in between is answered within `seconds` of now."""
        until = asyncio.get_running_loop().time() + seconds
        while True:
            message, body = await worker.next()
            if "log" in message:
                level, text, source, file, line = message["log"]
                if log_entries is not None:
                    log_entries.append(CompileLogEntry(level, text, source, file, line, datetime.now(UTC)))
                log.log(LEVELS.get(level, LEVELS["notice"]), "%s", text, extra={"source": source})
            elif "questions" in message:
                await self._answer_questions(worker, message["questions"], until)
            elif "done" in message:
                worker.check_answer(message)
                return WorkerAnswer(message, body), "memory" if message.get("origin") == MEMORY else "done"
            else:
                worker.check_answer(message)
                worker.spent = bool(message.get("last"))
                error = frames.error_of(message)
                raise _Overdue(error.message, where=error.where, hint=error.hint) if message.get("overtime") else error

    async def _answer_questions(self, worker: Worker, questions: Sequence[Mapping[str, Any]], until: float) -> None:
        """Send a process the answers, in order, to what a compilation asks a PuppetDB, or why there is none."""
        for message, body in await asyncio.gather(*(self._answer_question(question, until) for question in questions)):
            await worker.send(message, body)

    async def _answer_question(self, question: Mapping[str, Any], until: float) -> tuple[dict[str, Any], bytes]:
        try:
            async with asyncio.timeout_at(until):
                return {"answer": True}, await self.on_question(question)
        except TimeoutError:
            late = PuppetError(f"The PuppetDB did not answer within compile_timeout ({self.timeout:g} seconds)")
            return frames.plain_error(late), b""
        except PuppetError as err:
            return frames.plain_error(err), b""

    def _put_back(self, worker: Worker) -> None:
        """Keep the process for the next question, unless it has done its share or was started before the last `renew`."""
        worker.answered += 1
        self._set_problem("")
        if worker.round != self._round:
            self._retire(worker, "reload")
        elif self.options.jobs and worker.answered >= self.options.jobs:
            self._retire(worker, "jobs")
        else:
            self._idle.append(worker)

    def renew(self) -> None:
        """Replace all processes: those that are idle now, the others after their answer."""
        self._round += 1
        idle, self._idle = self._idle, []
        for worker in idle:
            self._retire(worker, "reload")

    def _retire(self, worker: Worker, reason: str) -> None:
        """Let an idle process go; nobody waits for its end."""
        self._end(worker, reason, worker.finish())

    async def _let_end(self, worker: Worker, reason: str) -> None:
        """Wait for the end of a process that ends by itself."""
        await asyncio.shield(self._end(worker, reason, worker.finish()))

    async def _drop(self, worker: Worker, reason: str) -> None:
        await asyncio.shield(self._end(worker, reason, worker.kill()))

    def _end(self, worker: Worker, reason: str, ending: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Have a process end, also if whoever waits for that is cancelled; `close` waits, too."""
        self._all.discard(worker)
        self.ended[reason] += 1
        task = self.supervisor.spawn(RETIRE_WORKER, ending)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        return task

    async def _take_worker(self, node: str = "") -> Worker:
        """Return a process: the one that had the node last if it is idle, else any."""
        last = self._served.get(node)
        if last is not None and last in self._idle:
            self._idle.remove(last)
            self._idle.append(last)
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                return worker
            self._retire(worker, "died")
            log.warning("An idle compiling process ended with %s; another takes its place", worker.process.returncode)
        if self._closed:
            raise Unavailable("The master is stopping")
        started_in = self._round
        try:
            worker = await self._start()
        except (PuppetError, OSError, asyncio.IncompleteReadError) as err:
            if self._closed:
                raise Unavailable("The master is stopping") from err
            retried = not isinstance(err, TimeoutError | PuppetError)  # after the other errors the next process would fail in the same way
            self._failed_starts += 1
            if not retried or self._failed_starts > 1:
                self._set_problem(f"a compiling process could not be started: {start_failure(err)}")
            error = PuppetError("A compiling process could not be started", hint="See the master's log.")
            raise (_WorkerLost(error) if retried else error) from err
        self._failed_starts = 0
        if worker.warning and worker.warning not in self.warnings:
            self.warnings.add(worker.warning)
            log.warning("%s", worker.warning)
        worker.round = started_in
        return worker

    async def _start(self) -> Worker:
        """Return a process that is ready; `close` knows it while it gets ready. Raises as Worker.start and Worker.set_up."""
        started = asyncio.get_running_loop().create_future()
        self._starting.add(started)
        try:
            worker = await Worker.start(self.options.start_as, self.command, self._descriptors)
            self._all.add(worker)
        finally:
            self._starting.discard(started)
            started.set_result(None)
        try:
            await worker.set_up(self._setup)
        except BaseException as err:
            await self._drop(worker, "died" if isinstance(err, Exception) else "abandoned")
            raise
        return worker

    async def close(self) -> None:
        """End all processes."""
        self._closed = True
        while self._starting:
            await asyncio.wait(self._starting)
        idle, self._idle = self._idle, []
        working = self._all - set(idle)
        await asyncio.gather(*(worker.finish() for worker in idle), *(worker.kill() for worker in working), *self._leaving)
        while self._leaving:  # of questions whose processes were killed just now
            await asyncio.gather(*self._leaving)
        self._all.clear()

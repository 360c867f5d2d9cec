"""
The process that compiles: `python -I -m master.pools.compile_worker`, started by the pool in `compile_pool`.

It reads one job after another from its standard input and answers on its standard output. Between jobs it keeps
definitions of environments, compiled code, and catalogs (`memo`).
"""

from __future__ import annotations

import gc
import itertools
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

from environments.directories import Environment, EnvironmentSettings
from environments.directory_environment import DirectoryEnvironment
from environments.files.code_files import TrackedFiles
from environments.files.export_keys import ExportKeys
from environments.listings.environment import Listings
from environments.listings.resource_types import ResourceTypes
from environments.loaded import LoadedEnvironment, LoadedEnvironments
from environments.revisions import Revisions
from environments.store_questions import AskPuppetDb, Question
from language.codegen.codecache import CodeCache
from language.errors.locations import FINAL, current_place, place_of
from language.evaluation.compile import compile_catalog
from language.evaluation.dependencies import NodeDependencies
from language.evaluation.runtime import NAMES
from language.host import NodeInput
from language.loading.loader import Loader
from language.log import LogEntry
from language.syntax.checker import Diagnostic as Finding
from shared.data import plainjson, plainyaml
from shared.errors import BadData, BadRequest, CompileError, EvaluationError, Location, PuppetError
from shared.filesystem.files import write_all
from shared.pattern_timeout import PATTERN_TIMEOUT
from shared.process.memory import freeze_loaded_objects, keep_memory_of_bodies, lift_memory_limit, limit_memory
from shared.process.processes import end_with_parent
from shared.wire.packed_catalogs import PackedCatalog

from ..dependencies.compiled_from import CompiledFrom
from ..dependencies.recorded_environment import RecordedEnvironment
from ..dependencies.recorder import RecordSender
from ..dependencies.records import sealed_calls
from ..puppetdb.catalog import catalog_for_agent, stored_catalog
from . import frames
from .catalog_cache import CachedCatalog, CatalogCache
from .compiled_catalog import CompiledCatalog

NOWHERE = "/nonexistent"
MAX_REASON = 120  # characters
ATTEMPTS = 3  # to compile a catalog whose code changes in between


class CompileWorker:
    """The worker that does jobs one after another, with the environments that it has loaded."""

    def __init__(
        self,
        settings: EnvironmentSettings,
        code: CodeCache,
        *,
        memo: int = 0,
        ask_puppetdb: AskPuppetDb | None = None,
        records: RecordSender | None = None,
    ) -> None:
        self._log: Callable[[LogEntry], None] = lambda entry: None
        self.code = code
        self.records = records
        host_class = RecordedEnvironment if memo or records is not None else DirectoryEnvironment
        self.environments = LoadedEnvironments(settings, self.code, log=self._log_finding, ask_puppetdb=ask_puppetdb, host_class=host_class)
        self.types = ResourceTypes(self.environments.directories, lambda level, text: self._log(LogEntry(level, text)))
        self.listings = Listings(self.environments.directories, self._log_finding)
        self.memo = CatalogCache(memo)
        self.revisions = Revisions()
        self.generation = 0
        self.failed = False  # whether the last job failed
        self.reasons: list[tuple[str, str]] = []  # places in code and texts: why the last catalog would not be the same again

    def _log_finding(self, level: str, finding: Finding | str) -> None:
        if isinstance(finding, str):
            self._log(LogEntry(level, finding))
        else:
            self._log(LogEntry(level, finding.message, finding.where))

    def answer(self, job: Mapping[str, Any], log: Callable[[LogEntry], None]) -> CompiledCatalog | bytes:
        """Return the catalog that a job asks for, or the JSON that any other one asks for; PuppetError."""
        self._log = log
        # HUP or the admin API raised the generation since the last job.
        if job["generation"] != self.generation:
            self.forget()
            self.generation = job["generation"]
        if job["ask"] == "resource_types":
            return plainjson.dumps(self.types.answer(job))
        if job["ask"] == "listing":
            return self.listings.answer(job)
        if job["ask"] == "self_test":
            return self._self_test()
        return self._compile(job, log)

    def _self_test(self) -> bytes:
        """Compile a manifest that needs no environment, which shows whether this process can compile at all; return its catalog."""
        host = DirectoryEnvironment(Environment("production", NOWHERE, (), None), TrackedFiles(), code="notify { 'self-test': }")
        loader = Loader(host, NAMES, CodeCache(), log=self._log_finding, builtins=self.environments.functions)
        return plainjson.dumps(compile_catalog(host, loader, NodeInput("self-test"), version=0, log=self._log))

    def forget(self) -> None:
        """Read everything again at the next job."""
        self.environments.forget()
        self.types.forget()
        self.listings.forget()
        self.revisions.forget()
        self.memo.forget()

    def _compile(self, job: Mapping[str, Any], log: Callable[[LogEntry], None]) -> CompiledCatalog:
        """Return the catalog of a job, made of one version of the code: when files change in between, it is made again."""
        changed = ""
        for _ in range(ATTEMPTS):
            loaded = self.environments.get(job["environment"], job.get("pin", ""))
            with loaded.host.questions.record(), loaded.host.calls.record(job["certname"]):
                compiled, changed = self._answer_or_compile(loaded, job, log)
            if compiled is not None:
                return compiled
            self.environments.forget(loaded.environment.name)
            log(LogEntry("info", f"{changed} changed while the catalog of {job['certname']} was compiled; it is compiled again"))
        raise CompileError(
            f"{changed} or others changed each of the {ATTEMPTS} times that the catalog of {job['certname']} was compiled",
            hint="Deploy new code atomically, for example with 'puppet deploy'.",
        )

    def _answer_or_compile(
        self, loaded: LoadedEnvironment, job: Mapping[str, Any], log: Callable[[LogEntry], None]
    ) -> tuple[CompiledCatalog | None, str]:
        """Return a job's catalog, from memory if it would be the same; or None, and the file that changed in between."""
        node = node_input(job, loaded)
        code_id = self._code_id(loaded, job)
        try:
            cached = self.memo.get(
                loaded,
                node,
                code_id,
                are_answers_unchanged=loaded.host.questions.are_unchanged,
                exported=job["exported"],
                is_stored=job["is_stored"],
            )
        except Overtime as over:
            over.hint = "A PuppetDB, a program or Ruby did not answer the catalog's questions again in this time."
            raise
        self.reasons = []
        if cached is not None:
            compiled, logs = cached
            for entry in logs:
                log(entry)
            return compiled, ""
        changed_meanwhile = loaded.begin()
        outcome: tuple[CompiledCatalog, Callable[[], None]] | PuppetError
        try:
            outcome = self._compile_once(loaded, node, job, code_id, log)
        except PuppetError as err:
            # Kept, not raised: if the code changed meanwhile, the error may come from a mixture of two versions.
            outcome = err
        changed = changed_meanwhile()
        if changed:
            return None, changed
        # Tools such as r10k change files one after the other and the revision last.
        if self._code_id(loaded, job) != code_id:
            return None, f"The revision of {loaded.environment.root}"
        if isinstance(outcome, PuppetError):
            raise outcome
        compiled, remember = outcome
        remember()
        if self.memo.reasons:
            roots = loaded.host.own_roots()
            self.reasons = [(_short_place(reason.where, roots), reason.text[:MAX_REASON]) for reason in self.memo.reasons]
        return compiled, ""

    def _code_id(self, loaded: LoadedEnvironment, job: Mapping[str, Any]) -> str | None:
        """Return the version of the code for a job: from the site's program, or from the file that a deployment tool wrote."""
        code_id: str | None = job["code_id"]
        if code_id is None and self.environments.settings.revisions:
            return self.revisions.revision_of(loaded.files.pin or loaded.environment.root)
        return code_id

    def _compile_once(
        self, loaded: LoadedEnvironment, node: NodeInput, job: Mapping[str, Any], code_id: str | None, log: Callable[[LogEntry], None]
    ) -> tuple[CompiledCatalog, Callable[[], None]]:
        """Compile a node's catalog from a loaded environment; return it with a function that caches it."""
        log_entries: list[LogEntry] = []

        def record_entry(entry: LogEntry) -> None:
            log_entries.append(entry)
            log(entry)

        reads = NodeDependencies() if self.memo.limit or self.records else None
        if isinstance(loaded.host, RecordedEnvironment):
            loaded.host.inputs.begin()
        exported, is_stored = job["exported"], job["is_stored"]
        catalog = compile_catalog(
            loaded.host,
            loaded.loader,
            node,
            version=loaded.version,
            log=record_entry,
            rich=loaded.environment.rich_data,
            # A PuppetDB needs the exported resources even when the agent must not get them.
            exported=exported or is_stored,
            texts=is_stored,
            debug=job.get("debug", True),
            dependencies=reads,
        )
        catalog["code_id"] = code_id
        stored = PackedCatalog.of(self._stored(catalog, loaded, record_entry)).pack() if is_stored else b""
        if exported or is_stored:
            catalog = catalog_for_agent(catalog, exported=exported)
        compiled = CompiledCatalog.of(plainjson.dumps(catalog), stored, code_id)
        # Computed now, while the inputs of this compile are at hand; the next job overwrites them.
        made_of = CompiledFrom.of(loaded, reads, catalog) if reads is not None and not reads.uncacheable_reasons else None

        def remember() -> None:
            if reads is None:
                return
            calls, questions = loaded.host.calls.made(), loaded.host.questions.asked()
            if made_of is not None and self.records is not None and questions is not None:
                try:
                    sealed = sealed_calls(calls, node.certname, loaded.host.root, self.environments.settings.export_keys)
                except EvaluationError as err:  # previews say so, and compile the node
                    log(LogEntry("debug", err.message))
                    sealed = None
                if sealed is not None:
                    self.records.add(node.certname, made_of.record(reads, node, sealed, questions))
            if self.memo.limit:
                if questions is None:
                    reads.mark_uncacheable("asks a PuppetDB for too much, or what it did not answer", FINAL)
                cached = CachedCatalog(
                    loaded,
                    loaded.version,
                    reads,
                    code=made_of.code if made_of is not None else None,
                    values=reads.values(node),
                    files=loaded.live.take_seen(),
                    questions=questions or (),
                    calls=calls,
                    compiled=compiled,
                    uuid=catalog["catalog_uuid"],
                    logs=log_entries,
                )
                self.memo.put(cached, node, exported=exported)

        return compiled, remember

    def _stored(self, catalog: Mapping[str, Any], loaded: LoadedEnvironment, log: Callable[[LogEntry], None]) -> dict[str, Any]:
        """Return the form of a catalog for a PuppetDB; raise CompileError with the node's name."""
        path = self.environments.settings.export_keys
        keys = ExportKeys(Path(path)) if path else None
        try:
            return stored_catalog(catalog, loaded.host.types, keys, lambda text, where: log(LogEntry("warning", text, where)))
        except CompileError as err:
            err.node = catalog["name"]
            raise


def _short_place(where: Location | None, roots: Sequence[str]) -> str:
    """Return a place as `apache/templates/vhost.erb line 12`: a file in one of the folders is named as it is there."""
    if where is None or where.file is None:
        return ""
    path = next((where.file[len(root) :] for root in roots if where.file.startswith(root)), where.file)
    return f"{path[-MAX_REASON:]} line {where.line}" if where.line else path[-MAX_REASON:]


class PuppetDbQuestions:
    """Puts questions of a compilation to the process that started this one, which alone speaks to a PuppetDB."""

    def __init__(self, stdin: BinaryIO, send: Callable[[bytes], None]) -> None:
        self.stdin = stdin
        self.send = send

    def ask(self, questions: Sequence[Question]) -> list[bytes | PuppetError]:
        """
        Return the answers to questions, each of them JSON or an error.

        The master answers within compile_timeout. This process' own deadline waits until the answers are there: none may be left, as it
        would be taken for a job. After any other error the process ends.
        """
        data = frames.pack({"questions": questions})
        with _deadline_waits():
            self.send(data)
            try:
                return [self._read_answer() for _ in questions]
            except Exception as err:
                # The pipe is out of step; only a new process is safe.
                raise SystemExit(1) from err

    def _read_answer(self) -> bytes | PuppetError:
        frame = frames.read_with_body(self.stdin)
        if frame is None:
            raise SystemExit(0)  # the master has ended
        answer, body = frame
        return frames.error_of(answer) if "error" in answer else body


@contextmanager
def _deadline_waits() -> Iterator[None]:
    """Raise Overtime at the end of a context in which a `deadline` passes."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def with_parameters(job: dict[str, Any]) -> dict[str, Any]:
    """Return a job with all of its parameters, of which `message_of` left out the facts."""
    if job.get("layered"):
        job["parameters"] = {**job["facts"], **job["parameters"]}
    return job


def node_input(job: Mapping[str, Any], loaded: LoadedEnvironment) -> NodeInput:
    """Return the input of the compilation of a job."""
    return NodeInput.for_node(
        job["certname"],
        loaded.environment.name,
        facts=job["facts"],
        parameters=job["parameters"],
        classes=job["classes"],
        trusted=job["trusted"],
        server_facts=job["server_facts"],
    )


def serve(stdin: BinaryIO, send: Callable[[bytes], None], worker_class: type[CompileWorker] = CompileWorker) -> None:
    """Answer jobs until the input ends. The first message is the set-up."""
    setup = frames.read(stdin)
    if setup is None:
        return
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in setup["settings"].items()}
    settings = EnvironmentSettings(**values)  # JSON has no tuples
    PATTERN_TIMEOUT.set(settings.pattern_timeout)
    try:
        code, warning = CodeCache.at(Path(setup["cache"]) if setup["cache"] else None)
        records = RecordSender(socket.socket(fileno=setup["records"]).send) if "records" in setup else None
        bench = worker_class(settings, code, memo=int(setup["memo"]), ask_puppetdb=PuppetDbQuestions(stdin, send).ask, records=records)
    except PuppetError as err:
        send(frames.pack(frames.plain_error(err)))
        return
    # After the imports, because the limit counts from what the process has now.
    limit_memory(int(setup["memory"]))
    keep_memory_of_bodies()
    plainyaml.load_reader()
    # The code of the compiler lives for ever; the collector need not look at it in each pass.
    freeze_loaded_objects()
    send(frames.pack({"ready": os.getpid(), "warning": warning}))
    for number in itertools.count(1):
        try:
            frame = frames.read(stdin)
            if frame is None or frame.get("number") != number:
                return  # the end; or something else than a job, as an answer to what an earlier one asked
            job = with_parameters(frame)
        except BadData as err:
            # The job fails, not the process: another process would get the job and end in the same way.
            error = frames.plain_error(BadRequest(f"What is to be compiled cannot be read: {err.message}"))
            send(frames.pack({**error, "number": number}))
            continue
        send(answer(bench, job, send))
        # After the answer: the agent must not wait for the cache to reach the disk.
        bench.code.save()
        if records is not None:
            records.send()
        if bench.failed:
            # A compile that was aborted leaves reference cycles to the collector, which runs seldom.
            gc.collect()


def answer(bench: CompileWorker, job: Mapping[str, Any], send: Callable[[bytes], None]) -> bytes:
    """Return the last frame of a job: the catalog, or the error."""
    try:
        return _last_frame(bench, job, send)
    except MemoryError as err:  # of the job, or of the report that it failed otherwise
        # The memory is not given back: the pool replaces this process. To report the error, it needs some more.
        lift_memory_limit()
        error = CompileError(
            "The catalog needs more memory than compile_memory allows", where=place_of(err), hint="Raise it, or look for endless growth."
        )
        return frames.pack({**frames.plain_error(error), "last": True, "number": job["number"]})


def _last_frame(bench: CompileWorker, job: Mapping[str, Any], send: Callable[[bytes], None]) -> bytes:
    """Do the same as `answer`; raise MemoryError."""

    def log(entry: LogEntry) -> None:
        where = entry.where or Location(None)
        line = frames.pack({"log": [entry.level, entry.text, entry.source, where.file, where.line]})
        with _deadline_waits():
            send(line)

    def last(message: dict[str, Any], body: bytes = b"") -> bytes:
        return frames.pack({**message, "number": job["number"]}, body)

    try:
        with deadline(job["seconds"]):
            bench.failed = True
            answered = bench.answer(job, log)
            bench.failed = False
        if isinstance(answered, bytes):
            return last({"done": True}, answered)
        text = answered.text
        done: dict[str, Any] = {
            "done": True,
            "text": [len(text.head), len(text.rest), text.size, text.checksum],
            "code_id": answered.code_id,
            "rich": answered.is_rich,
            "origin": bench.memo.origin,
            "reasons": bench.reasons,
        }
        return last(done, text.head + text.rest + answered.stored)
    except PuppetError as err:
        return last(frames.plain_error(err))
    except Overtime as over:
        # It may have been in the middle of reading a file.
        bench.forget()
        message = f"{job['what']} took longer than compile_timeout ({job['seconds']:g} seconds)"
        error = CompileError(message, where=over.where, hint=over.hint)
        return last(frames.plain_error(error) | {"overtime": True})
    except MemoryError:  # not one of those below
        raise
    except RecursionError as err:
        return last(frames.plain_error(CompileError("A value is nested too deeply for a catalog", where=place_of(err))))
    except Exception as err:  # noqa: BLE001  # the job's outermost frame: another process would fail in the same way
        traceback.print_exc()
        bench.forget()  # it may have been in the middle of reading a file
        unforeseen = CompileError(
            f"An unforeseen error in the compiler ({type(err).__name__})", where=place_of(err), hint="The master's log has its traceback."
        )
        return last(frames.plain_error(unforeseen))


class Overtime(BaseException):
    """The error of a job that took too long. It is not a PuppetError, so that code that tolerates errors does not catch it."""

    def __init__(self, where: Location | None) -> None:
        super().__init__()
        self.where = where
        self.hint = "Raise it, or look for an endless loop in the code."


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise Overtime, at the place in a manifest that is being evaluated, when the body takes longer; in the main thread."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Overtime(current_place())

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def main(title: str = "compiling", worker_class: type[CompileWorker] = CompileWorker) -> int:
    """Run as a worker of the process that started this one, and end with it."""
    end_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe = os.dup(1)
    os.dup2(2, 1)  # printed output must not get into the answers

    def send(frame: bytes) -> None:
        write_all(pipe, frame)

    try:
        import setproctitle

        setproctitle.setproctitle(f"puppet master: {title}")
        serve(sys.stdin.buffer, send, worker_class)
    except BrokenPipeError:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""
The compiler for previews, in a process of its own.

It gets one node after another, compiles its catalog from one side, and from the other one as well unless all inputs of the catalog are
the same. Only differences leave the process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environments.comparison.catalogs import CatalogComparison, Diff, NodeWords, Place, SecretTexts
from environments.directories import read_environment
from environments.directory_environment import DirectoryEnvironment, EnvironmentServices
from environments.files.code_files import DiskFiles, TrackedFiles
from environments.loaded import LoadedEnvironment
from environments.repeated_calls import RepeatableCall, calls_from_data, calls_to_data
from environments.store_questions import AskedQuestion, AskPuppetDb, Question
from language.evaluation.compile import compile_catalog
from language.evaluation.dependencies import NodeDependencies
from language.log import LogEntry
from language.syntax.checker import Diagnostic as Finding
from language.values.core import ON_UNWRAP
from shared.data import plainjson
from shared.errors import PuppetError

from ..dependencies.answers import SideAnswers, are_equal, configuration
from ..dependencies.recorded_environment import RecordedEnvironment
from ..dependencies.records import CatalogRecord, CatalogRecords, digest_of_value, digest_of_values, opened_calls, sealed_calls
from ..pools.compile_worker import CompileWorker, Overtime, deadline, node_input
from ..pools.compiled_catalog import CompiledCatalog

FROM, TO = 0, 1
MAX_KNOWN = 50_000
"""Changes that the other process is known to have; then all are sent again."""
_WARNINGS = frozenset(("warning", "err", "alert", "crit", "emerg"))


@dataclass(frozen=True, slots=True)
class SideOutcome:
    """
    The result of a compilation from one side.

    Attributes:
        catalog, error: one of them.
        warnings: messages that it logged.
        unstable: the reason why the next compilation may give another catalog; '' when it cannot.
        reads: what was read of the node, when that, the code, calls and questions are all that the catalog depends on.
        calls: the calls whose results it depends on.
        questions: what it asked a PuppetDB.
    """

    catalog: dict[str, Any] | None
    error: dict[str, Any] | None
    warnings: Sequence[Mapping[str, Any]]
    unstable: str = ""
    reads: NodeDependencies | None = None
    calls: Sequence[RepeatableCall] = ()
    questions: Sequence[AskedQuestion] = ()


NOT_COMPILED = SideOutcome(None, None, ())


@dataclass(slots=True)
class CodeSide:
    """One side as it is loaded in this process."""

    loaded: LoadedEnvironment
    host: RecordedEnvironment
    answers: SideAnswers
    configuration: Any
    has_changed: Callable[[], str | None] = field(default=lambda: None)


class PreviewWorker(CompileWorker):
    """The worker that compiles nodes from both sides and answers with the differences."""

    def __init__(self, *args: Any, ask_puppetdb: AskPuppetDb | None = None, **options: Any) -> None:
        self._ask = ask_puppetdb
        self._answers: dict[bytes, bytes | PuppetError] = {}
        super().__init__(*args, ask_puppetdb=self._ask_once if ask_puppetdb is not None else None, **options)
        self._sides: list[CodeSide] = []
        self._job: Mapping[str, Any] = {}
        self._known: set[str] = set()
        self._comparison: CatalogComparison | None = None
        self._secrets = SecretTexts()  # of the catalogs of one node
        self._is_comparable = False
        self._number = FROM  # the side that is compiled from
        self._not_kept = ""  # why what catalogs depend on is not written
        self._findings: list[tuple[int, dict[str, Any]]] = []  # in files that were read for this node first

    def answer(self, job: Mapping[str, Any], log: Callable[[LogEntry], None]) -> CompiledCatalog | bytes:
        """Return what differs for the node of a job, as JSON (see `PreviewResult.add`)."""
        if job["ask"] != "preview":
            return super().answer(job, log)
        self._answers = {}
        self._findings = []
        if not self._sides or self._job.get("sides") != job["sides"]:
            self._job = job
            self._load(job["sides"])
        self._job = job
        self._secrets.clear()
        token = ON_UNWRAP.set(self._secrets.add)
        try:
            return plainjson.dumps(self._preview(job))
        finally:
            ON_UNWRAP.reset(token)

    def forget(self) -> None:
        super().forget()
        for side in self._sides:
            side.loaded.host.close()
        self._sides = []

    def _log_finding(self, level: str, finding: Finding | str) -> None:
        """Record the fault of a file, which is found only once, when it is read first."""
        if level in _WARNINGS and self._sides:
            text, place = (finding, None) if isinstance(finding, str) else (finding.message, finding.where)
            message = self._message(self._number, text, place.file if place else None, place.line if place else None)
            self._findings.append((self._number, message))

    # --- the sides ---

    def _load(self, sides: Mapping[str, Any]) -> None:
        self._sides = [self._side(sides["environment"], sides["roots"][number]) for number in (FROM, TO)]
        before, after = self._sides
        self._is_comparable = before.configuration == after.configuration
        sources = before.answers.sources, after.answers.sources
        self._comparison = CatalogComparison((before.host.root, after.host.root), sources, self._secrets)
        self._known = set()

    def _side(self, name: str, root: str) -> CodeSide:
        files = TrackedFiles()
        settings = self.environments.directories.settings
        environment = read_environment(name, root, files, settings)
        loaded = self.environments.load(environment, files, RecordedEnvironment)
        host = loaded.host
        assert isinstance(host, RecordedEnvironment)
        host.calls.results = {}
        plain = DirectoryEnvironment(environment, DiskFiles(), settings=host.settings(), services=EnvironmentServices(access=host.access))
        return CodeSide(loaded, host, SideAnswers(plain), configuration(environment, host.settings()))

    # --- one node ---

    def _preview(self, job: Mapping[str, Any]) -> dict[str, Any]:
        assert self._comparison is not None
        records = CatalogRecords(Path(job["records"])) if job["records"] else None
        if records is not None and self._is_unaffected_by(records.load(job["certname"])):
            return self._result("unaffected", NOT_COMPILED, NOT_COMPILED, {}, compilations=0)
        before = self._compile_side(FROM)
        if before.catalog is not None and not before.unstable:
            if records is not None:
                self._keep(records, before)
            if self._cannot_differ(before.calls):
                return self._result("unaffected", before, before, {}, compilations=1)
        after = self._compile_side(TO)
        changed = next((path for side in self._sides if (path := side.has_changed())), None)
        if changed is not None:
            return {"aborted": f"{changed} changed while nodes were compiled from it"}
        if before.catalog is None or after.catalog is None:
            state = "failed" if after.catalog is None else "fixed"
            return self._result(state, before, after, {}, compilations=2)
        words = NodeWords.of(job["certname"], job["facts"])
        differences = self._comparison.differences(before.catalog, after.catalog, words)
        unstable: dict[Place, str] = {}
        compilations = 2
        roots = [side.host.root for side in self._sides]
        calls = [_reason_of(outcome.calls, root) for outcome, root in zip((before, after), roots, strict=True)]
        reason = "; ".join(dict.fromkeys(filter(None, (before.unstable, after.unstable, *calls))))
        if differences and reason:
            for number, outcome in ((FROM, before), (TO, after)):
                again = self._compile_side(number)
                compilations += 1
                if again.catalog is not None and outcome.catalog is not None:
                    unstable |= dict.fromkeys(self._repeated(number, outcome.catalog, again.catalog, words), reason)
        stable = {place: difference for place, difference in differences.items() if not _is_unstable(place, unstable)}
        return self._result("changed" if stable else "unchanged", before, after, stable, compilations, unstable)

    def _repeated(self, number: int, catalog: Mapping[str, Any], again: Mapping[str, Any], words: NodeWords) -> dict[Place, Diff]:
        """Return the differences between two compilations from the same side."""
        side = self._sides[number]
        comparison = CatalogComparison((side.host.root, side.host.root), (side.answers.sources, side.answers.sources), self._secrets)
        return comparison.differences(catalog, again, words)

    def _cannot_differ(self, calls: Sequence[RepeatableCall]) -> bool:
        """
        Return whether the other side gives the same catalog, and the same files to it, since it answers all inputs and calls alike.
        """
        inputs = self._sides[FROM].host.inputs
        before, after = (side.answers for side in self._sides)
        return (
            self._is_comparable
            and are_equal(before, after, inputs.questions(), inputs.sources)
            and self._repeats(TO, calls_to_data(calls, self._sides[FROM].host.root))
        )

    def _repeats(self, number: int, calls: Any) -> bool:
        """Return whether calls (see `calls_to_data`), made again on one side, have the results that they had."""
        host = self._sides[number].host
        try:
            with deadline(self._job["each"]):
                return host.calls.are_unchanged(self._job["certname"], calls_from_data(calls, host.root))
        except Overtime:
            self._reload(number)
            return False

    def _record(self, outcome: SideOutcome) -> CatalogRecord | None:
        """Return the record of the catalog that was just compiled; None when it has none."""
        side, reads = self._sides[FROM], outcome.reads
        if reads is None:
            return None
        sealed = sealed_calls(outcome.calls, self._job["certname"], side.host.root, self.environments.settings.export_keys)
        if sealed is None:
            return None
        values = digest_of_values(reads, node_input(self._job, side.loaded))
        inputs = side.host.inputs.questions()
        name, sources = digest_of_value(side.configuration), tuple(side.host.inputs.sources)
        return CatalogRecord(reads, values, name, inputs, side.answers.digest(inputs), sources, sealed, tuple(outcome.questions))

    def _is_unaffected_by(self, record: CatalogRecord | None) -> bool:
        """Return whether a record shows, without a compilation, that both sides give the same catalog."""
        if record is None or not self._is_comparable:
            return False
        before, after = self._sides
        node = node_input(self._job, before.loaded)
        if not record.is_valid(node, digest_of_value(before.configuration), before.answers):
            return False
        if not are_equal(before.answers, after.answers, record.inputs, record.sources):
            return False
        with before.loaded.host.questions.record():
            if not before.loaded.host.questions.are_unchanged(record.questions):
                return False  # both sides would get other answers than the recorded ones, and the same
        if not record.calls:
            return True
        try:
            calls = opened_calls(record.calls, node.certname, self.environments.settings.export_keys)
        except PuppetError:
            return False  # of another master, or of a key that is gone
        return self._repeats(FROM, calls) and self._repeats(TO, calls)

    def _compile_side(self, number: int) -> SideOutcome:
        """Return the result of the job's node from one side."""
        job, side = self._job, self._sides[number]
        self._number = number
        host, loaded = side.host, side.loaded
        warnings: list[dict[str, Any]] = []

        def record(entry: LogEntry) -> None:
            if entry.level in _WARNINGS:
                file, line = (entry.where.file, entry.where.line) if entry.where else (None, None)
                warnings.append(self._message(number, entry.message, file, line))

        reads = NodeDependencies()
        host.inputs.begin()
        side.has_changed = loaded.begin()
        try:
            with loaded.host.questions.record(), loaded.host.calls.record(job["certname"]), deadline(job["each"]):
                catalog = compile_catalog(
                    host,
                    loaded.loader,
                    node_input(job, loaded),
                    version=0,
                    log=record,
                    rich=loaded.environment.rich_data,
                    debug=False,
                    dependencies=reads,
                )
                calls, questions = loaded.host.calls.made(), loaded.host.questions.asked()
        except PuppetError as err:
            file, line = (err.where.file, err.where.line) if err.where else (None, None)
            return SideOutcome(None, self._message(number, err.message, file, line, err.hint), warnings)
        except Overtime as over:
            file, line = (over.where.file, over.where.line) if over.where else (None, None)
            text = f"The catalog took longer than compile_timeout ({job['each']:g} seconds)"
            self._reload(number)
            return SideOutcome(None, self._message(number, text, file, line), warnings)
        host.finish_catalog(loaded.loader, reads, catalog)
        unstable = "; ".join(reason.text for reason in reads.uncacheable_reasons)
        is_known = not unstable and questions is not None
        return SideOutcome(catalog, None, warnings, unstable, reads if is_known else None, calls, questions or ())

    def _reload(self, number: int) -> None:
        """Reload a side, which may have been interrupted while reading a file."""
        side = self._sides[number]
        side.loaded.host.close()
        self._sides[number] = self._side(side.loaded.environment.name, side.host.root)

    # --- what is answered ---

    def _message(self, number: int, text: str, file: str | None, line: int | None, hint: str = "") -> dict[str, Any]:
        """Return a message in a form in which it is the same for other nodes and from the other side."""
        root, certname = self._sides[number].host.root, self._job["certname"]
        texts = [self._secrets.hide(part.replace(f"{root}/", "").replace(certname, "<node>")) for part in (text, hint)]
        short = file.removeprefix(f"{root}/") if file else None
        return {"message": texts[0], "file": short, "line": line, "hint": texts[1]}

    def _result(
        self,
        state: str,
        before: SideOutcome,
        after: SideOutcome,
        differences: Mapping[Place, Diff],
        compilations: int,
        unstable: Mapping[Place, str] | None = None,
    ) -> dict[str, Any]:
        if len(self._known) > MAX_KNOWN:
            self._known.clear()
        changes = [(key, values, change if key not in self._known else None) for key, values, change in differences.values()]
        self._known.update(key for key, _, _ in changes)
        errors = ([before.error] if before.error else [], [after.error] if after.error else [])
        return {
            "state": state,
            "compiled": after is not before,
            "compilations": compilations,
            "changes": changes,
            "errors": _with_states(*errors),
            "warnings": _with_states(before.warnings, after.warnings),
            "findings": self._findings,
            "not_kept": self._not_kept,
            "unstable": [
                {"subject": self._secrets.hide(subject), "parameter": parameter, "reason": reason}
                for (_, subject, parameter), reason in (unstable or {}).items()
            ],
        }

    def _keep(self, records: CatalogRecords, outcome: SideOutcome) -> None:
        try:
            if (record := self._record(outcome)) is not None:
                records.save(self._job["certname"], record.pack())
        except PuppetError as err:
            self._not_kept = str(err)  # a preview goes on without

    def _ask_once(self, questions: Sequence[Question]) -> Sequence[bytes | PuppetError]:
        """Return the answers of a PuppetDB, which are the same for all compilations of a node."""
        assert self._ask is not None
        keys = [plainjson.dumps_pson(dict(question)) for question in questions]
        missing = {key: question for key, question in zip(keys, questions, strict=True) if key not in self._answers}
        if missing:
            self._answers |= dict(zip(missing, self._ask(list(missing.values())), strict=True))
        return [self._answers[key] for key in keys]


def _is_unstable(place: Place, unstable: Mapping[Place, str]) -> bool:
    """Return whether the difference at a place also occurs from one compilation to the next."""
    return place in unstable or ("resource", place[1], None) in unstable


def _with_states(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages of both sides, each once, with their state; line numbers do not count, because they move."""

    def identities(messages: Sequence[Mapping[str, Any]]) -> dict[tuple[Any, Any], Mapping[str, Any]]:
        return {(message["message"], message["file"]): message for message in messages}

    old, new = identities(before), identities(after)
    return [
        *({**message, "state": "old" if identity in old else "new"} for identity, message in new.items()),
        *({**message, "state": "fixed"} for identity, message in old.items() if identity not in new),
    ]


def _reason_of(calls: Sequence[RepeatableCall], root: str) -> str:
    """Return why calls may have other results the next time; '' for none."""
    return "; ".join(dict.fromkeys(f"{call.label} is called".replace(f"{root}/", "") for call in calls))

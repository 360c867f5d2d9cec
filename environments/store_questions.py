"""
The questions that compilations ask the site's PuppetDB, recorded so that they can be asked again.

A catalog that was compiled from answers is the same again as long as the answers are: `are_unchanged` asks its questions again, several
at a time. If an answer is another one, the compilation that follows gets these answers, so that nothing is asked twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

from language.catalog.richdata import decode
from language.host import ExportedResource
from language.values.core import Value
from shared.data import plainjson
from shared.errors import BadData, EvaluationError, PuppetError, Unsupported

from .files.export_keys import REDACTED_TAG, ExportedParameter, ExportKeys, is_redacted

Question = Mapping[str, Any]
AskPuppetDb = Callable[[Sequence[Question]], Sequence[bytes | PuppetError]]
"""Returns the answers to questions (see `puppetdb.queries`) in their order, each of them JSON or why there is none."""

RESOURCES = "resources"  # what a collector asks for
MAX_QUESTIONS = 32  # that are worth asking again: more are those of a loop, and would be a burst of queries for each request
MAX_ANSWERS = 1 << 24  # octets of all answers of a catalog, which are in memory together when they are asked for again
TOGETHER = 8  # questions that are asked again at the same time: half of puppetdb_connections, so that other compilations need not wait


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """
    A query of a compilation, with digests of its answer.

    Attributes:
        body: The digest of the answer as received.
        resources: The digest of the part that a collector uses, independent of the order of rows; empty for a query of a manifest,
            where the order counts.
    """

    question: Question
    body: bytes
    resources: bytes

    @classmethod
    def of(cls, question: Any, body: str, resources: str) -> Self:
        """Return a question with its `digests`; ValueError for others."""
        return cls(dict(question), bytes.fromhex(body), bytes.fromhex(resources))

    @property
    def digests(self) -> tuple[str, str]:
        """The digests in hexadecimal."""
        return self.body.hex(), self.resources.hex()

    def has_answer(self, body: bytes) -> bool:
        """Return whether an answer means the same to the compilation as the one that it got."""
        if _digest(body) == self.body:
            return True
        try:
            return bool(self.resources) and _digest_of_resources(_parse_resources(body)) == self.resources
        except EvaluationError:
            return False  # the compilation that follows reports it, with the collector's place


class StoreQuestions:
    """
    The queries of compilations to a PuppetDB.

    Args:
        ask: Returns the answers; None: there is no PuppetDB.
        export_keys: The file of the keys that decrypt sealed parameters; '' where the master has no store of its own.
    """

    def __init__(self, ask: AskPuppetDb | None, export_keys: str = "") -> None:
        self._ask = ask
        self._export_keys = export_keys
        self._asked: dict[bytes, AskedQuestion] = {}
        self._answers: dict[bytes, bytes | PuppetError] = {}  # to questions that were asked again
        self._octets = 0
        self._repeatable = True

    @contextmanager
    def record(self) -> Iterator[None]:
        """Record the queries inside the context, for one catalog; they are discarded afterwards."""
        self._forget()
        try:
            yield
        finally:
            self._forget()

    def _forget(self) -> None:
        self._asked, self._answers, self._octets, self._repeatable = {}, {}, 0, True

    def asked(self) -> Sequence[AskedQuestion] | None:
        """Return the queries that the catalog depends on; None when they cannot, or should not, be repeated."""
        if not self._repeatable or len(self._asked) > MAX_QUESTIONS or self._octets > MAX_ANSWERS:
            return None
        return tuple(self._asked.values())

    def are_unchanged(self, asked: Sequence[AskedQuestion]) -> bool:
        """
        Return whether the answers to these questions are still the same.

        What is asked until the end of `record` gets these answers, and these errors.
        """
        for first in range(0, len(asked), TOGETHER):
            together = asked[first : first + TOGETHER]
            answers = self._put([each.question for each in together])
            self._answers |= {_key(each.question): answer for each, answer in zip(together, answers, strict=True)}
            if not all(isinstance(answer, bytes) and each.has_answer(answer) for each, answer in zip(together, answers, strict=True)):
                return False  # the others may be asked no more, and a PuppetDB that is away would be waited for again
        return True

    def value(self, query: Any) -> Value:
        """Return the PuppetDB's answer to a query in PQL or as a syntax tree; raise EvaluationError when there is no answer."""
        question = {"query": query}
        body = self._answer(question)
        self._note(question, body, b"")
        return _parse(body)

    def resources(self, query: Any) -> list[ExportedResource]:
        """
        Return the resources that a query finds, by type, title and node, with sealed parameters opened.

        Raises:
            EvaluationError: There is no answer, or a parameter in it has no value, or one that cannot be opened.
        """
        question = {"of": RESOURCES, "query": query}
        body = self._answer(question)
        resources = _parse_resources(body)
        self._note(question, body, _digest_of_resources(resources))
        keys = ExportKeys(Path(self._export_keys))
        return [_opened(resource, keys) if resource.sealed else resource for resource in resources]

    def _answer(self, question: Question) -> bytes:
        key = _key(question)
        answer = self._answers[key] if key in self._answers else self._put([question])[0]
        if isinstance(answer, PuppetError):
            self._repeatable = False  # a manifest may get along without the answer
            raise EvaluationError(answer.message, hint=answer.hint)
        return answer

    def _put(self, questions: Sequence[Question]) -> Sequence[bytes | PuppetError]:
        if self._ask is None:
            raise EvaluationError("There is no PuppetDB to ask here", hint="Only a master asks one, which its puppetdb.conf names.")
        return self._ask(questions)

    def _note(self, question: Question, body: bytes, resources: bytes) -> None:
        key = _key(question)
        asked = AskedQuestion(question, _digest(body), resources)
        if self._asked.setdefault(key, asked) != asked:
            self._repeatable = False  # the answer changed in the middle of the compile: no answer gives this catalog again
        self._octets += len(body)


def _key(question: Question) -> bytes:
    return plainjson.dumps_pson(dict(question))


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


def _digest_of_resources(resources: Sequence[ExportedResource]) -> bytes:
    """Return a digest of the `repr`, which distinguishes types and the order of keys."""
    used = [(resource.type, resource.title, resource.certname, resource.parameters, resource.sealed) for resource in resources]
    return _digest(repr(used).encode("utf-8", "surrogatepass"))


def _parse(body: bytes) -> Value:
    try:
        answer: Value = plainjson.loads_trusted(body)
    except BadData as error:
        raise EvaluationError(f"The PuppetDB's answer cannot be read: {error.message}") from error
    return answer


def _parse_resources(body: bytes) -> list[ExportedResource]:
    """
    Return the resources of an answer by type, title and node, because a PuppetDB promises no order and a catalog should have a stable
    one.
    """
    rows = _parse(body)
    if not isinstance(rows, list):
        raise EvaluationError("The PuppetDB did not answer a query for resources with a list")
    return sorted(map(_exported_resource, rows), key=lambda resource: (resource.type, resource.title, resource.certname))


def _exported_resource(row: Any) -> ExportedResource:
    try:
        parameters = dict(row["parameters"] or {})
        missing = [name.removeprefix(REDACTED_TAG) for name in row.get("tags") or () if name.startswith(REDACTED_TAG)]
        sealed = dict.fromkeys([*missing, *(name for name, value in parameters.items() if is_redacted(value))], "") | row.get("sealed", {})
        return ExportedResource(str(row["type"]), str(row["title"]), parameters, str(row["certname"]), sealed)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise EvaluationError("The PuppetDB answered a query for resources with something else") from error


def _opened(resource: ExportedResource, keys: ExportKeys) -> ExportedResource:
    """Return a resource with the values of its sealed parameters; EvaluationError names the first that has none."""
    values: dict[str, Value] = {}
    for name, text in resource.sealed.items():
        parameter = ExportedParameter(resource.certname, resource.type, resource.title, name)
        if not text:
            raise EvaluationError(
                f"The {parameter} is Sensitive or Deferred, and the store has no value of it",
                hint="PuppetDB and archives never have it. The master's own store has it after the next run of that node's agent.",
            )
        try:
            values[name] = decode(keys.open(parameter, text))
        except Unsupported as err:
            raise EvaluationError(f"The {parameter}: {err.message}", hint="Export it as a String.") from err
    return replace(resource, parameters={**resource.parameters, **values}, sealed={})

"""
The inputs of each node's last catalog, stored for the next preview: one small file per node.

A record holds names and digests, no values but queries to a PuppetDB and the arguments of calls that are made again, which are encrypted.
It shows that a change cannot affect a node only when the code, answers and results, and all data that were read of the node are unchanged;
otherwise the node is compiled.
"""

from __future__ import annotations

import base64
import hashlib
import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments.files.export_keys import CatalogCalls, ExportKeys
from environments.repeated_calls import RepeatableCall, calls_to_data
from environments.store_questions import AskedQuestion
from language.evaluation.dependencies import NodeDependencies
from language.host import NodeInput
from shared import __version__
from shared.data import plainjson
from shared.errors import BadData, PuppetError
from shared.filesystem.files import make_directory, owner_in, write_atomic
from shared.names import valid_file_key

from .answers import SideAnswers
from .inputs import Input

FORMAT = f"3 {__version__}"
"""Of a record: another version of the compiler may make another catalog of the same inputs."""
MAX_RECORD = 4 * 2**20
"""Bytes of one record, unpacked."""
_LEVEL = 1


@dataclass(frozen=True, slots=True)
class CatalogRecord:
    """
    The inputs of one catalog.

    Attributes:
        reads: the data that were read of the node; `values` is a digest of them.
        configuration: a digest of the environment's configuration.
        inputs: the questions about the code; `answers` is a digest of them and of the answers.
        sources: files of modules, as `MODULE/PATH`, that the agent reads; the catalog is the same without them.
        calls: the calls that it depends on (see `sealed_calls`); '' for none.
        questions: what it asked a PuppetDB, with digests of the answers.
    """

    reads: NodeDependencies
    values: str
    configuration: str
    inputs: tuple[Input, ...]
    answers: str
    sources: tuple[str, ...]
    calls: str = ""
    questions: tuple[AskedQuestion, ...] = ()

    def is_valid(self, node: NodeInput, configuration: str, answers: SideAnswers) -> bool:
        """Return whether the node's catalog would be compiled from the same again."""
        return (
            self.configuration == configuration
            and self.values == digest_of_values(self.reads, node)
            and self.answers == answers.digest(self.inputs)
        )

    @property
    def identity(self) -> str:
        """Return a key that is equal for equal records."""
        return f"{self.values} {self.configuration} {self.answers} {hash(self.calls)} {[question.digests for question in self.questions]}"

    def pack(self) -> bytes:
        reads = self.reads
        data = {
            "format": FORMAT,
            "variables": sorted(reads.variables),
            "facts": sorted(reads.facts),
            "everything": reads.everything,
            "special_names": reads.special_names,
            "values": self.values,
            "configuration": self.configuration,
            "inputs": self.inputs,
            "answers": self.answers,
            "sources": self.sources,
            "calls": self.calls,
            "questions": [[dict(asked.question), *asked.digests] for asked in self.questions],
        }
        return zlib.compress(plainjson.dumps(data), _LEVEL)

    @classmethod
    def unpack(cls, packed: bytes) -> CatalogRecord | None:
        """Return a record; None for one of another version. Raise BadData for invalid data."""
        try:
            unpacker = zlib.decompressobj()
            data = plainjson.loads(unpacker.decompress(packed, MAX_RECORD))
            if data["format"] != FORMAT:
                return None
            reads = NodeDependencies()
            reads.variables.update(map(str, data["variables"]))
            reads.facts.update(map(str, data["facts"]))
            reads.everything, reads.special_names = bool(data["everything"]), bool(data["special_names"])
            inputs = tuple(tuple(map(str, question)) for question in data["inputs"])
            sources = tuple(map(str, data["sources"]))
            values, configuration, answers, calls = (str(data[name]) for name in ("values", "configuration", "answers", "calls"))
            questions = tuple(AskedQuestion.of(question, *digests) for question, *digests in data["questions"])
            return cls(reads, values, configuration, inputs, answers, sources, calls, questions)
        except (zlib.error, KeyError, TypeError, ValueError) as err:
            raise BadData("A record of a catalog cannot be read") from err


def sealed_calls(calls: Sequence[RepeatableCall], certname: str, root: str, keys: str) -> str | None:
    """
    Return calls as text that only a master's key opens, for their arguments may be secret; None when there is no key.

    Args:
        root: The folder of the environment.
        keys: The path of the keys' file; '' for none.
    Raises:
        EvaluationError: The file cannot be used.
    """
    if not calls:
        return ""
    if not keys:
        return None
    packed = zlib.compress(plainjson.dumps(calls_to_data(calls, root)), _LEVEL)
    return ExportKeys(Path(keys)).seal(CatalogCalls(certname), base64.b64encode(packed).decode())


def opened_calls(sealed: str, certname: str, keys: str) -> Any:
    """Return the calls of `sealed_calls` as plain data; raise EvaluationError or BadData when they cannot be read."""
    text = ExportKeys(Path(keys)).open(CatalogCalls(certname), sealed)
    return plainjson.loads_trusted(zlib.decompressobj().decompress(base64.b64decode(text), MAX_RECORD))


@dataclass(frozen=True, slots=True)
class CatalogRecords:
    """The records below a folder."""

    folder: Path

    def load(self, certname: str) -> CatalogRecord | None:
        """Return a node's record; None when there is none that can be used."""
        try:
            return CatalogRecord.unpack(self._path(certname).read_bytes())
        except (OSError, BadData):
            return None  # the node is compiled, and its record written anew

    def save(self, certname: str, packed: bytes) -> None:
        """Keep a node's packed record, unless it is there already; raise PuppetError when it cannot be written. Blocks."""
        path = self._path(certname)
        try:
            if self._holds(path, packed):
                os.utime(path)  # the oldest are removed first
                return
            make_directory(self.folder, mode=0o700, inherit=True)
            write_atomic(path, packed, mode=0o600, owner=owner_in(self.folder), durable=False)
        except OSError as err:
            raise self._error(f"Could not save the dependency record of {certname}'s catalog", err) from err

    def _error(self, what: str, err: OSError) -> PuppetError:
        hint = "Set preview_records to another folder; preview_records_size = 0 turns these records off."
        return PuppetError(f"{what} in {self.folder}: {err.strerror}", hint=hint)

    def _holds(self, path: Path, packed: bytes) -> bool:
        try:
            return path.read_bytes() == packed
        except FileNotFoundError:
            return False

    def limit(self, size: int) -> None:
        """Remove the oldest records until all take no more than `size` bytes; raise PuppetError when they cannot be removed. Blocks."""
        try:
            self._limit(size)
        except OSError as err:
            raise self._error("Could not remove old dependency records", err) from err

    def _limit(self, size: int) -> None:
        records = []
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            with suppress(FileNotFoundError):
                status = path.stat()
                records.append((status.st_mtime_ns, status.st_size, path))
        total = sum(octets for _, octets, _ in records)
        for _, octets, path in sorted(records):
            if total <= size:
                return
            path.unlink(missing_ok=True)
            total -= octets

    def _path(self, certname: str) -> Path:
        return self.folder / valid_file_key(certname)


def digest_of_values(reads: NodeDependencies, node: NodeInput) -> str:
    return digest_of_value(reads.values(node))


def digest_of_value(value: Any) -> str:
    """Return a digest of the value's `repr`."""
    return hashlib.blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

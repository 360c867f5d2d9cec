"""The inputs of a just compiled catalog other than its node, with which a later check finds out whether it would be the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from environments.loaded import LoadedEnvironment
from environments.store_questions import AskedQuestion
from language.evaluation.dependencies import NodeDependencies
from language.host import NodeInput

from .answers import configuration, digest_of_bytes
from .inputs import Input
from .recorded_environment import RecordedEnvironment
from .records import CatalogRecord, digest_of_value, digest_of_values


@dataclass(frozen=True, slots=True)
class CodeDependencies:
    """
    The part of a catalog's inputs in code that stays loaded.

    Attributes:
        inputs: The questions about it.
        answers: A digest of them, of the answers and of the environment's configuration.
    """

    inputs: tuple[Input, ...]
    answers: str

    def are_equal_in(self, loaded: LoadedEnvironment) -> bool:
        """Return whether another environment answers alike, so that no compilation in it gives another catalog because of its code."""
        host = loaded.host
        if not isinstance(host, RecordedEnvironment):
            return False
        answers = host.answers.of_code(self.inputs)
        return answers is not None and self.answers == _digest(configuration_of(loaded), answers)

    @property
    def size(self) -> int:
        """The number of octets that it takes; most questions are shared with other catalogs."""
        return 8 * len(self.inputs)


@dataclass(frozen=True, slots=True)
class CompiledFrom:
    """
    The inputs of a compiled catalog other than its node.

    Attributes:
        code: The inputs in loaded code.
        inputs, answers, configuration, sources: In the form of a record.
    """

    code: CodeDependencies
    inputs: tuple[Input, ...]
    answers: str
    configuration: str
    sources: tuple[str, ...]

    @classmethod
    def of(cls, loaded: LoadedEnvironment, reads: NodeDependencies, catalog: Mapping[str, Any]) -> CompiledFrom | None:
        """Return the inputs of the last compiled catalog; None when the code has changed since it was read."""
        host = loaded.host
        if not isinstance(host, RecordedEnvironment):
            return None
        host.finish_catalog(loaded.loader, reads, catalog)
        of_code = tuple(host.inputs.of_code())
        code = host.answers.of_code(of_code)
        files = host.answers.of_files(host.inputs.live)
        if code is None or files is None:
            return None
        name = configuration_of(loaded)
        dependencies = CodeDependencies(of_code, _digest(name, code))
        return cls(dependencies, host.inputs.questions(), digest_of_bytes(code + files), name, tuple(host.inputs.sources))

    def record(self, reads: NodeDependencies, node: NodeInput, calls: str, questions: Sequence[AskedQuestion]) -> CatalogRecord:
        """Return the record of a node's catalog, from the data that was read of the node, its sealed calls and its queries."""
        values = digest_of_values(reads, node)
        return CatalogRecord(reads, values, self.configuration, self.inputs, self.answers, self.sources, calls, tuple(questions))


def configuration_of(loaded: LoadedEnvironment) -> str:
    """Return a digest of an environment's configuration."""
    return digest_of_value(configuration(loaded.environment, loaded.host.settings()))


def _digest(configuration_digest: str, answers: bytes) -> str:
    return digest_of_bytes(configuration_digest.encode() + answers)

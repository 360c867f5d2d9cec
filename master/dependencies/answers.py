"""Who can be affected: the answers that the code of one side gives to the inputs of catalogs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import Any

from shared.errors import PuppetError

from ..compiler.host import NativeType
from ..compiler.syntax.source import Source
from ..environments.directories import Environment
from ..environments.directory_environment import DirectoryEnvironment
from ..files.code_files import DiskFiles
from .inputs import ROOT, Input, absolute, manifests_for, relative
from .sources import ModuleSources

Answer = Any
"""Plain values that are equal when the answers are the same to a compilation, wherever the environment's folder is."""


class SideAnswers:
    """
    The answers of one side, each found once.

    Args:
        host: The environment as the compiler sees it, with nothing recorded; its files may not change in between.
    """

    def __init__(self, host: DirectoryEnvironment) -> None:
        self.host = host
        self.root = host.root
        self.files = DiskFiles()
        self.sources = ModuleSources(host)
        self._answers: dict[Input, Answer] = {}
        self._digests: dict[Input, bytes] = {}

    def answer(self, question: Input) -> Answer:
        """Return the answer to one input."""
        if question not in self._answers:
            try:
                self._answers[question] = self._find(question[0], question[1:])
            except PuppetError as err:
                self._answers[question] = ("error", str(err).replace(self.root, ROOT))
        return self._answers[question]

    def digest(self, questions: Iterable[Input]) -> str:
        """Return a digest of the answers to inputs, in their order."""
        digest = hashlib.blake2b(digest_size=16)
        for question in questions:
            octets = self._digests.get(question)
            if octets is None:
                text = repr(self.answer(question)).encode("utf-8", "surrogatepass")
                octets = self._digests[question] = hashlib.blake2b(text, digest_size=16).digest()
            digest.update(octets)
        return digest.hexdigest()

    def _find(self, kind: str, about: tuple[str, ...]) -> Answer:
        match kind:
            case "definition":
                return self._definition(about[0], int(about[1]))
            case "read":
                return _digest(self.files.read(absolute(about[0], self.root)))
            case "exists":
                return self.files.exists(absolute(about[0], self.root))
            case "folder":
                return self.files.is_folder(absolute(about[0], self.root))
            case "names":
                return tuple(self.files.names(absolute(about[0], self.root)))
            case "glob":
                return tuple(self._relative(path) for path in self.files.matching(absolute(about[0], self.root), about[1]))
            case "module":
                root = self.host.module_root(about[0])
                return None if root is None else self._relative(root)
            case "module-file":
                return self._source(self.host.module_file(about[0], about[1]))
            case "extension":
                return self._source(self.host.function_extension(about[0]))
            case "environment-file":
                return self._source(self.host.environment_file(about[0]))
            case "manifests":
                return tuple(self._source(source) for source in self.host.manifests())
            case "modules":
                return tuple((self._relative(root), self._relative(os.path.realpath(root))) for root in self.host.module_roots())
            case "type":
                return _plain_type(self.host.types.find(about[0]))
            case "source":
                return self.sources.digest(about[0])
        raise AssertionError(f"no such input: {kind}")

    def _definition(self, name: str, count: int) -> Answer:
        """Return the manifests in which a definition is searched, with their content."""
        manifests = list(manifests_for(name))[:count]
        return tuple(self._source(self.host.module_file(module, path)) for module, path in manifests)

    def _source(self, source: Source | None) -> Answer:
        return None if source is None else (self._relative(source.file or ""), _digest(source.text.encode("utf-8", "surrogatepass")))

    def _relative(self, path: str) -> str:
        return relative(path, self.root)


def are_equal(before: SideAnswers, after: SideAnswers, inputs: Iterable[Input]) -> bool:
    """Return whether both sides answer all inputs alike."""
    return all(before.answer(question) == after.answer(question) for question in inputs)


def configuration(environment: Environment, settings: Mapping[str, Any]) -> Answer:
    """Return what every catalog of an environment depends on: its configuration, wherever its folder is."""
    root = environment.root
    return (
        tuple(relative(folder, root) for folder in environment.modulepath),
        relative(environment.manifest or "", root),
        environment.rich_data,
        environment.data_provider,
        {name: value.replace(root, ROOT) if isinstance(value, str) else value for name, value in settings.items()},
    )


def _digest(content: bytes | None) -> bytes | None:
    return None if content is None else hashlib.blake2b(content, digest_size=16).digest()


def _plain_type(native: NativeType | None) -> Answer:
    if native is None:
        return None
    attributes = (type(native.attributes).__name__, *sorted(native.attributes))
    patterns = tuple((pattern.source, names) for pattern, names in native.title_patterns)
    return native.name, attributes, native.namevars, native.isomorphic, native.trim_slashes, patterns

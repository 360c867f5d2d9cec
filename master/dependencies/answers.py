"""The check which nodes a change can affect: the answers of one side's code to the inputs of catalogs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from environments.directories import Environment
from environments.directory_environment import DirectoryEnvironment
from environments.files.code_files import CodeFiles, DiskFiles, Signature, TrackedFiles
from environments.module_sources import ModuleSources
from language.host import NativeType
from language.loading.loader import function_files, manifest_files
from language.syntax.source import Source
from shared.errors import PuppetError

from .inputs import ROOT, Input, absolute, relative

MAX_DIGESTS = 50_000
"""Answers about files that are read anew, of which digests are kept."""
_OF_EVERY_CATALOG = (
    "certname",
    "codedir",
    "config_version",
    "confdir",
    "data_binding_terminus",
    "disable_warnings",
    "environment",
    "hiera_config",
    "libdir",
    "manifest",
    "modulepath",
    "native_templates",
    "ssldir",
    "storeconfigs",
    "storeconfigs_backend",
    "strict",
    "strict_hostname_checking",
    "strict_variables",
    "vardir",
)
"""The settings that the compiler reads itself; others count for the catalogs that read them, for each process has some of its own."""
Answer = Any
"""Plain values that are equal when the answers are the same to a compilation, wherever the environment's folder is."""


class SideAnswers:
    """
    The answers of one side, each found once.

    Args:
        host: The environment as the compiler sees it, with nothing recorded; its files may not change in between.
        files: Its files, by which questions about them are answered; None: those on disk.
    """

    def __init__(self, host: DirectoryEnvironment, files: CodeFiles | None = None) -> None:
        self.host = host
        self.root = host.root
        self.files = files or DiskFiles()
        self.sources = ModuleSources(host)
        self._answers: dict[Input, Answer] = {}
        self._source_digests: dict[str, str | None] = {}
        self._digests: dict[Input, bytes] = {}

    @property
    def count(self) -> int:
        """The number of answers so far."""
        return len(self._answers)

    def answer(self, question: Input) -> Answer:
        """Return the answer to one input."""
        if question not in self._answers:
            self._answers[question] = self.find(question)
        return self._answers[question]

    def find(self, question: Input) -> Answer:
        """Return the answer to one input, as it is now."""
        try:
            return self._find(question[0], question[1:])
        except PuppetError as err:
            return "error", str(err).replace(self.root, ROOT)

    def source(self, key: str) -> str | None:
        """Return a digest of the file, or folder, `MODULE/PATH` that agents read; None when there is nothing."""
        if key not in self._source_digests:
            self._source_digests[key] = self.sources.digest(key)
        return self._source_digests[key]

    def digest(self, questions: Sequence[Input]) -> str:
        """Return a digest of inputs and the answers to them, in their order."""
        return digest_of_bytes(self.digests(questions))

    def digests(self, questions: Sequence[Input]) -> bytes:
        """Return the digests of the answers to inputs, one behind the other."""
        known = self._digests
        try:
            return b"".join([known[question] for question in questions])
        except KeyError:
            for question in questions:
                if question not in known:
                    known[question] = digest_of_answer(question, self.answer(question))
            return b"".join([known[question] for question in questions])

    def _find(self, kind: str, about: tuple[str, ...]) -> Answer:
        match kind:
            case "definition":
                return self._definition(about[0], int(about[1]))
            case "read":
                return _digest(self.files.read(absolute(about[0], self.root)))
            case "kind":
                path = absolute(about[0], self.root)
                return self.files.exists(path), self.files.is_folder(path)
            case "names":
                folder = absolute(about[0], self.root)
                return self.files.is_folder(folder), *self.files.names(folder)
            case "glob":
                return tuple(self._relative(path) for path in self.files.matching(absolute(about[0], self.root), about[1]))
            case "module":
                root = self.host.module_root(about[0])
                return None if root is None else self._relative(root)
            case "module-file":
                return self._source(self.host.module_file(about[0], about[1]))
            case "function":
                return self._function(about[0])
            case "setting":
                settings = self.host.settings()
                return _relative_setting(dict(settings) if about[0] == "all_local" else settings.get(about[0]), self.root)
            case "environment-file":
                return self._source(self.host.environment_file(about[0]))
            case "manifests":
                return tuple(self._source(source) for source in self.host.manifests())
            case "modules":
                return tuple((self._relative(root), self._real(root)) for root in self.host.module_roots())
            case "type":
                return _plain_type(self.host.types.find(about[0]))
        raise AssertionError(f"no such input: {kind}")

    def _definition(self, name: str, count: int) -> Answer:
        """Return the manifests in which a definition is searched, with their content."""
        return tuple(self._source(self.host.module_file(module, path)) for module, path in manifest_files(name)[:count])

    def _function(self, name: str) -> Answer:
        """Return the files that may define a function: in the language, and of a module in Python or Ruby."""
        own, module, path = function_files(name)
        sources = (
            self.host.environment_file(own) if own is not None else None,
            self.host.module_file(module, path),
            self.host.function_extension(name),
        )
        return tuple(map(self._source, sources))

    def _source(self, source: Source | None) -> Answer:
        return None if source is None else (self._relative(source.file or ""), _digest(source.text.encode("utf-8", "surrogatepass")))

    def _real(self, path: str) -> str:
        """Return where links lead from a path, wherever the environment is."""
        real = os.path.realpath(self.files.actual(path))
        return relative(real, os.path.realpath(self.files.actual(self.root)))

    def _relative(self, path: str) -> str:
        return relative(path, self.root)


class LoadedAnswers:
    """
    The answers for compilations of a loaded environment.

    Answers of its code stay the same as long as it is loaded: the questions are put to the files that it was loaded from, whose change has
    it loaded again. Files that are read anew for each catalog are looked at again when they are others than at the last time.

    Args:
        host: The environment, with nothing recorded.
        live: The files that are read anew, with what the current compilation saw of them.
        relative_input: Returns a question about a file as inputs have it.
    """

    def __init__(
        self, host: DirectoryEnvironment, files: TrackedFiles, live: TrackedFiles, relative_input: Callable[[Input], Input]
    ) -> None:
        self._code = SideAnswers(host, files)
        self._files = SideAnswers(host, live)
        self._tracked = files
        self._live = live
        self._checked = 0  # how many answers of the code are known to be those that it was loaded from
        self._is_outdated = False
        self._relative_input = relative_input
        self._digests: dict[Input, tuple[Signature, bytes]] = {}

    def of_code(self, questions: Sequence[Input]) -> bytes | None:
        """
        Return the digests of the answers to questions about code, one behind the other; None when the code has changed since it was loaded.

        With a timeout an environment stays loaded although files have changed: answers that were found now may be of other files than those
        that were loaded.
        """
        if self._is_outdated:
            return None
        digests = self._code.digests(questions)
        if self._code.count != self._checked:
            if self._tracked.changed() is not None:
                self._is_outdated = True
                return None
            self._checked = self._code.count
        return digests

    def of_files(self, questions: Iterable[Input]) -> bytes | None:
        """
        Return the same for files that the current compilation has read; None when one of them has changed since.

        Args:
            questions: They have absolute paths.
        """
        known, signatures = self._digests, self._live.first_signatures
        digests = []
        for question in questions:
            entry = known.get(question)
            if entry is None or entry[0] != signatures.get(question[1]) or question[0] == "glob":
                entry = self._find(question)
                if entry is None:
                    return None
            digests.append(entry[1])
        return b"".join(digests)

    def _find(self, question: Input) -> tuple[Signature, bytes] | None:
        """Return the digest of an answer and the file's signature; None when the file is not as the compilation saw it first."""
        path, relative_question = question[1], self._relative_input(question)
        signature = self._live.first_signature(path)
        digest = digest_of_answer(relative_question, self._files.find(relative_question))
        if not self._live.is_unchanged(path):
            return None
        if len(self._digests) >= MAX_DIGESTS:
            self._digests.clear()
        self._digests[question] = signature, digest
        return signature, digest


def are_equal(before: SideAnswers, after: SideAnswers, inputs: Iterable[Input], sources: Iterable[str]) -> bool:
    """Return whether both sides answer all inputs alike, and have the same in all sources."""
    return all(before.answer(question) == after.answer(question) for question in inputs) and all(
        before.source(key) == after.source(key) for key in sources
    )


def digest_of_answer(question: Input, answer: Answer) -> bytes:
    return hashlib.blake2b(repr((question, answer)).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def digest_of_bytes(octets: bytes) -> str:
    return hashlib.blake2b(octets, digest_size=16).hexdigest()


def configuration(environment: Environment, settings: Mapping[str, Any]) -> Answer:
    """Return the input of every catalog of an environment: its configuration, independent of its folder."""
    root = environment.root
    return (
        tuple(relative(folder, root) for folder in environment.modulepath),
        relative(environment.manifest or "", root),
        environment.rich_data,
        environment.data_provider,
        {name: _relative_setting(settings[name], root) for name in _OF_EVERY_CATALOG if name in settings},
    )


def _relative_setting(value: Any, root: str) -> Answer:
    if isinstance(value, dict):
        return {name: _relative_setting(item, root) for name, item in value.items()}
    return value.replace(root, ROOT) if isinstance(value, str) else value


def _digest(content: bytes | None) -> bytes | None:
    return None if content is None else hashlib.blake2b(content, digest_size=16).digest()


def _plain_type(native: NativeType | None) -> Answer:
    if native is None:
        return None
    attributes = (type(native.attributes).__name__, *sorted(native.attributes))
    patterns = tuple((pattern.source, names) for pattern, names in native.title_patterns)
    return native.name, attributes, native.namevars, native.isomorphic, native.trim_slashes, patterns

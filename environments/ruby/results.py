"""Results of pure back ends of Hiera in Ruby, remembered as long as the files that they read are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from language.host import LookupMethods, NotFoundInData
from language.values.core import MISSING, Instance, MaybeValue, Value
from shared.errors import EvaluationError

from ..files.code_files import CodeFiles

MAX_RESULTS = 20_000
MAX_AHEAD = 1_000
"""Keys that one question looks up ahead."""
CACHE = "cache"
"""The kind of a read of what an earlier call has cached."""
Reads = Sequence[tuple[str, str, Value]]
"""What Ruby has read: kinds (content, data, exists, folder), paths and answers."""


class BackendCall(NamedTuple):
    """
    A call of a back end.

    Attributes:
        where: the function, its dispatch and its options, as text.
        function: the function and its dispatch.
        name: the key that is looked up; None for a back end that gets none, or a part of one.
    """

    where: str
    function: tuple[int, int]
    name: str | None
    context: LookupMethods

    @classmethod
    def of(cls, number: int, index: int, args: Sequence[Any]) -> BackendCall | None:
        """Return the call of a function with these arguments; None when it is no back end that Ruby runs."""
        context = args[-1].behind if args and args[-1].__class__ is Instance else None
        if not isinstance(context, LookupMethods) or context.ruby_cache is None:
            return None
        name = args[0] if args[0].__class__ is str else None
        return cls(repr((number, index, *args[1 if name is not None else 0 : -1])), (number, index), name, context)

    @property
    def key(self) -> tuple[str, str | None]:
        return self.where, self.name


class BackendResults:
    """
    The results of all back ends of one environment.

    Args:
        files: where they read.
    """

    def __init__(self, files: CodeFiles) -> None:
        self._files = files
        self._answers: dict[tuple[str, str], Value] = {}  # of the files as they are for the current compilation
        self._results: dict[tuple[str, str | None], tuple[MaybeValue, Reads]] = {}
        self._names: dict[tuple[int, int], dict[str, None]] = {}  # that this compilation has looked up, by function
        self._names_before: dict[tuple[int, int], dict[str, None]] = {}  # that the one before did
        self._misses: dict[str, int] = {}  # of this compilation, by the place of the call

    def begin(self) -> None:
        """Begin a compilation: files may be other ones than before."""
        self._answers.clear()
        self._misses.clear()
        if self._names:
            self._names, self._names_before = {}, self._names

    def note_data(self, path: str, digest: str) -> None:
        """Note the digest of a data file that Ruby has been told."""
        self._answers["data", path] = digest

    def are_true(self, reads: Reads, context: LookupMethods | None = None) -> bool:
        """Return whether files are as Ruby has read them; this also records that the catalog depends on them."""
        try:
            return all(self._answer(kind, path, context) == answer for kind, path, answer in reads)
        except EvaluationError:
            return False

    def _answer(self, kind: str, path: str, context: LookupMethods | None) -> Value:
        key = kind, path
        if key not in self._answers:
            self._answers[key] = self._read(kind, path, context)
        return self._answers[key]

    def _read(self, kind: str, path: str, context: LookupMethods | None) -> Value:
        if kind == "exists":
            return self._files.exists(path)
        if kind == "folder":
            return self._files.is_folder(path)
        if kind == "content":
            content = self._files.read(path)
            return None if content is None else hashlib.sha256(content).hexdigest()
        return context.file_text(path)[0] if context is not None else None

    def find(self, call: BackendCall) -> MaybeValue:
        """Return the result of a call; MISSING when it is not known. Raise NotFoundInData when the result is that nothing is found."""
        if call.name is not None:
            self._names.setdefault(call.function, {})[call.name] = None
        known = self._results.get(call.key)
        if known is None or not self.are_true(known[1], call.context):
            return MISSING
        if known[0] is MISSING:
            raise NotFoundInData
        return known[0]

    def names_ahead(self, call: BackendCall) -> list[str]:
        """
        Return the keys that may soon be looked up in the same place, as the compilation before did, at the second key that is not known.

        At the first one Ruby reads the files, and the place may be one that only few keys reach.
        """
        misses = self._misses[call.where] = self._misses.get(call.where, 0) + 1
        if misses != 2 or call.name is None:
            return []
        names = [name for name in self._names_before.get(call.function, ()) if (call.where, name) not in self._results]
        return names[:MAX_AHEAD]

    def keep(self, call: BackendCall, value: MaybeValue, reads: Reads) -> None:
        """Remember the result of a call, MISSING when it found nothing, unless it depends on what an earlier call has cached."""
        if any(kind == CACHE for kind, _, _ in reads):
            return
        if len(self._results) >= MAX_RESULTS:
            self._results.clear()
        self._results[call.key] = value, reads

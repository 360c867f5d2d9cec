"""Results of pure back ends of Hiera in Ruby, remembered as long as the files that they read are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from language.host import LookupMethods, NotFoundInData
from language.values.core import MISSING, Instance, MaybeValue, Value
from shared.errors import EvaluationError

from ..files.code_files import CodeFiles

MAX_RESULTS = 20_000
CACHE = "cache"
"""The kind of a read of what an earlier call has cached."""
Reads = Sequence[tuple[str, str, Value]]
"""What Ruby has read: kinds (content, data, exists, folder), paths and answers."""


class BackendResults:
    """
    The results of all back ends of one environment.

    Args:
        files: where they read.
    """

    def __init__(self, files: CodeFiles) -> None:
        self._files = files
        self._answers: dict[tuple[str, str], Value] = {}  # of the files as they are for the current compilation
        self._results: dict[str, tuple[MaybeValue, Reads]] = {}

    def begin(self) -> None:
        """Begin a compilation: files may be other ones than before."""
        self._answers.clear()

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

    @staticmethod
    def key_of(number: int, index: int, args: Sequence[Any]) -> str:
        """Return the key of a call of a function: '' for one that is no back end."""
        context = args[-1] if args else None
        if context.__class__ is not Instance or not isinstance(context.behind, LookupMethods) or context.behind.ruby_cache is None:
            return ""
        return repr((number, index, *args[:-1]))

    def find(self, key: str, context: LookupMethods) -> MaybeValue:
        """Return the result of a call; MISSING when it is not known. Raise NotFoundInData when the result is that nothing is found."""
        known = self._results.get(key)
        if known is None or not self.are_true(known[1], context):
            return MISSING
        if known[0] is MISSING:
            raise NotFoundInData
        return known[0]

    def keep(self, key: str, value: MaybeValue, reads: Reads) -> None:
        """Remember the result of a call, MISSING when it found nothing, unless it depends on what an earlier call has cached."""
        if any(kind == CACHE for kind, _, _ in reads):
            return
        if len(self._results) >= MAX_RESULTS:
            self._results.clear()
        self._results[key] = value, reads

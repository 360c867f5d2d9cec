"""A file's bytes, streamed."""

from __future__ import annotations

from ..indirector.core import Indirection, Stream


class FileContent(Stream):
    """The bytes of a file that the master serves."""


FILE_CONTENT = Indirection(
    name="file_content",
    model=FileContent,
    formats=("raw", "binary"),
    options=frozenset({"links", "source_permissions"}),
    doc="The bytes of a served file.",
)

"""The bytes of a module's file as they were at one version of the code, for agents with a static catalog."""

from __future__ import annotations

from ..indirector.core import Indirection, Stream


class StaticFileContent(Stream):
    """One version of a module's file; `name` is its path below the environment."""


STATIC_FILE_CONTENT = Indirection(
    name="static_file_content",
    model=StaticFileContent,
    formats=("binary", "raw"),
    options=frozenset({"code_id"}),
    doc="The bytes of a module's file at a version of the code.",
)

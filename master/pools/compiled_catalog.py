"""A catalog as a compiling process makes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompiledCatalog:
    """
    A catalog's JSON; and what a PuppetDB gets of it, packed (see `puppetdb.catalog`), empty unless the job's catalog is to be stored.

    `code_id` is the version of the code that it was compiled from.
    """

    body: bytes
    stored: bytes = b""
    code_id: str | None = None

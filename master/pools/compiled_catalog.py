"""A catalog as a compiling process makes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompiledCatalog:
    """A catalog's JSON; and what a PuppetDB gets of it, packed (see `puppetdb.catalog`), empty unless the job's catalog is to be stored."""

    body: bytes
    stored: bytes = b""

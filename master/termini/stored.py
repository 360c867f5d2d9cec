"""Data in our own files; large files are parsed by separate processes."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from shared.errors import BadData
from shared.indirector.core import M
from shared.indirector.termini import FilePerKey

if TYPE_CHECKING:
    from ..pools.parse_pool import ParsePool

log = logging.getLogger("puppet.indirector")


async def read_stored(files: FilePerKey[M], key: str, parsers: ParsePool | None) -> M | None:
    """
    Return the value stored under a key; None when there is none, or, with a warning, when it does not parse.

    Reading a large file here would block the whole master.

    Args:
        files: A Yaml or Json terminus.
        parsers: Have processes for large files; None: all are read here.
    """
    if parsers is None or not parsers.takes_stored(await asyncio.to_thread(files.size, key)):
        return await asyncio.to_thread(files.read, key)
    try:
        body = await asyncio.to_thread(files.body, key)
        return None if body is None else await parsers.stored(files, key, body)
    except BadData as err:
        log.warning("Ignoring %s, which does not hold a %s: %s", files.path(key), files.indirection.name, err)
        return None

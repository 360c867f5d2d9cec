"""
Catalogs on their way to a store on the same host: the part that differs in each run is JSON, resources and edges after it are compressed.

Whoever has seen the same compressed bytes before need not unpack them, and all others carry a tenth of the bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from ..data import plainjson
from ..errors import BadData, TooLarge

_LENGTH = struct.Struct(">I")
_LEVEL = 1
_CONTENT = ("resources", "edges")


@dataclass(frozen=True, slots=True)
class PackedCatalog:
    """
    A catalog as a PuppetDB gets it, in two parts.

    Attributes:
        rest: A JSON object with the members that differ in each run.
        content: A compressed JSON object with the members `resources` and `edges`. Equal ones are mostly equal bytes.
    """

    rest: bytes
    content: bytes

    @classmethod
    def of(cls, catalog: Mapping[str, Any]) -> Self:
        """Return a catalog in two parts. Blocks as long as it takes to write a large one."""
        rest = {name: value for name, value in catalog.items() if name not in _CONTENT}
        content = plainjson.dumps({name: catalog[name] for name in _CONTENT})
        return cls(plainjson.dumps(rest), zlib.compress(content, _LEVEL))

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Return the catalog that `pack` has packed; raise BadData when it is not one."""
        end = _LENGTH.size + (_LENGTH.unpack_from(data)[0] if len(data) >= _LENGTH.size else 0)
        if not _LENGTH.size < end < len(data):
            raise BadData("This is no packed catalog")
        return cls(data[_LENGTH.size : end], data[end:])

    def pack(self) -> bytes:
        """Return both parts as bytes; the rest is in them as it is."""
        return b"".join((_LENGTH.pack(len(self.rest)), self.rest, self.content))

    def with_members(self, members: Mapping[str, Any]) -> PackedCatalog:
        """Return the catalog with further members in addition to its resources and edges."""
        return PackedCatalog(self.rest[:-1] + b"," + plainjson.dumps(dict(members))[1:], self.content)

    def map_rest(self, change: Callable[[bytes], bytes]) -> PackedCatalog:
        """Return the catalog with the JSON that differs in each run changed."""
        return PackedCatalog(change(self.rest), self.content)

    def content_text(self, limit: int) -> bytes:
        """Return the JSON object with resources and edges; TooLarge beyond `limit` bytes, BadData where it is not whole. Blocks."""
        decoder = zlib.decompressobj()
        try:
            text = decoder.decompress(self.content, limit + 1)
        except zlib.error as err:
            raise BadData(f"The catalog cannot be unpacked: {err}") from err
        if len(text) > limit:
            raise TooLarge(f"The catalog is longer than {limit} bytes")
        if not decoder.eof:
            raise BadData("The packed catalog ends too early")
        return text

    def text(self, limit: int) -> bytes:
        """Return the whole catalog as JSON; raise as `content_text`. Blocks."""
        return self.rest[:-1] + b"," + self.content_text(limit)[1:]

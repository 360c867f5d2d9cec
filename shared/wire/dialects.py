"""
The two dialects of the wire: of Puppet 3.x (scheme A) and of 4 to 8 (scheme B).

A dialect knows the formats, how an object is wrapped, and the version that it claims. It is chosen where a path is parsed, or by what a
server answers, and then passed along: no other code depends on the scheme.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

from .. import PUPPET_VERSION
from ..errors import BadData
from . import formats as f
from .deflated import DeflatedText
from .formats import Format


class WireModel(Protocol):
    """The attributes of an instance that a dialect needs; `shared.indirector.Model` has them."""

    def to_form(self, dialect: Dialect, format: Format) -> Any: ...

    def encoded(self, dialect: Dialect, format: Format) -> bytes | DeflatedText | None: ...

    def to_bytes(self, dialect: Dialect) -> bytes: ...

    @classmethod
    def from_data(cls, data: Any) -> Self: ...

    @classmethod
    def from_bytes(cls, body: bytes) -> Self: ...


M = TypeVar("M", bound=WireModel)
M_co = TypeVar("M_co", bound=WireModel, covariant=True)


class WireIndirection(Protocol[M_co]):
    """The attributes of an indirection that a dialect needs; `shared.indirector.Indirection` has them."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> type[M_co]: ...

    @property
    def formats(self) -> Sequence[str]: ...

    @property
    def document_type(self) -> str: ...

    @property
    def document_metadata(self) -> bool: ...


@dataclass(frozen=True, slots=True, repr=False)
class Dialect:
    """
    One way of speaking.

    `version` goes into X-Puppet-Version; `digest` is the checksum algorithm that peers of this age expect;
    `readable` are the formats whose bodies are accepted from the network.
    """

    name: str
    version: str
    formats: Mapping[str, Format]
    readable: frozenset[str]
    preferred: str
    digest: str
    wraps: bool
    report_format: int

    def __repr__(self) -> str:
        return f"<{self.name} dialect>"

    def formats_of(self, indirection: WireIndirection[Any]) -> list[Format]:
        """Return the formats an indirection has in this dialect, the default first."""
        formats = [self.formats[name] for name in indirection.formats if name in self.formats]
        return sorted(formats, key=lambda form: (form.name != self.preferred, -form.weight))

    def formats_read(self, indirection: WireIndirection[Any]) -> list[Format]:
        """Return the formats in which this dialect takes an indirection's objects from the network."""
        return [form for form in self.formats_of(indirection) if form.raw or form.name in self.readable]

    def dump(self, indirection: WireIndirection[Any], instance: WireModel, format: Format) -> bytes:
        """Return one object as the bytes of a body."""
        if format.raw:
            return instance.to_bytes(self)
        ready = instance.encoded(self, format)
        return bytes(ready) if ready is not None else format.dump(self._data(indirection, instance, format))

    def dump_all(self, indirection: WireIndirection[Any], instances: list[Any], format: Format) -> bytes:
        """Return the answer to a search."""
        if format.raw:
            return b"\n---\n".join(instance.to_bytes(self) for instance in instances)
        return format.dump([self._data(indirection, instance, format) for instance in instances])

    def _data(self, indirection: WireIndirection[Any], instance: WireModel, format: Format) -> Any:
        data = instance.to_form(self, format)
        if self.wraps and indirection.document_type and format.name == "pson":
            wrapped = {"document_type": indirection.document_type, "data": data}
            return wrapped | ({"metadata": {"api_version": 1}} if indirection.document_metadata else {})
        return data

    def load(self, indirection: WireIndirection[M], body: bytes, format: Format) -> M:
        """Return the object in a body; BadData when it is not one."""
        if format.raw:
            return indirection.model.from_bytes(body)
        return indirection.model.from_data(self.load_data(body, format))

    def load_data(self, body: bytes, format: Format) -> Any:
        """Return the plain data of the object in a body, from which the model makes it; BadData when it is not one."""
        return _unwrapped(format.load(body), format)

    def load_all(self, indirection: WireIndirection[M], body: bytes, format: Format) -> list[M]:
        """Return the objects in the answer to a search."""
        if format.raw:
            return [indirection.model.from_bytes(part) for part in body.split(b"\n---\n") if part]
        data = format.load(body)
        if not isinstance(data, list):
            raise BadData(f"Expected a list of {indirection.name}, got {_kind(data)}")
        return [indirection.model.from_data(_unwrapped(item, format)) for item in data]


def _unwrapped(data: Any, format: Format) -> Any:
    """Return an object without its wrapping: readers of PSON of every version take both forms; readers of JSON never unwrap."""
    if format.name == "pson" and isinstance(data, dict) and "document_type" in data and "data" in data:
        return data["data"]
    return data


def _kind(data: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", int: "a number", float: "a number", bool: "a boolean", type(None): "null"}
    return names.get(type(data), type(data).__name__)


LEGACY = Dialect(
    name="legacy",
    version="3.8.7",
    formats={each.name: each for each in (f.PSON, f.YAML, f.B64_ZLIB_YAML, f.TEXT, f.RAW)},
    readable=frozenset({"pson", "yaml", "b64_zlib_yaml"}),
    preferred="pson",
    digest="md5",
    wraps=True,
    report_format=4,
)

MODERN = Dialect(
    name="modern",
    version=PUPPET_VERSION,
    formats={each.name: each for each in (f.RICH_JSON, f.JSON, f.PSON, f.YAML, f.TEXT, f.BINARY)},
    readable=frozenset({"rich_data_json", "json", "pson"}),
    preferred="json",
    digest="sha256",
    wraps=False,
    report_format=12,
)

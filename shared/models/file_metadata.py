"""The metadata of a served file, without its bytes."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ..errors import BadData, BadName
from ..filesystem import checksums
from ..filesystem.checksums import Checksum
from ..filesystem.files import parts_of
from ..indirector.core import Indirection, Model
from ..wire.dialects import Dialect

Links = Literal["manage", "follow"]
Permissions = Literal["use", "use_when_creating", "ignore"]
FileType = Literal["file", "directory", "link", "fifo", "socket"]


class MetadataChecksum(BaseModel):
    """A file's checksum; `value` has the `{type}` prefix; None where there was nothing to sum (a link to somewhere else)."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    type: checksums.Algorithm
    value: str | None = Field(default=None, max_length=160)


class FileMetadata(Model):
    """
    One file, directory or link as its server sees it; `name` is its path there.

    `mode` holds the permission bits; `owner` and `group` are ids, None when they are not to be managed.
    `relative_path` is the path below `path` in a search (`.` for the root), None for a single find.
    `content_uri` and `source` are set in static catalogs only. `unserved` are names below the root of a search that the server has to
    leave out, in printable form; it is sent to those who ask for it (option `unserved`), and only with the root.
    Source: protocol reference 3.5.
    """

    path: str = Field(max_length=8192)
    relative_path: str | None = Field(default=None, max_length=4096)
    links: Links = "manage"
    owner: int | None = Field(default=None, ge=0, strict=True)
    group: int | None = Field(default=None, ge=0, strict=True)
    mode: int | None = Field(default=None, ge=0, le=0o7777, strict=True)
    checksum: MetadataChecksum | None = None
    type: FileType
    destination: str | None = Field(default=None, max_length=4096)
    source: str | None = None
    content_uri: str | None = None
    unserved: tuple[str, ...] = ()

    @field_validator("relative_path")
    @classmethod
    def _inside(cls, value: str | None) -> str | None:
        if value not in (None, "."):
            try:
                parts_of(value)
            except BadName as err:
                raise ValueError("a path inside the root is needed") from err
        return value

    @property
    def full_path(self) -> str:
        """Return the path of the file on its server."""
        return self.path if self.relative_path in (None, ".") else f"{self.path.rstrip('/')}/{self.relative_path}"

    @property
    def sum(self) -> Checksum | None:
        """Return the checksum as a value, checked in full; None when there is none; BadData when the text is not a checksum."""
        if self.checksum is None or self.checksum.value is None:
            return None
        checksum = Checksum.parse(self.checksum.value)
        if checksum.type != self.checksum.type:
            raise BadData(f"The checksum of {self.path} is called {self.checksum.type} and is {checksum.type}")
        return checksum

    def to_data(self, dialect: Dialect) -> Any:
        """Return the wire form; both dialects have the same fields, with null for missing values."""
        data: dict[str, Any] = {
            "path": self.path,
            "relative_path": self.relative_path,
            "links": self.links,
            "owner": self.owner,
            "group": self.group,
            "mode": self.mode,
            "checksum": {"type": self.checksum.type, "value": self.checksum.value} if self.checksum else None,
            "type": self.type,
            "destination": self.destination,
        }
        if not dialect.wraps:
            data |= {key: value for key, value in (("content_uri", self.content_uri), ("source", self.source)) if value}
            data |= {"unserved": list(self.unserved)} if self.unserved else {}
        return data

    @classmethod
    def from_data(cls, data: Any) -> Self:
        if isinstance(data, dict) and "name" not in data:
            data = {**data, "name": data.get("path")}
        return super().from_data(data)


FILE_METADATA = Indirection(
    name="file_metadata",
    model=FileMetadata,
    formats=("json", "pson", "yaml", "b64_zlib_yaml"),
    document_type="FileMetadata",
    ruby_class="Puppet::FileServing::Metadata",
    options=frozenset({"links", "checksum_type", "source_permissions", "recurse", "recurselimit", "max_files", "ignore", "unserved"}),
    repeatable=frozenset({"ignore"}),
    doc="What is known of a served file without its bytes.",
)

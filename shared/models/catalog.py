"""A catalog: the resources a node should have, and how they are contained in one another."""

from __future__ import annotations

import logging
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ..data.richdata import as_plain_json, is_rich, with_octets
from ..errors import BadData, NotAcceptable
from ..indirector.core import Indirection, Model
from ..wire.dialects import Dialect
from ..wire.formats import Format

log = logging.getLogger("puppet.catalog")

MAX_RESOURCES = 1_000_000


class CatalogResource(BaseModel):
    """One resource; `parameters` hold plain data, references as `Type[title]` text."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    type: str
    title: str
    tags: list[str] = Field(default_factory=list)
    file: str | None = None
    line: int | None = None
    exported: bool = False
    virtual: bool = False
    kind: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    sensitive_parameters: list[str] = Field(default_factory=list)

    @property
    def ref(self) -> str:
        """`Type[title]`"""
        return f"{self.type}[{self.title}]"


class CatalogEdge(BaseModel):
    """A containment edge between two references; `event` and `callback` as in relationships."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    source: str
    target: str
    event: str | None = None
    callback: str | None = None


class Catalog(Model):
    """A node's catalog; `name` is the certname, `version` the output of `config_version` or seconds since the epoch."""

    version: int | str | None = None
    environment: str | None = None
    tags: list[str] = Field(default_factory=list)
    classes: list[str] = Field(default_factory=list)
    resources: list[CatalogResource] = Field(default_factory=list)
    edges: list[CatalogEdge] = Field(default_factory=list)
    code_id: str | None = None
    catalog_uuid: str | None = None
    catalog_format: int = 1
    metadata: dict[str, Any] = Field(default_factory=dict)
    recursive_metadata: dict[str, Any] = Field(default_factory=dict)

    def to_data(self, dialect: Dialect) -> Any:
        """Return the wire form; 3.x peers do not know the later fields, which are harmless but left out."""
        data: dict[str, Any] = {
            "tags": self.tags,
            "name": self.name,
            "version": self.version,
            "environment": self.environment,
            "resources": [_resource_data(resource, dialect) for resource in self.resources],
            "edges": [edge.model_dump(exclude_none=True) for edge in self.edges],
            "classes": self.classes,
        }
        if not dialect.wraps:
            data |= {"code_id": self.code_id, "catalog_uuid": self.catalog_uuid, "catalog_format": self.catalog_format}
            if self.metadata:
                data["metadata"] = self.metadata
            if self.recursive_metadata:
                data["recursive_metadata"] = self.recursive_metadata
        return data

    def to_form(self, dialect: Dialect, format: Format) -> Any:
        """
        Return the wire form; rich values become text in every format but the rich one.

        Raises:
            NotAcceptable: bytes that are not text, in a format other than PSON.
        """
        data = self.to_data(dialect)
        if format.name == "rich_data_json":
            return data
        for resource in data["resources"]:
            if not is_rich(resource.get("parameters")):
                continue
            resource["parameters"], has_bytes = with_octets(resource["parameters"])
            if has_bytes and format.name != "pson":
                raise NotAcceptable(f"{resource['type']}[{resource['title']}] has bytes that are no text, which {format.mime} cannot hold")
            if is_rich(resource["parameters"]):
                log.warning(
                    "%s[%s] has values that this agent's format cannot hold; they are sent as text", resource["type"], resource["title"]
                )
                resource["parameters"] = as_plain_json(resource["parameters"])
        return data

    def checked(self) -> Catalog:
        """
        Return this catalog when it is consistent.

        Raises:
            BadData: the same resource twice, or an edge to a resource that is not there.
        """
        refs = {resource.ref for resource in self.resources}
        if len(refs) != len(self.resources):
            seen: set[str] = set()
            for resource in self.resources:
                if resource.ref in seen:
                    raise BadData(f"Could not intern from data: {resource.ref} is in the catalog twice")
                seen.add(resource.ref)
        for edge in self.edges:
            for end, ref in (("source", edge.source), ("target", edge.target)):
                if ref not in refs:
                    raise BadData(f"Could not intern from data: Could not find relationship {end} {ref}")
        return self


def _resource_data(resource: CatalogResource, dialect: Dialect) -> dict[str, Any]:
    data: dict[str, Any] = {"type": resource.type, "title": resource.title, "tags": resource.tags}
    if resource.file is not None:
        data["file"] = resource.file
    if resource.line is not None:
        data["line"] = resource.line
    data["exported"] = resource.exported
    if resource.kind and not dialect.wraps:
        data["kind"] = resource.kind
    if resource.parameters:
        data["parameters"] = resource.parameters
    if resource.sensitive_parameters and not dialect.wraps:
        data["sensitive_parameters"] = resource.sensitive_parameters
    return data


CATALOG = Indirection(
    name="catalog",
    model=Catalog,
    formats=("rich_data_json", "json", "pson", "yaml", "b64_zlib_yaml"),
    document_type="Catalog",
    ruby_class="Puppet::Resource::Catalog",
    options=frozenset(
        {
            "facts",
            "facts_format",
            "transaction_uuid",
            "fail_on_404",
            "configured_environment",
            "check_environment",
            "static_catalog",
            "inline_metadata",
            "checksum_type",
            "job_id",
            "job_uuid",
        }
    ),
    limit="max_facts_body",
    needs_environment=False,
    doc="The resources a node should have.",
)

"""Makes catalogs of the payloads of `replace catalog`, versions 6 to 9."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, get_args

from shared.wire.packed_catalogs import PackedCatalog

from ..jsontext import load_json
from .catalog_texts import split_catalog
from .checked_catalogs import CheckedCatalogs, DeferredSequence
from .commands import EdgeEntry, Json, PayloadRejected, Relationship, ReplaceCatalog, ResourceEntry, ResourceName
from .fields import Fields
from .hashes import catalog_hash

_VERSION_6 = frozenset({"certname", "edges", "environment", "producer_timestamp", "resources", "transaction_uuid", "version"})
_VERSION_7 = _VERSION_6 | {"code_id"}
_VERSION_8 = _VERSION_7 | {"catalog_uuid"}
_VERSION_9 = _VERSION_8 | {"producer"}
_REQUIRED = {6: _VERSION_6, 7: _VERSION_7, 8: _VERSION_8, 9: _VERSION_9}

_TAG = re.compile(r"\w[\w:.-]*")
_TAGS = re.compile(r"(?:\w[\w:.-]*\0)*")  # all tags of a resource at once
_USUAL_TAGS = 1000  # characters of a resource's tags that are remembered

_CONTENT = frozenset({"resources", "edges"})


def read_catalog(payload: bytes, version: int, checked: CheckedCatalogs) -> ReplaceCatalog:
    """
    Return the catalog of a payload; raise ValueError if it is not JSON, PayloadRejected for any other fault.

    Resources and edges that `checked` knows are parsed and checked only when they are read.
    """
    return _read_text(payload, version, checked) or replace(parse_catalog(load_json(payload), version, checked), size=len(payload))


def read_packed(packed: PackedCatalog, version: int, limit: int, checked: CheckedCatalogs) -> ReplaceCatalog:
    """
    Return a catalog; raise as `read_catalog`, and PuppetError where it cannot be unpacked.

    Args:
        limit: The most bytes of the catalog, unpacked.
    """
    return _read_parts(packed.rest, packed.content, lambda: packed.content_text(limit), version, checked)


def _read_text(payload: bytes, version: int, checked: CheckedCatalogs) -> ReplaceCatalog | None:
    """Return a catalog as our masters send it; None for any other one, and for one with a fault."""
    text = split_catalog(payload)
    if text is None:
        return None
    content = b"{%b}" % text.content
    try:
        return _read_parts(text.rest, content, lambda: content, version, checked)
    except (ValueError, PayloadRejected):
        return None


def _read_parts(rest_text: bytes, key: bytes, content_text: Callable[[], bytes], version: int, checked: CheckedCatalogs) -> ReplaceCatalog:
    """
    Return a catalog that comes in two parts; the second one may be parsed only when it is read.

    Args:
        rest_text: The members other than resources and edges.
        key: The bytes that identify the second part.
        content_text: Returns the second part, with resources and edges.
    """
    rest = Fields(load_json(rest_text), "the catalog")
    rest.require(_REQUIRED[version] - _CONTENT)
    if rest.has_any(_CONTENT):
        raise PayloadRejected("the catalog has its resources or edges twice")
    digest = checked.digest_of_text(rest.certname(), key)
    known = checked.find(digest)
    if known is not None:
        catalog = _deferred(rest, version, lambda: Fields(load_json(content_text()), "the catalog"), known.hash)
        return replace(catalog, size=len(rest_text) + known.size)
    text = content_text()
    content = Fields(load_json(text), "the catalog")
    if not content.has_only(_CONTENT):
        raise PayloadRejected("the catalog has other members between its resources and edges")
    catalog = _catalog(rest, version, *_content(content))
    identity = catalog_hash(catalog)
    checked.add(digest, identity, len(text))
    return replace(catalog, hash=identity, size=len(rest_text) + len(text))


def parse_catalog(value: Json, version: int, checked: CheckedCatalogs | None = None) -> ReplaceCatalog:
    """
    Return the catalog of a payload; raise PayloadRejected for a faulty one. Unknown members are ignored.

    Resources and edges that `checked` knows are made only when they are read.
    """
    fields = Fields(value, "the catalog")
    fields.require(_REQUIRED[version])
    if checked is None:
        return _catalog(fields, version, *_content(fields))
    digest = checked.digest(fields.certname(), fields.array("resources"), fields.array("edges"))
    known = checked.find(digest)
    if known is not None:
        return _deferred(fields, version, lambda: fields, known.hash)
    catalog = _catalog(fields, version, *_content(fields))
    identity = catalog_hash(catalog)
    checked.add(digest, identity)
    return replace(catalog, hash=identity)


def _deferred(fields: Fields, version: int, content_fields: Callable[[], Fields], identity: str) -> ReplaceCatalog:
    """Return a catalog whose resources and edges are made from `content_fields` when they are read."""
    content = cache(lambda: _content(content_fields()))
    return _catalog(fields, version, DeferredSequence(lambda: content()[0]), DeferredSequence(lambda: content()[1]), identity)


def _content(fields: Fields) -> tuple[list[ResourceEntry], list[EdgeEntry]]:
    """Return the resources and the edges of a catalog; PayloadRejected."""
    resources = [
        _sound_resource(value) or _checked_resource(Fields(value, "a resource of the catalog")) for value in fields.array("resources")
    ]
    names = {name: name for name in ((resource.type, resource.title) for resource in resources)}
    if len(names) < len(resources):
        raise PayloadRejected("the catalog has several resources of the same type and title")
    return resources, list(dict.fromkeys(_edges(fields, names)))


def _catalog(
    fields: Fields, version: int, resources: Sequence[ResourceEntry], edges: Sequence[EdgeEntry], identity: str | None = None
) -> ReplaceCatalog:
    transaction_uuid = fields.optional_text("transaction_uuid")
    return ReplaceCatalog(
        certname=fields.certname(),
        version=fields.text("version"),
        environment=fields.optional_text("environment"),
        producer=fields.optional_text("producer") if version >= 9 else None,
        producer_timestamp=fields.time("producer_timestamp"),
        transaction_uuid=transaction_uuid,
        catalog_uuid=fields.optional_text("catalog_uuid") if version >= 8 else transaction_uuid,
        code_id=fields.optional_text("code_id") if version >= 7 else None,
        job_id=fields.optional_text("job_id") if version >= 9 else None,
        resources=resources,
        edges=edges,
        hash=identity,
    )


def _sound_resource(value: Any) -> ResourceEntry | None:
    """Return a resource as masters send it; None where it is anything else. Catalogs have thousands of them."""
    try:
        type_name, title, exported, parameters = value["type"], value["title"], value["exported"], value["parameters"]
        file, line, tags = value["file"], value["line"], value["tags"]
        sealed = value.get("sealed")
        joined = "\0".join(tags)
    except (LookupError, TypeError):
        return None
    if (
        type(type_name) is str
        and type(title) is str
        and type(exported) is bool
        and type(parameters) is dict
        and type(tags) is list
        and (file is None or type(file) is str)
        and (line is None or (type(line) is int and 0 <= line < 2**31))
        and (sealed is None or type(sealed) is dict)
        and (sorted_tags := _sorted_tags(joined) if len(joined) <= _USUAL_TAGS else _sorted_tags.__wrapped__(joined)) is not None
    ):
        return ResourceEntry(type_name, title, exported, sorted_tags, parameters, file, line, sealed)
    return None


@lru_cache(4096)
def _sorted_tags(joined: str) -> tuple[str, ...] | None:
    """Return tags that are joined by NULs, sorted, each once; None where one of them is invalid. Many resources have the same ones."""
    if _TAGS.fullmatch(joined + "\0") and joined == joined.lower():
        return tuple(sorted(set(joined.split("\0"))))
    return None


def _checked_resource(fields: Fields) -> ResourceEntry:
    """Return a resource; raise PayloadRejected for a faulty one."""
    type_name, title = fields.text("type"), fields.text("title")
    tags = set(fields.texts("tags"))
    for tag in tags:
        # Puppet writes tags in lower case, and letters of any alphabet may be in them.
        if not _TAG.fullmatch(tag) or tag != tag.lower():
            raise PayloadRejected(f"the resource {type_name}[{title}] has an invalid tag '{tag}'")
    return ResourceEntry(
        type=type_name,
        title=title,
        exported=fields.boolean("exported"),
        tags=tuple(sorted(tags)),
        parameters=fields.object("parameters"),
        file=fields.optional_text("file"),
        line=fields.optional_integer("line"),
        sealed=fields.object("sealed") if fields.has("sealed") else None,
    )


_RELATIONSHIPS: dict[str, Relationship] = {name: name for name in get_args(Relationship)}


def _edges(catalog: Fields, names: dict[ResourceName, ResourceName]) -> Iterator[EdgeEntry]:
    for value in catalog.array("edges"):
        yield _known_edge(value, names) or _checked_edge(Fields(value, "an edge of the catalog"), names)


def _known_edge(edge: Any, names: dict[ResourceName, ResourceName]) -> EdgeEntry | None:
    """Return an edge between two of the resources; None where it is anything else. Catalogs have thousands of edges."""
    try:
        source, target = edge["source"], edge["target"]
        relationship = _RELATIONSHIPS[edge["relationship"]]
        return EdgeEntry(names[source["type"], source["title"]], names[target["type"], target["title"]], relationship)
    except (LookupError, TypeError):
        return None


def _checked_edge(fields: Fields, names: Container[ResourceName]) -> EdgeEntry:
    """Return an edge; raise PayloadRejected for a faulty one."""
    source, target = _end(fields, "source"), _end(fields, "target")
    text = fields.text("relationship")
    if (relationship := _RELATIONSHIPS.get(text)) is None:
        raise PayloadRejected(f"an edge has the unknown relationship '{text}'")
    for type_name, title in (source, target):
        if (type_name, title) not in names:
            raise PayloadRejected(f"an edge refers to the resource {type_name}[{title}], which is not in the catalog")
    return EdgeEntry(source, target, relationship)


def _end(edge: Fields, name: str) -> ResourceName:
    fields = Fields(edge.value(name), f"the {name} of an edge")
    return fields.text("type"), fields.text("title")

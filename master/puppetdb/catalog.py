"""
A catalog in the form for a PuppetDB: plain text for rich data, aliases, and an edge for each relationship; nothing that is sensitive.

These are functions of the catalog's wire form in which exported resources that nobody collected are marked as `virtual`, and
`texts` has parameters with rich values as text. A master's own store also gets the Sensitive and Deferred parameters of exported
resources, sealed, as `sealed` beside a text; a PuppetDB gets a tag instead, so that a collecting compilation learns that they are missing.
Compiling processes call them; a large catalog takes milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from environments.files.export_keys import REDACTED, REDACTED_TAG, ExportedParameter, ExportKeys
from language.host import NativeType, NativeTypeLookup
from shared.data.richdata import PTYPE, PVALUE
from shared.errors import EvaluationError, Location

_UNORDERED = frozenset(("alias", "audit", "before", "check", "notify", "require", "subscribe", "tag"))
_RELATIONSHIPS = (
    ("before", "before", True),
    ("require", "required-by", False),
    ("notify", "notifies", True),
    ("subscribe", "subscription-of", False),
)
"""Each metaparameter with the name of its edges, and whether they lead from the resource that has it."""
_EDGE_PARAMETERS = frozenset(parameter for parameter, _, _ in _RELATIONSHIPS)
_RESOURCE_KEYS = ("type", "title", "tags", "file", "line", "exported", "kind")
_STORED_KEYS = frozenset((*_RESOURCE_KEYS, "parameters"))
_MARKS = frozenset(("virtual", "texts"))
_REFERENCE = re.compile(r"([A-Z][a-z0-9_]*(?:::[A-Z][a-z0-9_]*)*)\[(.+)\].*", re.DOTALL)

Reference = tuple[str, str]
Warn = Callable[[str, Location], None]


def catalog_for_agent(catalog: Mapping[str, Any], *, exported: bool) -> dict[str, Any]:
    """Return a catalog without marks, and unless `exported`, without the resources that have them."""
    hidden = set() if exported else {_ref(resource) for resource in catalog["resources"] if resource.get("virtual")}
    resources = [
        {key: value for key, value in resource.items() if key not in _MARKS} if not _MARKS.isdisjoint(resource) else resource
        for resource in catalog["resources"]
        if exported or "virtual" not in resource
    ]
    edges = [edge for edge in catalog["edges"] if edge["source"] not in hidden and edge["target"] not in hidden]
    return {**catalog, "resources": resources, "edges": edges}


def stored_catalog(
    catalog: Mapping[str, Any], types: NativeTypeLookup, keys: ExportKeys | None = None, warn: Warn = lambda text, where: None
) -> dict[str, Any]:
    """
    Return the form of a catalog for a PuppetDB, without the parts of its request (see `completed_catalog`).

    Args:
        keys: Seal exported parameters for the master's own store; None: a PuppetDB gets the catalog, and `warn` is called with the
            lost parameters.
    Raises:
        EvaluationError: A relationship leads to a resource that is not in the catalog, or that is only exported; or a key is missing.
    """
    resources = [_StoredResource(resource, types.find(resource["type"].lower())) for resource in catalog["resources"]]
    ends = {f"{resource.type}[{resource.title}]": resource.end for resource in resources}
    edges = [{"source": ends[edge["source"]], "target": ends[edge["target"]], "relationship": "contains"} for edge in catalog["edges"]]
    edges += _relationship_edges(resources)
    return {
        "certname": catalog["name"],
        "version": str(catalog["version"]),
        "code_id": catalog.get("code_id"),
        "catalog_uuid": catalog.get("catalog_uuid"),
        "resources": [resource.to_data(catalog["name"], keys, warn) for resource in resources],
        "edges": _without_repetitions(edges),
    }


class _StoredResource:
    """A resource of a catalog with its other names. Most resources are stored as they are: nothing of them is copied."""

    __slots__ = ("aliases", "end", "is_virtual", "parameters", "resource", "title", "type")

    def __init__(self, resource: Mapping[str, Any], native: NativeType | None) -> None:
        self.resource = resource
        self.type: str = resource["type"]
        self.title: str = resource["title"]
        self.end = {"type": self.type, "title": self.title}  # of edges, which share it
        self.is_virtual = "virtual" in resource
        parameters: Mapping[str, Any] = resource.get("parameters") or {}
        if "texts" in resource:
            parameters = parameters | resource["texts"]
        if secrets := resource.get("sensitive_parameters"):
            parameters = {name: value for name, value in parameters.items() if name not in secrets}
        for value in parameters.values():
            if value.__class__ is list or value.__class__ is dict:
                parameters = {name: as_text(value) for name, value in parameters.items()}
                break
        self.parameters = parameters
        self.aliases = self._aliases(native)
        if self.aliases:
            self.parameters = {**parameters, "alias": self.aliases}
        if not _UNORDERED.isdisjoint(self.parameters):
            self.parameters = {
                name: sorted(value, key=str) if name in _UNORDERED and isinstance(value, list) else value
                for name, value in self.parameters.items()
            }

    def _aliases(self, native: NativeType | None) -> list[Any]:
        """Return the names other than the title by which the resource can be found: the metaparameter's, and the value of its namevar."""
        if native is not None and len(native.namevars) > 1:
            return []
        aliases = _flat(self.parameters["alias"]) if "alias" in self.parameters else []
        if self.title == "main" and self.type in ("Class", "Stage"):
            name: Any = "main"  # their titles are symbols to the reference, and so differ from their names
        elif native is None or not native.isomorphic:
            return aliases
        else:
            name = self.parameters.get(native.namevars[0], self.title)
            if native.trim_slashes and isinstance(name, str) and len(name) > 1:
                name = name.rstrip("/") or "/"
            if name == self.title:
                return aliases
        return aliases if name is None or name in aliases else [*aliases, name]

    def to_data(self, certname: str, keys: ExportKeys | None, warn: Warn) -> Mapping[str, Any]:
        """Return the stored form of the resource."""
        resource, parameters = self.resource, self.parameters
        if parameters is resource.get("parameters") and _STORED_KEYS.issuperset(resource):
            return resource
        data = {key: resource[key] for key in _RESOURCE_KEYS if key in resource}
        withheld = _withheld(resource) if resource["exported"] else {}
        if withheld and keys is not None:
            sealed = {name: keys.seal(ExportedParameter(certname, self.type, self.title, name), value) for name, value in withheld.items()}
            return {**data, "parameters": {**dict.fromkeys(withheld, REDACTED), **parameters}, "sealed": sealed}
        for name in withheld:
            warn(
                f"{self.type}[{self.title}]['{name}'] is exported with a Sensitive or Deferred value, which PuppetDB cannot store; "
                "compiling a node that collects it will fail. A master with its own store stores such values encrypted.",
                Location(resource.get("file"), resource.get("line")),
            )
        if withheld:
            data["tags"] = [*data["tags"], *(f"{REDACTED_TAG}{name}" for name in withheld)]
        return {**data, "parameters": parameters}


def _withheld(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that have no text form, as rich data: Sensitive and Deferred ones, and those that contain such values."""
    secrets = resource.get("sensitive_parameters") or ()
    return {
        name: {PTYPE: "Sensitive", PVALUE: value} if name in secrets else value
        for name, value in (resource.get("parameters") or {}).items()
        if name in secrets or _is_withheld(value)
    }


def _is_withheld(value: Any) -> bool:
    if isinstance(value, dict):
        return value.get(PTYPE) in ("Sensitive", "Deferred") or any(map(_is_withheld, value.values()))
    return isinstance(value, list) and any(map(_is_withheld, value))


def as_text(value: Any) -> Any:
    """Return `value` with text for everything that JSON lacks; a sensitive value becomes a text that marks it as such."""
    if isinstance(value, list):
        return [as_text(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind, inner = value.get(PTYPE), value.get(PVALUE)
    if kind is None:
        return {key: as_text(item) for key, item in value.items()}
    if kind == "Default":
        return "default"
    if kind == "Regexp":
        return f"/{inner}/"
    if kind == "Sensitive":
        return REDACTED
    if kind == "Hash" and isinstance(inner, list):
        return {_key_text(as_text(key)): as_text(item) for key, item in zip(inner[::2], inner[1::2], strict=True)}
    return inner if isinstance(inner, str) else str(kind)


def _key_text(key: Any) -> str:
    return key if isinstance(key, str) else "" if key is None else str(key).lower() if isinstance(key, bool) else str(key)


def _relationship_edges(resources: Sequence[_StoredResource]) -> list[dict[str, Any]]:
    related = [resource for resource in resources if not (resource.is_virtual or _EDGE_PARAMETERS.isdisjoint(resource.parameters))]
    if not related:
        return []
    by_title = {(resource.type, resource.title): resource for resource in resources}
    by_alias: dict[Reference, _StoredResource] = {}
    for resource in resources:
        if "alias" in resource.parameters:
            by_alias |= {(resource.type, str(alias)): resource for alias in _flat(resource.parameters["alias"])}
    edges = []
    for resource in related:
        for parameter, relationship, is_forward in _RELATIONSHIPS:
            for text in _flat(resource.parameters.get(parameter)):
                other = _related(resource, parameter, str(text), by_title, by_alias)
                one, two = (resource, other) if is_forward else (other, resource)
                edges.append({"relationship": relationship, "source": one.end, "target": two.end})
    return edges


def _related(
    resource: _StoredResource,
    parameter: str,
    text: str,
    by_title: Mapping[Reference, _StoredResource],
    by_alias: Mapping[Reference, _StoredResource],
) -> _StoredResource:
    """Return the resource that a relationship refers to."""
    relationship = f"{resource.type}[{resource.title}] {{ {parameter} => {text} }}"
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise EvaluationError(
            f"Invalid relationship: {relationship}, because {text} doesn't seem to be in the correct format. Resource references should "
            "be formatted as: Classname['title'] or Modulename::Classname['title'] (take careful note of the capitalization)."
        )
    key = match[1], (match[2].rstrip("/") or match[2]) if match[1] == "File" else match[2]
    other = by_title.get(key) or by_alias.get(key)
    if other is None:
        raise EvaluationError(f"Invalid relationship: {relationship}, because {text} doesn't seem to be in the catalog")
    if other.is_virtual:
        raise EvaluationError(f"Invalid relationship: {relationship}, because {text} is exported but not collected")
    return other


def _without_repetitions(edges: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each edge once; edges of the same resources share these ends."""
    return list({(edge["relationship"], id(edge["source"]), id(edge["target"])): edge for edge in edges}.values())


def _ref(resource: Mapping[str, Any]) -> str:
    return f"{resource['type']}[{resource['title']}]"


def _flat(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [part for item in value for part in _flat(item)]
    return [] if value is None else [value]

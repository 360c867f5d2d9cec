"""The finished catalog as plain data, in the shape of the wire."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from shared.data.richdata import is_rich
from shared.errors import CompileError, EvaluationError, PuppetError

from ..types.kinds.references import ClassType, ResourceEntryType
from ..types.notation.operands import flatten_arrays
from ..values.core import Strictness, Value
from .compilation_view import CompilationView
from .resources import RELATIONSHIPS, DeclaredResource, parts_of_title
from .richdata import encode

_UNCHANGED = frozenset((bool, int))
"""Classes of values that stand in a catalog as they are."""


def wire_catalog(
    compilation: CompilationView, *, version: int | str, rich: bool = True, exported: bool = False, texts: bool = False
) -> dict[str, Any]:
    """
    Return the plain data of a compiled catalog.

    Args:
        exported: keep exported resources, marked as `virtual` if no collector took them.
        texts: add `texts` to resources, the parameters that have rich values with these as text.
    """
    included = [resource for resource in compilation.catalog if not resource.virtual or (exported and resource.exported)]
    resources = [_resource(resource, compilation, rich, texts) for resource in included]
    refs = {id(resource): resource.ref for resource in included}
    edges = [
        {"source": refs[id(container)], "target": refs[id(resource)]}
        for resource in included
        for container in resource.containers
        if id(container) in refs
    ]
    classes = list(compilation.catalog.classes)
    tags = dict(compilation.catalog.tags)
    for name in classes:
        tags[name.lower()] = None
        if "::" in name:
            tags.update(dict.fromkeys(name.lower().split("::")))
    return {
        "tags": list(tags),
        "name": compilation.node.certname,
        "version": version,
        "code_id": None,
        "catalog_uuid": str(uuid.uuid4()),
        "catalog_format": 2 if rich else 1,
        "environment": compilation.host.environment,
        "resources": resources,
        "edges": edges,
        "classes": classes,
    }


def _resource(resource: DeclaredResource, compilation: CompilationView, rich: bool, texts: bool) -> dict[str, Any]:
    data: dict[str, Any] = {"type": resource.type, "title": resource.title, "tags": list(resource.tags)}
    if resource.file is not None:
        data["file"] = resource.file
    if resource.line is not None:
        data["line"] = resource.line
    data["exported"] = resource.exported
    if resource.virtual:
        data["virtual"] = True
    if resource.kind is not None:
        data["kind"] = resource.kind
    try:
        parameters = _parameters(resource, compilation, rich)
        if texts and (rich_texts := _texts(resource, parameters)):
            data["texts"] = rich_texts
    except RecursionError as error:
        message = f"A value of {resource.ref} is nested too deeply for a catalog, or without end"
        nested_error = EvaluationError(message, where=resource.place)
        nested_error.node = compilation.node.certname
        raise nested_error from error
    except PuppetError as error:
        if error.where is None:
            error.where = resource.place
            if isinstance(error, CompileError):
                error.node = compilation.node.certname
        raise
    if parameters:
        data["parameters"] = parameters
    if resource.sensitive:
        data["sensitive_parameters"] = list(resource.sensitive)
    return data


def _parameters(resource: DeclaredResource, compilation: CompilationView, rich: bool) -> dict[str, Any]:
    values: Mapping[str, Value] = resource.values
    namevar = resource.native.namevars[0] if resource.native is not None and len(resource.native.namevars) == 1 else "name"
    parameters: dict[str, Any] = {}
    of_title: Iterable[str] = (namevar,)
    if resource.native is not None and resource.native.trim_slashes and namevar not in values:
        trimmed = resource.title.rstrip("/") or "/"
        if trimmed != resource.title:
            parameters[namevar] = trimmed
    elif resource.number_title is not None:
        parameters[namevar] = resource.title
    elif resource.native is not None and resource.native.title_patterns:
        of_title = parts = parts_of_title(resource)
        parameters = {name: value for name, value in parts.items() if value is not None and (name, value) != (namevar, resource.title)}

    def warn(message: str) -> None:
        if compilation.reporter.strict is Strictness.ERROR:
            raise EvaluationError(f"Evaluation Error: {message}", where=resource.place)
        compilation.log.add("warning", message, where=resource.place)

    main = resource.title == "main" and resource.type in ("Class", "Stage")
    for name, value in values.items():
        name = name.lower()  # as the reference sends the names of parameters; manifests see them as they are declared
        name = namevar if name == "name" else name  # which stands for the one namevar, whatever its own name is
        if value is None or (name == namevar and value == resource.title and not main):
            continue
        if (value.__class__ is str and value.isascii()) or value.__class__ in _UNCHANGED:  # as most are, and encode would return them
            parameters[name] = value
            continue
        if value.__class__ is list:
            if name in RELATIONSHIPS:
                value = [item for item in flatten_arrays(value) if item is not None]
            elif any(item.__class__ is list for item in value):
                flat = flatten_arrays(value)
                if any(isinstance(item, ResourceEntryType | ClassType) for item in flat):
                    value = flat  # as the reference sends arrays with references in them
        parameters[name] = encode(value, warn, f"{resource.ref}['{name}']", rich=rich)
    if any(name in values for name in of_title) or "name" in values:  # what a title may say comes first, as the reference has it
        parameters = {**{name: parameters[name] for name in of_title if name in parameters}, **parameters}
    return parameters


def _texts(resource: DeclaredResource, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the parameters that have rich values, with these as text."""
    for value in parameters.values():
        if value.__class__ is dict or value.__class__ is list:
            break
    else:  # as of most resources
        return {}

    def ignore(message: str) -> None:
        """Warn of nothing: the agent gets the rich values."""

    declared = {name.lower(): value for name, value in resource.values.items()}
    values = {name: declared[name] for name, value in parameters.items() if is_rich(value) and not isinstance(declared.get(name), str)}
    return {name: encode(value, ignore, f"{resource.ref}['{name}']", rich=False) for name, value in values.items()}

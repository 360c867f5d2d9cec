"""Resources, definitions and modules as Ruby gets them, as plain data."""

from __future__ import annotations

from language.catalog.definitions import Definition
from language.catalog.resources import DeclaredResource, parts_of_title
from language.host import CompilerHost
from language.values.core import Value
from shared.data import plainjson


def resource_data(resource: DeclaredResource | None) -> Value:
    """Return the data of a resource that Ruby sees; None for no resource."""
    if resource is None:
        return None
    return {
        "type": resource.type,
        "title": resource.title,
        "parameters": dict(resource.values),
        "identity": dict(parts_of_title(resource)) if resource.native is not None else {"name": resource.title},
        "file": resource.file,
        "line": resource.line,
        "tags": list(resource.tags),
        "virtual": resource.virtual,
        "exported": resource.exported,
    }


def source_data(source: Definition | None) -> Value:
    """
    Return the data of the class, define or node whose body is evaluated; None: top-level code, as the class without a name.
    """
    if source is None:
        return {"name": "", "type": "hostclass", "module": "", "file": None, "line": None}
    place = source.place
    return {"name": source.name, "type": source.kind, "module": source.module, "file": place.file, "line": place.line}


def module_data(host: CompilerHost, name: str) -> Value:
    """Return the data of a module; None when it does not exist."""
    folder = host.module_root(name)
    if folder is None:
        return None
    metadata = host.module_file(name, "metadata.json")
    return {"name": name, "path": folder, "metadata": plainjson.loads(metadata.text.encode()) if metadata is not None else {}}

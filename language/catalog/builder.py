"""The catalog under construction: its resources, their indexes, and containment."""

from __future__ import annotations

from collections.abc import Iterator

from shared.errors import EvaluationError

from ..values.core import DEFAULT, Sensitive
from .resources import DeclaredResource, parts_of_title

NamePart = str | Sensitive | None


class CatalogBuilder:
    """
    The resources in order of declaration, found by type and title or by another name.

    Attributes:
        declared: the resources that a manifest, or the node, declared: all but the stage `main` and the class of the settings.
        aliases: resources by type and another name, or by type and the values of their namevars.
        classes: the names of the classes and nodes that were evaluated, in that order.
        tags: the tags of the classes and of the node.
    """

    def __init__(self) -> None:
        self.resources: dict[tuple[str, str], DeclaredResource] = {}
        self.declared: list[DeclaredResource] = []
        self.aliases: dict[tuple[NamePart, ...], DeclaredResource] = {}
        self.classes: list[str] = []
        self.tags: dict[str, None] = {}

    def __iter__(self) -> Iterator[DeclaredResource]:
        return iter(self.resources.values())

    def find(self, type_: str, title: str) -> DeclaredResource | None:
        """Return the resource of that type (as catalogs write it) and title, alias or namevar."""
        resource = self.resources.get((type_, title))
        if resource is None:
            resource = self.aliases.get((type_, title))
        if resource is None and type_ == "File" and len(title) > 1 and title.endswith("/"):
            trimmed = title.rstrip("/")
            resource = self.resources.get((type_, trimmed)) or self.aliases.get((type_, trimmed))
        return resource

    def add(self, resource: DeclaredResource) -> None:
        """
        Put a resource into the catalog.

        Raises:
            EvaluationError: something of that type and title, alias or namevar is there already.
        Source: language reference 13.
        """
        key = (resource.type, resource.title)
        existing = self.resources.get(key) or self.aliases.get(key)
        if existing is not None:
            raise _duplicate(resource, existing)
        self.resources[key] = resource
        self._add_aliases(resource)
        if resource.native is None or not resource.native.isomorphic:
            return
        unique = uniqueness_key(resource)
        if unique != (resource.title,) and any(part is not None for part in unique):
            self._alias_key(resource, unique)

    def check_aliases(self) -> None:
        """
        Check aliases that were set by overrides or passed on by containers; references do not find these aliases.

        Raises:
            EvaluationError: the title or alias is already in use.
        """
        declared = dict(self.aliases)
        for resource in self:
            if not resource.virtual and not resource.is_class:
                self._add_aliases(resource)
        self.aliases = declared

    def _add_aliases(self, resource: DeclaredResource) -> None:
        explicit = resource.values.get("alias")
        if explicit is not None:
            for alias in explicit if isinstance(explicit, list) else [explicit]:
                self._alias(resource, str(alias), f'"{alias}"')

    def _alias(self, resource: DeclaredResource, alias: str, quoted_alias: str) -> None:
        if alias == resource.title:
            return
        existing = self.resources.get((resource.type, alias)) or self.aliases.get((resource.type, alias))
        if existing is not None and existing is not resource:
            raise _collision(resource, existing, quoted_alias, f'["{resource.type}", {quoted_alias}]')
        self.aliases[resource.type, alias] = resource

    def _alias_key(self, resource: DeclaredResource, unique: tuple[NamePart, ...]) -> None:
        key = (resource.type, *unique)
        existing = self.aliases.get(key)
        if existing is None and len(unique) == 1 and isinstance(unique[0], str):
            existing = self.resources.get((resource.type, unique[0]))
        if existing is not None:
            if existing is resource:
                return
            key_text = ", ".join(map(_part_text, unique))
            raise _collision(resource, existing, f"[{key_text}]", f'["{resource.type}", {key_text}]')
        self.aliases[key] = resource

    def contain(self, container: DeclaredResource, resource: DeclaredResource) -> None:
        """Add the edge from a container to a resource in it."""
        resource.containers.append(container)
        container.contents.append(resource)

    def declare(self, resource: DeclaredResource) -> None:
        """
        Put a resource into the catalog, inside the resource of the scope that declares it.

        Raises:
            EvaluationError: as `add`; or something other than a class sets the metaparameter `stage`.
        """
        self.add(resource)
        self.declared.append(resource)
        if not resource.is_class:
            if resource.values.get("stage") is not None:
                raise EvaluationError(f"Only classes can set 'stage'; normal resources like {resource.ref} cannot change run stage")
            container = resource.scope.resource if resource.scope is not None else None
            if resource.type != "Stage" and container is not None:
                self.contain(container, resource)

    def contain_in_stage(self, resource: DeclaredResource) -> None:
        """
        Add the edge from the stage of a class to the class; other resources have none.

        Raises:
            EvaluationError: there is no such stage.
        Source: language reference 13.
        """
        if not resource.is_class:
            return
        name = resource.values.get("stage")
        if name is None and resource.scope is not None and resource.scope.resource is not None:
            name = resource.scope.resource.values.get("stage")
        stage = self.find("Stage", str(name) if name is not None else "main")
        if stage is None:
            raise EvaluationError(f"Could not find stage {name} specified by {resource.ref}")
        if stage.title != "main" and resource.values.get("stage") is None:
            resource.values["stage"] = stage.title
        self.contain(stage, resource)

    def walk(self, start: DeclaredResource) -> Iterator[tuple[DeclaredResource, DeclaredResource]]:
        """Yield every edge below `start`, breadth first; the edges from a resource come once."""
        pending = [start]
        seen: set[int] = set()
        at = 0
        while at < len(pending):
            resource = pending[at]
            at += 1
            if id(resource) in seen:
                continue
            for content in resource.contents:
                yield resource, content
            pending.extend(resource.contents)
            seen.add(id(resource))


def uniqueness_key(resource: DeclaredResource) -> tuple[NamePart, ...]:
    """
    Return the namevars' values, in the order of their names.

    Raises:
        EvaluationError: the type takes titles apart, and not one like this.
    """
    native = resource.native
    assert native is not None
    namevars = native.namevars
    if len(namevars) == 1 and not native.title_patterns and namevars[0] not in resource.values:
        title = resource.title
        return (title.rstrip("/") or "/" if native.trim_slashes and title else title,)
    titled = parts_of_title(resource)
    parts: list[NamePart] = []
    for namevar in sorted(namevars):
        value = resource.values.get(namevar)
        if value is None or value is DEFAULT:
            value = titled.get(namevar)
            if value is None and namevar == (namevars[0] if len(namevars) == 1 else "name"):
                value = resource.title
        if native.trim_slashes and isinstance(value, str) and len(value) > 1:
            value = value.rstrip("/") or "/"
        parts.append(value if value is None or isinstance(value, str | Sensitive) else str(value))
    return tuple(parts)


def _part_text(part: NamePart) -> str:
    if isinstance(part, Sensitive):
        return f"#<{part}>"
    return "nil" if part is None else f'"{part}"'


def _duplicate(resource: DeclaredResource, existing: DeclaredResource) -> EvaluationError:
    place = f" at {existing.place}" if existing.file or existing.line else ""
    message = f"Duplicate declaration: {resource.ref} is already declared{place}; cannot redeclare"
    if resource.file or resource.line:
        message += f" {resource.place}"
    return EvaluationError(message)


def _collision(resource: DeclaredResource, existing: DeclaredResource, key: str, reference: str) -> EvaluationError:
    place = f" at {resource.place}" if resource.file or resource.line else ""
    message = f"Cannot alias {resource.ref} to {key}{place}; resource {reference} already declared"
    if existing.file or existing.line:
        message += f" {existing.place}"
    return EvaluationError(message)

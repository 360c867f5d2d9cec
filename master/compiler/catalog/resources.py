"""Resources of a catalog under construction: attributes, tags, references, containment and uniqueness."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from shared.errors import EvaluationError, Location
from shared.regexps import Regexp

from ..host import NativeType
from ..types.references import ClassType, ResourceType, as_attribute
from ..values.core import DEFAULT, Sensitive, Value, entries
from ..values.text import inspect, to_s

if TYPE_CHECKING:
    from ..evaluation.definitions import Definition, HostClass
    from ..evaluation.scope import Scope

__all__ = [
    "METAPARAMETERS",
    "RELATIONSHIPS",
    "CatalogBuilder",
    "DeclaredResource",
    "ResourceAttribute",
    "capitalized_type",
    "check_tags",
    "flat_tags",
]

RELATIONSHIPS: Final = ("before", "notify", "require", "subscribe")
METAPARAMETERS: Final = frozenset(("alias", "audit", "loglevel", "noop", "schedule", "stage", "tag", *RELATIONSHIPS))
INHERITED: Final = ("noop", "schedule", "audit", "loglevel", "alias", "tag", "stage")
"""Metaparameters that a container hands down. Source: language reference 13, step 9."""

_TAG = re.compile(r"\w[\w:.-]*\n?\Z")
"""What can be a tag; for the reference, too, a line break at the end does not count."""


class ResourceAttribute:
    """A value given to a resource from elsewhere than its own declaration: a default, an override, a collector."""

    __slots__ = ("add", "file", "line", "source", "value")

    def __init__(self, value: Value, source: Definition | None, file: str | None, line: int | None, add: bool = False) -> None:
        self.value = as_attribute(value)
        self.source = source
        self.file = file
        self.line = line
        self.add = add


def capitalized_type(name: str) -> str:
    """`foo::bar` as catalogs write types: `Foo::Bar`."""
    return "::".join([segment.capitalize() for segment in name.split("::")])


def flat_tags(value: Value) -> Iterator[str]:
    """The texts of a `tag` attribute or of the arguments of `tag`, nested arrays flattened; a hash counts as its pairs."""
    if isinstance(value, dict):
        value = [part for pair in entries(value) for part in pair]
    if isinstance(value, list | tuple):
        for item in value:
            if isinstance(item, dict):
                yield inspect(item)
            else:
                yield from flat_tags(item)
    elif value is not None:
        yield value if isinstance(value, str) else str(value.embedded()) if isinstance(value, Regexp) else to_s(value)


def check_tags(tags: Iterable[str], place: Location) -> None:
    """Raise EvaluationError at `place` for the first text that is no tag."""
    for tag in tags:
        if not _TAG.match(tag.lower()):
            raise EvaluationError(f"Invalid tag '{tag.lower()}'", where=place)


class DeclaredResource:
    """
    One resource. `type` is as catalogs write it (`Foo::Bar`); `values` are the attributes in the order they were given.

    `lines` are the lines of attributes in the declaration; an attribute that came from elsewhere is in `origins`.
    `number_title`: what the title was in a call of create_resources; a number is no tag, and no namevar.
    """

    __slots__ = (
        "collected_by",
        "containers",
        "contents",
        "definition",
        "evaluated",
        "exported",
        "file",
        "finished",
        "kind",
        "line",
        "lines",
        "native",
        "number_title",
        "origins",
        "scope",
        "scope_tags_added",
        "sensitive",
        "source",
        "tags",
        "title",
        "type",
        "values",
        "virtual",
    )

    def __init__(
        self,
        type_: str,
        title: str,
        *,
        scope: Scope | None = None,
        source: Definition | None = None,
        file: str | None = None,
        line: int | None = None,
        native: NativeType | None = None,
        definition: Definition | None = None,
        kind: str | None = None,
        number_title: float | None = None,
    ) -> None:
        self.type = type_
        self.title = title
        self.number_title = number_title
        self.values: dict[str, Value] = {}
        self.lines: tuple[tuple[str, int], ...] = ()
        self.origins: dict[str, ResourceAttribute] | None = None
        self.scope = scope
        self.source = source
        self.file = file
        self.line = line
        self.native = native
        self.definition = definition
        self.kind = kind
        self.virtual = False
        self.exported = False
        self.evaluated = False
        self.finished = False
        self.scope_tags_added = False
        self.sensitive: list[str] = []
        self.collected_by: object = None
        self.containers: list[DeclaredResource] = []
        self.contents: list[DeclaredResource] = []
        self.tags: dict[str, None] = {}
        self.add_valid_tag(type_)
        if number_title is None:
            self.add_valid_tag(title)

    @property
    def ref(self) -> str:
        return f"{self.type}[{self.title}]"

    def __repr__(self) -> str:
        return self.ref

    @property
    def is_class(self) -> bool:
        return self.type == "Class"

    @property
    def host_class(self) -> HostClass:
        """The class it stands for."""
        definition: Any = self.definition
        return definition  # type: ignore[no-any-return]

    @property
    def is_isomorphic(self) -> bool:
        return self.native is None or self.native.isomorphic

    @property
    def place(self) -> Location:
        return Location(self.file, self.line)

    def reference(self) -> ResourceType | ClassType:
        """The reference to it as a value."""
        return ClassType(self.title.lower()) if self.is_class else ResourceType(self.type, self.title)

    # --- attributes ---

    def get(self, name: str) -> Value:
        return self.values.get(name)

    def origin(self, name: str) -> ResourceAttribute:
        """Where the value of an attribute came from."""
        if self.origins is not None and name in self.origins:
            return self.origins[name]
        lines = dict(self.lines)
        line = lines.get(name, lines.get("*", self.line))
        return ResourceAttribute(self.values.get(name), self.source, self.file, line)

    def take(self, name: str, attribute: ResourceAttribute, place: Location) -> None:
        """Set an attribute to what came from elsewhere; `place` is to blame for a tag that is none."""
        if self.origins is None:
            self.origins = {}
        self.origins[name] = attribute
        self.values[name] = attribute.value
        if name == "tag":
            self.add_tags(flat_tags(attribute.value), place)

    def set(self, name: str, value: Value) -> None:
        """Set an attribute in the name of the resource itself."""
        self.values[name] = value
        if name == "tag":
            self.add_tags(flat_tags(value))

    def has_parameter(self, name: str) -> bool:
        if name in METAPARAMETERS or name == "name":
            return True
        if self.native is not None:
            return name in self.native.attributes or name in self.native.namevars
        return self.definition is not None and self.definition.has_parameter(name)

    # --- tags ---

    def add_tags(self, tags: Iterable[str], place: Location | None = None) -> None:
        """
        Tag it, lower-cased, and with the segments of qualified tags.

        Raises:
            EvaluationError: a text that is no tag, at `place`.
        """
        for tag in tags:
            name = tag.lower()
            if name in self.tags:
                continue
            if not _TAG.match(name):
                raise EvaluationError(f"Invalid tag '{name}'", where=place)
            self.tags[name] = None
            if "::" in name:
                self.tags.update(dict.fromkeys(name.split("::")))

    def add_valid_tag(self, text: str) -> None:
        """Tag it with `text` if that can be a tag."""
        if _TAG.match(text):
            name = text.lower()
            self.tags[name] = None
            if "::" in name:
                self.tags.update(dict.fromkeys(name.split("::")))

    def add_scope_tags(self) -> None:
        """Take over the tags of the resource whose scope this one was declared in."""
        if self.scope_tags_added:
            return
        self.scope_tags_added = True
        container = self.scope.resource if self.scope is not None else None
        if container is not None and container is not self:
            self.tags.update(container.tags)

    def is_tagged(self, tag: str) -> bool:
        """Whether it has the (lower-case) tag, by itself or from the resource of its scope."""
        if tag in self.tags:
            return True
        container = self.scope.resource if self.scope is not None else None
        return container is not None and container is not self and container.is_tagged(tag)

    def unwrap_sensitive(self) -> None:
        """Take values out of Sensitive and remember the attributes' names."""
        for name, value in self.values.items():
            if isinstance(value, Sensitive):
                self.sensitive.append(name)
                self.values[name] = value.unwrap()


class CatalogBuilder:
    """The resources in order of declaration, found by type and title or by another name."""

    def __init__(self) -> None:
        self.resources: dict[tuple[str, str], DeclaredResource] = {}
        self.aliases: dict[tuple[Any, ...], DeclaredResource] = {}
        self.classes: list[str] = []
        self.tags: dict[str, None] = {}

    def __iter__(self) -> Iterator[DeclaredResource]:
        return iter(self.resources.values())

    def find(self, type_: str, title: str) -> DeclaredResource | None:
        """The resource of that type (as catalogs write it) and title, alias or namevar."""
        found = self.resources.get((type_, title))
        if found is None:
            found = self.aliases.get((type_, title))
        if found is None and type_ == "File" and len(title) > 1 and title.endswith("/"):
            trimmed = title.rstrip("/")
            found = self.resources.get((type_, trimmed)) or self.aliases.get((type_, trimmed))
        return found

    def add(self, resource: DeclaredResource) -> None:
        """
        Raises:
            EvaluationError: something of that type and title, alias or namevar is there already.
        Source: language reference 13.
        """
        key = (resource.type, resource.title)
        existing = self.resources.get(key) or self.aliases.get(key)
        if existing is not None:
            raise duplicate(resource, existing)
        self.resources[key] = resource
        self._add_aliases(resource)
        if resource.native is None or not resource.native.isomorphic:
            return
        unique = uniqueness_key(resource)
        if unique != (resource.title,) and any(part is not None for part in unique):
            self._alias_key(resource, unique)

    def check_aliases(self) -> None:
        """
        Check aliases that came with overrides, or from what contains a resource; references are not found by these.

        Raises:
            EvaluationError: something of that title or alias is there already.
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

    def _alias(self, resource: DeclaredResource, alias: str, shown: str) -> None:
        if alias == resource.title:
            return
        existing = self.resources.get((resource.type, alias)) or self.aliases.get((resource.type, alias))
        if existing is not None and existing is not resource:
            raise _collision(resource, existing, shown, f'["{resource.type}", {shown}]')
        self.aliases[resource.type, alias] = resource

    def _alias_key(self, resource: DeclaredResource, unique: tuple[Any, ...]) -> None:
        key = (resource.type, *unique)
        existing = self.aliases.get(key)
        if existing is None and len(unique) == 1:
            existing = self.resources.get((resource.type, unique[0]))
        if existing is not None:
            if existing is resource:
                return
            texts = ["nil" if part is None else f'"{part}"' for part in unique]
            shown = ", ".join(texts)
            raise _collision(resource, existing, f"[{shown}]", f'["{resource.type}", {shown}]')
        self.aliases[key] = resource

    def contain(self, container: DeclaredResource, resource: DeclaredResource) -> None:
        """An edge."""
        resource.containers.append(container)
        container.contents.append(resource)

    def walk(self, start: DeclaredResource) -> Iterator[tuple[DeclaredResource, DeclaredResource]]:
        """Every edge below `start`, breadth first; each resource is left once."""
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


def uniqueness_key(resource: DeclaredResource) -> tuple[Any, ...]:
    """
    The namevars' values, in the order of their names.

    Raises:
        EvaluationError: the type takes titles apart, and not one like this.
    """
    assert resource.native is not None
    namevars = resource.native.namevars
    titled = parts_of_title(resource)
    parts: list[Any] = []
    for namevar in sorted(namevars):
        value = resource.values.get(namevar)
        if value is None or value is DEFAULT:
            value = titled.get(namevar)
            if value is None and namevar == (namevars[0] if len(namevars) == 1 else "name"):
                value = resource.title
        if resource.native.trim_slashes and isinstance(value, str) and len(value) > 1:
            value = value.rstrip("/") or "/"
        parts.append(value if value is None or isinstance(value, str) else str(value))
    return tuple(parts)


def parts_of_title(resource: DeclaredResource) -> dict[str, Any]:
    """What the title says: attributes by name. Raises: EvaluationError, no pattern of the type fits."""
    assert resource.native is not None
    patterns = resource.native.title_patterns
    if not patterns:
        return {resource.native.namevars[0]: resource.title}
    for regexp, names in patterns:
        match = regexp.search(resource.title)
        if match is not None:
            return dict(zip(names, match.groups(), strict=False))
    raise EvaluationError(f'No set of title patterns matched the title "{resource.title}".')


def duplicate(resource: DeclaredResource, existing: DeclaredResource) -> EvaluationError:
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

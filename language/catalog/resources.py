"""Resources of a catalog under construction: attributes, tags, references, containment and uniqueness."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from typing import Final, Protocol

from shared.errors import EvaluationError, Location
from shared.ral import metaparams
from shared.regexps import Regexp

from ..host import NativeType
from ..types.attribute_references import AttributeReference, as_attribute
from ..types.kinds.references import ClassType, ResourceEntryType
from ..values.core import Sensitive, Value, entries
from ..values.text import inspect, to_s
from .definitions import Definition

RELATIONSHIPS: Final = ("before", "notify", "require", "subscribe")
METAPARAMETERS: Final = frozenset(metaparams.METAPARAMETERS)
INHERITED: Final = tuple(name for name in metaparams.METAPARAMETERS if name not in RELATIONSHIPS)
"""Metaparameters that a container hands down. Source: language reference 13, step 9."""

_TAG = re.compile(r"\w[\w:.-]*\n?\Z")
"""The pattern of tags; as in the reference, a line break at the end does not count."""


class ResourceScope(Protocol):
    """The scope that a resource is declared in, as the resource sees it."""

    @property
    def resource(self) -> DeclaredResource | None:
        """The class, define or node whose body is evaluated in the scope; None in top scope before there is one."""

    @property
    def source(self) -> Definition | None:
        """The definition whose code runs in the scope."""

    def default_attributes(self, type_name: str) -> dict[str, ResourceAttribute] | None:
        """Return the resource defaults of a type in force in the scope; None when there are none."""

    def is_default(self, type_name: str, name: str, value: Value) -> bool:
        """Return whether a resource default in force sets the attribute `name` to this very value."""


class ResourceAttribute:
    """A value given to a resource from elsewhere than its own declaration: a default, an override, a collector."""

    __slots__ = ("add", "file", "line", "source", "value")

    def __init__(self, value: Value, source: Definition | None, file: str | None, line: int | None, add: bool = False) -> None:
        self.value = as_attribute(value)
        self.source = source
        self.file = file
        self.line = line
        self.add = add


@dataclass(eq=False, repr=False, slots=True)
class Override:
    """New values for a resource; `forced`: a collector's, which may replace anything."""

    reference: tuple[str, str]
    attributes: Mapping[str, ResourceAttribute]
    source: Definition | None
    file: str | None
    line: int | None
    _: KW_ONLY
    forced: bool = False


@lru_cache(1024)
def capitalized_type(name: str) -> str:
    """Return a type's name as catalogs write it: `foo::bar` is `Foo::Bar`."""
    return "::".join([segment.capitalize() for segment in name.split("::")])


def flat_tags(value: Value) -> Iterator[str]:
    """
    Yield the texts of a `tag` attribute or of the arguments of `tag`, nested arrays flattened.

    Ruby's splat takes the value apart: a hash counts as its pairs, one reference as nothing.
    """
    if isinstance(value, AttributeReference) and value.title is not None:
        return
    if isinstance(value, dict):
        value = [part for pair in entries(value) for part in pair]
    if isinstance(value, list | tuple):
        for item in value:
            if isinstance(item, dict | AttributeReference):
                yield inspect(item) if isinstance(item, dict) else str(item)
            else:
                yield from flat_tags(item)
    elif value is not None:
        yield value if isinstance(value, str) else str(value.embedded()) if isinstance(value, Regexp) else to_s(value)


def check_tags(tags: Iterable[str], place: Location) -> None:
    """Raise EvaluationError at `place` for the first text that is not a valid tag."""
    for tag in tags:
        if not _TAG.match(tag.lower()):
            raise EvaluationError(f"Invalid tag '{tag.lower()}'", where=place)


def _tags_of(text: str) -> dict[str, None]:
    """Return the tags that a text gives, lower-cased, with the segments of a qualified one; none if it can be no tag."""
    if not _TAG.match(text):
        return {}
    name = text.lower()
    return dict.fromkeys((name, *name.split("::"))) if "::" in name else {name: None}


_tags_of_type = lru_cache(1024)(_tags_of)
"""The same, remembered: a catalog has few types. Callers do not change the answer."""


@dataclass(eq=False, repr=False, slots=True)
class DeclaredResource:
    """
    One resource. `type` is as catalogs write it (`Foo::Bar`); `values` are the attributes in the order they were given.

    `lines` are the lines of attributes in the declaration; an attribute that came from elsewhere is in `origins`.
    `number_title`: the numeric title in a call of create_resources; a number is neither a tag nor a namevar.
    """

    type: str
    title: str
    _: KW_ONLY
    scope: ResourceScope | None = None
    source: Definition | None = None
    file: str | None = None
    line: int | None = None
    native: NativeType | None = None
    definition: Definition | None = None
    kind: str | None = None
    number_title: float | None = None
    values: dict[str, Value] = field(default_factory=dict, init=False)
    lines: tuple[tuple[str, int], ...] = field(default=(), init=False)
    origins: dict[str, ResourceAttribute] | None = field(default=None, init=False)
    virtual: bool = field(default=False, init=False)
    exported: bool = field(default=False, init=False)
    evaluated: bool = field(default=False, init=False)
    finished: bool = field(default=False, init=False)
    scope_tags_added: bool = field(default=False, init=False)
    sensitive: list[str] = field(default_factory=list, init=False)
    collected_by: tuple[str, str, str] | None = field(default=None, init=False)  # certname, type and title of the export
    containers: list[DeclaredResource] = field(default_factory=list, init=False)
    contents: list[DeclaredResource] = field(default_factory=list, init=False)
    tags: dict[str, None] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.tags.update(_tags_of_type(self.type))
        if self.number_title is None:
            self.add_valid_tag(self.title)

    @property
    def ref(self) -> str:
        return f"{self.type}[{self.title}]"

    def __repr__(self) -> str:
        return self.ref

    @property
    def is_class(self) -> bool:
        return self.type == "Class"

    @property
    def place(self) -> Location:
        return Location(self.file, self.line)

    def reference(self) -> ResourceEntryType | ClassType:
        """Return the reference to it as a value."""
        return ClassType(self.title.lower()) if self.is_class else ResourceEntryType(self.type, self.title)

    # --- attributes ---

    def get(self, name: str) -> Value:
        return self.values.get(name)

    def origin(self, name: str) -> ResourceAttribute:
        """Return the value of an attribute with the definition and the place that it came from."""
        if self.origins is not None and name in self.origins:
            return self.origins[name]
        lines = dict(self.lines)
        line = lines.get(name, lines.get("*", self.line))
        return ResourceAttribute(self.values.get(name), self.source, self.file, line)

    def take(self, name: str, attribute: ResourceAttribute, place: Location) -> None:
        """Set an attribute to a value from elsewhere; an error about an invalid tag names `place`."""
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
        Add tags in lower case, and the segments of qualified tags.

        Raises:
            EvaluationError: a text is not a valid tag; the error names `place`.
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
        self.tags.update(_tags_of(text))

    def add_scope_tags(self) -> None:
        """Take over the tags of the resource whose scope this one was declared in."""
        if self.scope_tags_added:
            return
        self.scope_tags_added = True
        container = self.scope.resource if self.scope is not None else None
        if container is not None and container is not self:
            self.tags.update(container.tags)

    def is_tagged(self, tag: str) -> bool:
        """Return whether it has the (lower-case) tag, by itself or from the resource of its scope."""
        if tag in self.tags:
            return True
        container = self.scope.resource if self.scope is not None else None
        return container is not None and container is not self and container.is_tagged(tag)

    def unwrap_sensitive(self) -> None:
        """Take values out of Sensitive and remember the attributes' names."""
        if Sensitive not in map(type, self.values.values()):
            return
        for name, value in self.values.items():
            if isinstance(value, Sensitive):
                self.sensitive.append(name)
                self.values[name] = value.unwrap()


def parts_of_title(resource: DeclaredResource) -> dict[str, str | None]:
    """Return the attributes that the title sets, by name; raise EvaluationError when no title pattern of the type matches."""
    assert resource.native is not None
    patterns = resource.native.title_patterns
    if not patterns:
        return {resource.native.namevars[0]: resource.title}
    for regexp, names in patterns:
        match = regexp.search(resource.title)
        if match is not None:
            return dict(zip(names, match.groups(), strict=False))
    raise EvaluationError(f'No set of title patterns matched the title "{resource.title}".')

"""The resources of one catalog, checked and connected, ready for a transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..data import richdata
from ..errors import Location, PuppetError, ResourceError, Unsupported
from ..models.catalog import Catalog, CatalogResource
from .components import Component, Unmanaged
from .core import Origin, PendingValue, Type
from .references import Ref
from .secrets import Secrets

Resolver = Callable[[richdata.WireDeferred], Any]

_CONTAINERS = frozenset(("class", "node"))
_HINT = "Resources of this type cannot be applied yet; the rest of the catalog is."


class RalCatalog:
    """
    The resources of one catalog by reference and alias, in order, with their containment.

    `order` begins as the catalog's; generated resources are put next to their generator.
    """

    def __init__(
        self, types: Mapping[str, type[Type]], *, name: str = "", version: int | str | None = None, environment: str | None = None
    ) -> None:
        self.types = types
        self.name = name
        self.version = version
        self.environment = environment
        self.classes: list[str] = []
        self.order: list[Type] = []
        self._table: dict[Ref, Type] = {}
        self._keys: dict[tuple[str, ...], Type] = {}
        self._absent: set[Ref] = set()  # known to be absent since a resource was last added: thousands of files look for the same folders
        self._children: dict[Type, list[Type]] = {}
        self._parents: dict[Type, list[Type]] = {}
        self._paths: dict[Type, list[str]] = {}

    def find(self, ref: Ref) -> Type | None:
        """Return the resource of that reference or alias, or the one whose namevars the reference's title gives; None: there is none."""
        resource = self._table.get(ref)
        if resource is None and ref not in self._absent:
            resource = self._by_name(ref)
            if resource is None:
                self._absent.add(ref)
        return resource

    def _by_name(self, ref: Ref) -> Type | None:
        if ref.type not in self.types or not self.types[ref.type].declaration.isomorphic:
            return None
        cls = self.types[ref.type]
        try:
            names = cls.names_in(ref.title)
        except ResourceError:
            return None
        return self._keys.get((ref.type, *(str(names.get(n)) for n in cls.declaration.namevars)))

    def add(self, resource: Type, *, after: Type | None = None, before: Type | None = None, within: Type | None = None) -> None:
        """
        Add a resource, at the end or next to another.

        Raises:
            ResourceError: its reference, name or an alias is taken.
        """
        if resource.ref in self._table:
            raise ResourceError(f"Duplicate declaration: {resource.ref} is already declared", where=resource.origin.where)
        self._absent.clear()
        self._table[resource.ref] = resource
        self._add_names(resource)
        if after is not None:
            self.order.insert(self.order.index(after) + 1, resource)
        elif before is not None:
            self.order.insert(self.order.index(before), resource)
        else:
            self.order.append(resource)
        if within is not None:
            self.contain(within, resource)

    def _add_names(self, resource: Type) -> None:
        for alias in resource.alias:
            self._alias(resource, Ref(resource.ref.type, alias), alias)
        if not resource.declaration.isomorphic or isinstance(resource, Component | Unmanaged):
            return
        key = (resource.ref.type, *(str(resource.value_of(n)) for n in resource.declaration.namevars))
        other = self._keys.setdefault(key, resource)
        if other is not resource:
            raise _alias_taken(resource, list(key[1:]), other)
        if len(key) == 2 and key[1] != resource.title:
            self._alias(resource, Ref(resource.ref.type, key[1]), key[1])
        elif resource.ref.title != resource.title:
            self._alias(resource, Ref(resource.ref.type, resource.title), resource.title)

    def _alias(self, resource: Type, ref: Ref, alias: str) -> None:
        other = self._table.setdefault(ref, resource)
        if other is not resource:
            raise _alias_taken(resource, [alias], other)

    def contain(self, container: Type, resource: Type) -> None:
        """Record that one resource is inside another; the first container of a resource is the one in its path."""
        self._children.setdefault(container, []).append(resource)
        self._parents.setdefault(resource, []).append(container)
        self._paths.clear()

    def children(self, container: Type) -> Sequence[Type]:
        return self._children.get(container, ())

    def container_of(self, resource: Type) -> Type | None:
        """Return the innermost class, define or stage around a resource."""
        parents = self._parents.get(resource)
        return parents[0] if parents else None

    def path_of(self, resource: Type) -> list[str]:
        """Return the containment path, outermost first: `Stage[main]`, `Apache`, `File[/x]`."""
        path = self._paths.get(resource)
        if path is None:
            chain: dict[Type, None] = {}
            inner: Type | None = resource
            while inner is not None and inner not in chain:  # a hostile catalog may contain itself
                chain[inner] = None
                inner = self.container_of(inner)
            path = [container.title if container.ref.type == "class" else str(container.ref) for container in reversed(chain)]
            self._paths[resource] = path
        return path


def _alias_taken(resource: Type, names: list[str], other: Type) -> ResourceError:
    label = str(resource.ref).partition("[")[0]
    quoted_names = ", ".join(f'"{name}"' for name in names)
    location = f" at {resource.origin.where}" if resource.origin.where else ""
    other_location = f" {other.origin.where}" if other.origin.where else ""
    return ResourceError(
        f'Cannot alias {resource.ref} to [{quoted_names}]{location}; resource ["{label}", {quoted_names}] already declared{other_location}'
    )


def resources_of(
    catalog: Catalog,
    types: Mapping[str, type[Type]],
    *,
    known: frozenset[str] = frozenset(),
    defaults: Sequence[Type] = (),
    resolve: Resolver | None = None,
    late: bool = False,
    broken: Mapping[str, PuppetError] | None = None,
) -> RalCatalog:
    """
    Return the resources of a catalog as it came over the wire.

    A wrong resource refuses the whole catalog, before anything is applied, as in the reference. One of a type that is not supported
    on this system has a `fault`, and fails when it is evaluated.

    Args:
        types: the types that can be applied, by name.
        known: names of further types, which are neither classes nor defines.
        defaults: resources that are added where the catalog has none of that reference.
        resolve: calls a Deferred value's function.
        late: Deferred values are resolved at their resource's turn, when all that it depends on has been applied.
        broken: types of modules that could not be loaded, and why.
    Raises:
        ResourceError, BadData: a resource cannot be managed (an unknown type or attribute, a bad value), or the catalog is not
            consistent: a resource is declared twice, a relationship leads nowhere.
    """
    catalog.checked()
    resources = RalCatalog(types, name=catalog.name, version=catalog.version, environment=catalog.environment)
    resources.classes = list(catalog.classes)
    reader = _Reader(types, known, frozenset(edge.source for edge in catalog.edges), resolve, late, broken or {})
    resources_by_ref: dict[str, Type] = {}
    readings = [reader.read(wire) for wire in catalog.resources if not wire.virtual]
    _prepare(readings, types)
    for reading in readings:
        wire = reading.wire
        resources_by_ref[wire.ref] = reader.resource(reading)
        with _without_secrets(resources_by_ref[wire.ref]):
            resources.add(resources_by_ref[wire.ref])
    for edge in catalog.edges:
        if edge.source in resources_by_ref and edge.target in resources_by_ref:
            resources.contain(resources_by_ref[edge.source], resources_by_ref[edge.target])
    for resource in defaults:
        if resources.find(resource.ref) is None:
            resources.add(resource)
    check_relationships(resources)
    for resource in resources.order:
        with resource.own_errors():
            resource.check_catalog(resources)
    return resources


@dataclass(slots=True)
class _Reading:
    """A resource of the wire with its values read; `error` is why they cannot be."""

    wire: CatalogResource
    ref: Ref
    origin: Origin
    plain: dict[str, Any]
    error: ResourceError | None = None


def _prepare(readings: Sequence[_Reading], types: Mapping[str, type[Type]]) -> None:
    """Let types that make many resources at once know them all."""
    by_type: dict[type[Type], list[tuple[str, Mapping[str, Any], Origin]]] = {}
    for reading in readings:
        declared = types.get(reading.ref.type)
        if reading.error is None and declared is not None and declared.prepare.__func__ is not Type.prepare.__func__:  # type: ignore[attr-defined]
            by_type.setdefault(declared, []).append((reading.wire.title, reading.plain, reading.origin))
    for declared, resources in by_type.items():
        # What it cannot tell all at once, it is asked for each.
        with suppress(ResourceError):
            declared.prepare(resources)


@contextmanager
def _without_secrets(resource: Type) -> Iterator[None]:
    """Remove a resource's Sensitive values from any error that the block raises."""
    try:
        yield
    except PuppetError as err:
        resource.strip_secrets(err)
        raise


def check_relationships(resources: RalCatalog) -> None:
    """Raise ResourceError for the first reference in a relationship that leads nowhere."""
    for resource in resources.order:
        with _without_secrets(resource):
            _check_relationships_of(resource, resources)


def _check_relationships_of(resource: Type, resources: RalCatalog) -> None:
    for attribute, word in (("require", "dependency"), ("subscribe", "dependency"), ("before", "dependent"), ("notify", "dependent")):
        for ref in resource.value_of(attribute):
            if resources.find(ref) is None:
                raise ResourceError(f"Could not find {word} {ref} for {resource.ref}", where=resource.origin.where)


def _as_resource_error(err: PuppetError, where: Location | None) -> ResourceError:
    return err if isinstance(err, ResourceError) else ResourceError(err.message, where=where, hint=err.hint)


def _unforeseen(err: Exception, plain: Mapping[str, Any], secret: Iterable[str], where: Location | None) -> ResourceError:
    values = Secrets()
    values.add([plain[name] for name in secret if name in plain])
    return ResourceError(f"{type(err).__name__}: {values.hide(str(err))}", where=where)


@dataclass(eq=False, repr=False)
class _Reader:
    """Converts resources of the wire into resources of their types."""

    types: Mapping[str, type[Type]]
    known: frozenset[str]
    containers: frozenset[str]
    resolve: Resolver | None
    late: bool
    broken: Mapping[str, PuppetError]

    def read(self, wire: CatalogResource) -> _Reading:
        """Return a resource with its values read: Sensitive unwrapped, Deferred resolved now or when the resource is evaluated."""
        ref = Ref(wire.type, wire.title)
        where = Location(wire.file, wire.line) if wire.file or wire.line else None
        plain: dict[str, Any] = {}
        pending: dict[str, PendingValue] = {}
        secret = set(wire.sensitive_parameters)
        error: ResourceError | None = None
        try:
            for name, value in wire.parameters.items():
                read = richdata.read(value)
                if self._may_wait(ref, name) and richdata.has_deferred(read):
                    pending[name] = partial(self._unwrap, read)
                    continue
                plain[name], hidden = self._unwrap(read)
                if hidden:
                    secret.add(name)
        except PuppetError as err:
            error = _as_resource_error(err, where)
        except Exception as err:  # noqa: BLE001  # a function of a module may fail in any way
            error = _unforeseen(err, plain, secret, where)
        origin = Origin(where, _tags(wire, plain), wire.exported, sensitive=frozenset(secret), pending=pending)
        return _Reading(wire, ref, origin, plain, error)

    def resource(self, reading: _Reading) -> Type:
        """Return the resource that was read; raise ResourceError for one that cannot be managed."""
        ref, origin, plain = reading.ref, reading.origin, reading.plain
        if reading.error is not None:
            raise reading.error
        try:
            if self._is_container(reading.wire, ref):
                return Component(ref, plain, origin)
            if ref.type not in self.types:
                return self._missing(ref, plain, origin)
            return self.types[ref.type](reading.wire.title, plain, origin)
        except PuppetError as err:
            raise _as_resource_error(err, origin.where) from err
        except Exception as err:  # a module's type may fail in any way
            raise _unforeseen(err, plain, origin.sensitive, origin.where) from err

    def _may_wait(self, ref: Ref, name: str) -> bool:
        """
        Return whether an attribute's value is not needed before its resource is evaluated; those of classes and defines are never needed.
        """
        if not self.late or ref.type not in self.types:
            return self.late
        declaration = self.types[ref.type].declaration
        declared = declaration.attributes.get(name)
        return declared is not None and not declared.meta and name != "provider" and name not in declaration.namevars

    def _unwrap(self, value: Any) -> tuple[Any, bool]:
        """Return a value without anything Sensitive or Deferred, and whether it is secret: it was Sensitive, or made from a Sensitive."""
        resolved, is_secret = self._resolve(value)
        plain, hidden = richdata.without_sensitive(resolved)
        return plain, hidden or is_secret

    def _resolve(self, value: Any) -> tuple[Any, bool]:
        """Return a value with the results of its Deferred calls, and whether one of these was given anything Sensitive."""
        if not richdata.has_deferred(value):
            return value, False
        if self.resolve is None:
            hint = "Start it as `puppet agent`, which has the functions, or call the function in the manifest."
            raise Unsupported("Deferred values cannot be resolved by this agent", hint=hint)
        resolve = self.resolve
        secrets_given: list[Any] = []

        def call(deferred: richdata.WireDeferred) -> Any:
            secrets_given.extend(richdata.sensitive_in(deferred.arguments))
            return resolve(deferred)

        try:
            return self._walk(value, call), bool(secrets_given)
        except PuppetError as err:
            secrets = Secrets()
            secrets.add([richdata.sensitive_in(value), secrets_given])
            err.message, err.hint = secrets.hide(err.message), secrets.hide(err.hint)
            raise

    def _walk(self, value: Any, resolve: Resolver) -> Any:
        if isinstance(value, richdata.WireDeferred):
            arguments = tuple(self._walk(argument, resolve) for argument in value.arguments)
            return resolve(richdata.WireDeferred(value.name, arguments))
        if isinstance(value, richdata.WireSensitive):
            return richdata.WireSensitive(self._walk(value.value, resolve))
        if isinstance(value, list):
            return [self._walk(item, resolve) for item in value]
        if isinstance(value, Mapping):
            return {key: self._walk(item, resolve) for key, item in value.items()}
        return value

    def _is_container(self, wire: CatalogResource, ref: Ref) -> bool:
        if wire.kind:
            return wire.kind in ("class", "defined_type", "definition", "node") or (wire.kind == "unknown" and ref.type in _CONTAINERS)
        if ref.type in self.types or ref.type in self.known or ref.type in self.broken:
            return False
        # Masters before 7 do not mark defines; a type of a module that is missing here must not be taken for one.
        return ref.type in _CONTAINERS or "::" in ref.type or wire.ref in self.containers

    def _missing(self, ref: Ref, plain: Mapping[str, Any], origin: Origin) -> Type:
        """Return a placeholder for a resource of a type that is not supported on this system; raise ResourceError for any other type."""
        hint = f"This agent needs the type in Python: lib/puppet/type/{ref.type}.py in the module that has it in Ruby."
        error = ResourceError(f"Could not find resource type '{ref.type}'", where=origin.where, hint=hint)
        if ref.type in self.broken:
            error = ResourceError(str(self.broken[ref.type]), where=origin.where, hint=self.broken[ref.type].hint)
        elif ref.type in self.known:
            error = ResourceError(f"The type '{ref.type}' is not supported by this agent yet", where=origin.where, hint=_HINT)
        if ref.type in self.known or isinstance(self.broken.get(ref.type), Unsupported):
            return Unmanaged(ref, error, plain, origin)
        raise error


def _tags(wire: CatalogResource, plain: Mapping[str, Any]) -> tuple[str, ...]:
    more = plain.get("tag", ())
    own = [str(tag).lower() for tag in (more if isinstance(more, list | tuple) else [more])]
    return tuple(dict.fromkeys([*wire.tags, *own]))

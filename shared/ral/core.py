"""Types and their resources: a class body declares a type, an instance is one resource of a catalog."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

from ..errors import Location, PuppetError, ResourceError
from .attributes import Param, Property, TypeDeclaration, refusal
from .handling import Handler
from .messages import ABSENT
from .metaparams import RELATIONSHIPS, Metaparams
from .references import Ref
from .secrets import HIDDEN, Secrets

TitlePatterns = Sequence[tuple[str, Sequence[str | tuple[str, Callable[[str], Any]]]]]
WHOLE_TITLE = r"(.*)"  # the pattern that every title matches

PendingValue = Callable[[], tuple[Any, bool]]
"""Gives an attribute's value, and whether it is a secret; PuppetError when there is none."""


_TAG = re.compile(r"\w[\w:.-]*\Z")


def _parts_of_title(pattern: str, title: str) -> Sequence[str | None] | None:
    """Return the groups that a pattern matches in a title; None when it does not match all of it."""
    import regex  # here, because few types split their titles, and the engine takes 1.5 MB

    from ..regexps import match_whole

    match = match_whole(regex.compile(pattern, regex.DOTALL), title)
    return None if match is None else match.groups()


def own_tags(type_name: str, title: str) -> tuple[str, ...]:
    """Return the tags that a resource has by its type and title, whatever its origin."""
    names = [name.lower() for name in (type_name, title) if _TAG.match(name)]
    return tuple(dict.fromkeys(tag for name in names for tag in (name, *name.split("::")) if tag))


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a resource; only `pending` influences how it is applied."""

    where: Location | None = None
    tags: tuple[str, ...] = ()
    exported: bool = False
    virtual: bool = False
    sensitive: frozenset[str] = frozenset()  # attributes whose values may not be shown
    purging: bool = False  # generated to remove what nobody manages
    # Attributes whose values are only known at the resource's turn: until `resolve_pending` they count as not set, and
    # the resource is not validated.
    pending: Mapping[str, PendingValue] = field(default_factory=dict)


class Surroundings(Protocol):
    """The run that a resource is part of, as far as resources may use it."""

    @property
    def noop(self) -> bool:
        """Return whether the whole run only simulates."""

    def find(self, ref: Ref) -> Type | None:
        """Return the resource of that reference, aliases included; None: there is none."""

    def managed(self, type_name: str) -> Sequence[Type]:
        """Return all resources of that type, in order."""

    def same_provider_successors(self, resource: Type, fits: Callable[[Type], bool]) -> Sequence[Type]:
        """
        Return the resources that directly follow the current one, have the same provider, may be changed, and satisfy `fits`.

        The sequence ends before the first that does not fit, and where another resource is evaluated in between.
        """

    def mark_applied_early(self, resources: Iterable[Type]) -> None:
        """Record resources that were changed early: they are evaluated in any case, so that the change is reported."""

    def path_of(self, resource: Type) -> str:
        """Return the containment path, as logs show it: `/Stage[main]/Main/File[/x]`."""

    def log(self, level: str, message: str, *, resource: Type, attribute: str = "") -> None:
        """Log `message` with the resource (or one attribute of it) as its source."""


class CompleteCatalog(Protocol):
    """The catalog as a resource sees it once all resources are in it; see `RalCatalog`."""

    @property
    def types(self) -> Mapping[str, type[Type]]:
        """Return the types that can be applied, by name."""

    @property
    def order(self) -> Sequence[Type]:
        """Return all resources, in the catalog's order."""

    def find(self, ref: Ref) -> Type | None:
        """Return the resource of that reference, aliases included; None: there is none."""


class Type(Metaparams):
    """
    Base of all types; a subclass's body is the whole declaration, an instance is a resource.

        class DnsZone(Type, name="dnszone"):
            ensure = ensurable()
            name = Param(str, namevar=True)
            email = Property(str)

    Keywords of the class statement: `name`, `features` (name → doc), `isomorphic`, `refreshable` (the provider's `refresh`
    is called when something it subscribes to changed), `self_refresh`, `depth_first`, `apply_to`, `ensure_retrieved`;
    see Declaration; `providers=False`: there is nothing to choose, so no attribute `provider`.
    Nothing is registered by declaring: `shared.types.builtin_types` and the plugin loader collect.
    """

    declaration: ClassVar[TypeDeclaration]
    elsewhere: ClassVar[frozenset[str]] = frozenset()
    """The names of Puppet's own providers of this type that are not here, most of them for other systems than Linux."""

    # A manifest may choose among the providers by name.
    provider = Param(str, doc="The provider to use; by default the system's own.")

    def __init_subclass__(  # noqa: PLR0913
        cls,
        *,
        name: str = "",
        features: Mapping[str, str] | None = None,
        isomorphic: bool = True,
        refreshable: bool = False,
        self_refresh: bool = False,
        depth_first: bool = False,
        apply_to: str = "host",
        ensure_retrieved: bool = True,
        providers: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        if not name:
            return  # a base for several types
        for member in vars(cls):
            if isinstance(vars(cls)[member], Param) and member in _RESERVED:
                raise TypeError(f"{cls.__name__}.{member} hides a part of Type; declare the attribute as {member}_")
        cls.declaration = TypeDeclaration(
            name=name,
            doc=(cls.__doc__ or "").strip(),
            attributes={n: a for n, a in _attributes_in_order(cls).items() if providers or n != "provider"},
            features=features or {},
            isomorphic=isomorphic,
            refreshable=refreshable,
            self_refresh=self_refresh,
            depth_first=depth_first,
            apply_to=apply_to,
            ensure_retrieved=ensure_retrieved,
        )
        if not cls.declaration.namevars:
            raise TypeError(f"{cls.__name__} declares no namevar")

    def __init__(self, title: str, parameters: Mapping[str, Any], origin: Origin | None = None, *, ref: Ref | None = None) -> None:
        """
        Create a resource, checked and complete.

        Args:
            parameters: attribute → value as a manifest has it (wire values; Sensitive already unwrapped, see Origin).
            ref: the reference by which others name it, when that is not its type and title.
        Raises:
            ResourceError: an unknown attribute, a refused value, or the message of the type's own `validate`; with file and line.
        """
        self.title = title
        self.origin = origin or Origin(tags=own_tags(self.declaration.name, title))
        self.ref = ref or Ref(self.declaration.name, title)
        self.surroundings: Surroundings | None = None
        self.handler: Handler[Any] | None = None  # the provider, once the run has chosen it
        self.fault: ResourceError | None = None  # why its evaluation fails; only of a type that is not supported here
        self._values: dict[str, Any] = {}
        self._given: set[str] = set()
        self.redaction = Secrets()
        self.pending = self.origin.pending
        try:
            self._assign_all(parameters)
            self._complete_and_validate()
        except ResourceError as err:
            err.where = err.where or self.origin.where
            self.strip_secrets(err)
            raise

    @classmethod
    def prepare(cls, resources: Sequence[tuple[str, Mapping[str, Any], Origin]]) -> None:
        """Called once with the titles, attributes and origins of all of a catalog's resources of this type, just before they are made."""

    # --- values

    def _assign_all(self, parameters: Mapping[str, Any]) -> None:
        desired = dict(parameters)
        for attribute, value in self._values_from_title(desired).items():
            desired.setdefault(attribute, value)
        known = self.declaration.attributes
        for attribute in desired:
            if attribute not in known:
                raise ResourceError(f"no parameter named '{attribute}'")
        for attribute in sorted(desired, key=list(known).index):
            if desired[attribute] is None:
                raise ResourceError(f"Got nil value for {attribute}")
            self.assign(attribute, desired[attribute])
            if attribute in parameters:
                self._given.add(attribute)

    def _complete_and_validate(self) -> None:
        for attribute in self.declaration.defaulted:
            if attribute.name not in self._values and attribute.name not in self.pending:
                self._assign_default(attribute)
        if self.pending:
            return
        try:
            self.validate()
        except (ValueError, ResourceError) as err:
            detail = self.redaction.hide(err.message if isinstance(err, ResourceError) else str(err))
            raise ResourceError(f"Validation of {self.ref} failed: {detail}", where=self.origin.where) from err

    def resolve_pending(self) -> None:
        """
        Resolve the values that were deferred until this resource is evaluated.

        Raises:
            PuppetError: a value cannot be resolved, is refused, or does not fit the others; the rest may be set already.
        """
        for attribute, late in self.pending.items():
            value, secret = late()
            if value is None:
                raise ResourceError(f"Got nil value for {attribute}", where=self.origin.where)
            if secret:
                self.origin = replace(self.origin, sensitive=self.origin.sensitive | {attribute})
            self.assign(attribute, value)
            self._given.add(attribute)
        self.pending = {}
        self._complete_and_validate()

    def _assign_default(self, attribute: Param[Any]) -> None:
        value = attribute.default_for(self)
        if value is not None and self.redaction.are_in(value):  # made of an attribute that is Sensitive
            self.origin = replace(self.origin, sensitive=self.origin.sensitive | {attribute.name})
        if value is not None:
            self._values[attribute.name] = [value] if isinstance(attribute, Property) and not isinstance(value, list) else value

    def _values_from_title(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        namevars = self.declaration.namevars
        if len(namevars) == 1 and namevars[0] in parameters and type(self).title_patterns is Type.title_patterns:
            return {}
        return self.names_in(self.title)

    def value_of(self, attribute: str) -> Any:
        """Return an attribute's value; of a property without `many` the first desired value; None: it has none."""
        value = self._values.get(attribute)
        declared = self.declaration.attributes.get(attribute)
        if declared is None:
            return value
        if declared.is_property:
            return value if declared.many or value is None else value[0] if value else None
        return [] if value is None and declared.many else value

    def wanted(self, attribute: str) -> list[Any] | None:
        """Return all desired values of a property (see Property); None when it is not managed."""
        return self._values.get(attribute)

    def assign(self, attribute: str, value: Any) -> None:
        """Set an attribute as if the manifest had: checked and converted; ResourceError when it is refused."""
        declared = self.declaration.attributes[attribute]
        # The title names the resource in every message: a value of the same text is no secret.
        secret = self.is_sensitive(attribute) and value not in (self.title, [self.title])
        if secret:
            self.redaction.add(value)
        try:
            self._values[attribute] = declared.accept(self, value)
            if secret:
                self.redaction.add(self._values[attribute])
        except (ValueError, PuppetError) as err:
            raise refusal(attribute, self, value, err) from err

    def forget(self, attribute: str) -> None:
        """Leave an attribute unmanaged."""
        self._values.pop(attribute, None)

    def is_given(self, attribute: str) -> bool:
        """Return whether the manifest sets the attribute; defaults and values out of the title do not count."""
        return attribute in self._given

    def is_sensitive(self, attribute: str) -> bool:
        """Return whether an attribute's values may not be shown."""
        declared = self.declaration.attributes.get(attribute)
        return attribute in self.origin.sensitive or bool(declared and declared.sensitive)

    def secrets(self) -> list[str]:
        """Return the texts in all values that may not be shown."""
        return [text for name, value in self._values.items() if self.is_sensitive(name) for text in _texts_in(value)]

    def without_secrets(self, text: str) -> str:
        """Return the text of a failure without this resource's Sensitive values; references to the resource stay."""
        if not self.redaction:
            return text
        ref = str(self.ref)
        return self.redaction.hide(text.replace(ref, "\0")).replace("\0", ref)

    def strip_secrets(self, error: PuppetError) -> None:
        """Leave this resource's Sensitive values out of an error's message and hint."""
        if not self.redaction:
            return
        message = self.without_secrets(error.message)
        error.message = f"{self.ref}: {message}" if message == HIDDEN else message
        error.hint = "" if self.redaction.reveals(error.hint) else error.hint

    @contextmanager
    def own_errors(self) -> Iterator[None]:
        """Raise any error of the block as a ResourceError without this resource's Sensitive values; a module's type may fail in any way."""
        try:
            yield
        except ResourceError as err:
            self.strip_secrets(err)
            raise
        except Exception as err:
            text = err.message if isinstance(err, PuppetError) else f"{type(err).__name__}: {err}"
            raise ResourceError(self.without_secrets(text), where=self.origin.where) from err

    @property
    def given(self) -> Mapping[str, Any]:
        """Return the attributes that the manifest sets, converted."""
        return {name: self._values[name] for name in self._values if name in self._given}

    @property
    def manages_anything(self) -> bool:
        """Return whether some property has a desired value."""
        return any(p.name in self._values or p.name in self.pending for p in self.declaration.properties)

    @property
    def key(self) -> str:
        """Return the namevar's value as text, the thing's name on the system; several are joined by '/'."""
        return "/".join(str(self._values.get(n, self.title)) for n in self.declaration.namevars)

    # --- what a type may override; all pure

    @classmethod
    def title_patterns(cls) -> TitlePatterns:
        """
        Return the patterns that split a title: `[(regex, [attribute or (attribute, conversion), …]), …]`, the first that matches in full
        wins.

        By default the title is the namevar; a type with several namevars must override this.
        """
        namevars = cls.declaration.namevars
        if len(namevars) > 1:
            raise ResourceError(f"The type {cls.declaration.name} has several namevars but does not declare how to split a title")
        return [(WHOLE_TITLE, [namevars[0]])]

    @classmethod
    def names_in(cls, title: str) -> dict[str, Any]:
        """Return the attributes that a title sets, by `title_patterns`."""
        for pattern, targets in cls.title_patterns():
            parts = (title,) if pattern == WHOLE_TITLE else _parts_of_title(pattern, title)
            if parts is not None:
                pairs = [(t, None) if isinstance(t, str) else t for t in targets]
                captured = zip(pairs, parts, strict=False)
                return {name: convert(text) if convert else text for (name, convert), text in captured if text is not None}
        raise ResourceError(f'No set of title patterns matched the title "{title}".')

    def validate(self) -> None:
        """Raise ValueError when the attributes, each fine by itself, do not fit together."""

    def check_catalog(self, catalog: CompleteCatalog) -> None:
        """Raise ResourceError when the catalog, which is complete now, lacks something that this resource needs; it becomes its `fault`."""

    def pre_run_check(self) -> None:
        """Raise ResourceError when the whole run may not start; called for every resource before the first is evaluated."""

    def autorequire(self) -> Iterator[Ref]:
        """Yield references to resources that come before this one, if they are in the catalog."""
        return iter(())

    def autobefore(self) -> Iterator[Ref]:
        """Yield references to resources that come after this one, if they are in the catalog."""
        return iter(())

    def autosubscribe(self) -> Iterator[Ref]:
        """Yield references to resources that come before this one and refresh it, if they are in the catalog."""
        return iter(())

    def autonotify(self) -> Iterator[Ref]:
        """Yield references to resources that come after this one and are refreshed by it, if they are in the catalog."""
        return iter(())

    def exists_in(self, state: Mapping[str, Any]) -> bool:
        """Return whether a complete state (every property has a value) is that of an existing thing, whose properties count."""
        return state.get("ensure", "present") not in (ABSENT, None)

    def ancestors(self) -> Iterator[str]:
        """
        Yield the keys of the containers of this thing on the system (a file's directories), nearest first; orders generated resources.
        """
        return iter(())

    # --- within a run

    def find(self, ref: Ref) -> Type | None:
        """Return another resource of the same run; None when no resource has that reference."""
        return self.surroundings.find(ref) if self.surroundings else None

    def managed(self, type_name: str) -> Sequence[Type]:
        """Return all resources of a type in the same run."""
        return self.surroundings.managed(type_name) if self.surroundings else ()

    def same_provider_successors(self, fits: Callable[[Type], bool]) -> Sequence[Type]:
        """Return the resources after the current one that could be changed together with it; see Surroundings."""
        return self.surroundings.same_provider_successors(self, fits) if self.surroundings else ()

    def log(self, level: str, message: str, attribute: str = "") -> None:
        """Log a message with this resource (or one of its attributes) as the source."""
        if self.surroundings:
            self.surroundings.log(level, message, resource=self, attribute=attribute)

    @property
    def simulated(self) -> bool:
        """Return whether this resource may not be changed: its own `noop`, else the run's."""
        own: bool | None = self.noop
        return own if own is not None else bool(self.surroundings and self.surroundings.noop)

    def given_metaparameters(self, *, relationships: bool) -> dict[str, Any]:
        """
        Return the metaparameters in its declaration that hold for resources made of it, too; `alias` and `stage` are its own.

        Args:
            relationships: with those to other resources.
        """
        own = {"alias", "stage", *(() if relationships else RELATIONSHIPS)}
        return {name: value for name, value in self.given.items() if self.declaration.attributes[name].meta and name not in own}

    def child(self, title: str, parameters: Mapping[str, Any], *, origin: Origin | None = None, type: type[Type] | None = None) -> Type:
        """Return a new resource (by default of the same type) with this one's tags, for `generate` and `eval_generate`."""
        origin = origin or Origin(tags=self.origin.tags)
        secret = {name for name, value in parameters.items() if self.redaction.are_in(value)}  # Sensitive values stay so in the child
        resource = (type or self.__class__)(title, parameters, replace(origin, sensitive=origin.sensitive | secret))
        resource.surroundings = self.surroundings
        return resource

    def __str__(self) -> str:
        return str(self.ref)

    def __repr__(self) -> str:
        return f"<{self.ref}>"


def _attributes_in_order(cls: type[Type]) -> dict[str, Param[Any]]:
    """Return a class's attributes in Puppet's own order: namevars, `provider`, `ensure`, properties, parameters, metaparameters."""
    attributes: dict[str, Param[Any]] = {}
    for base in reversed(cls.__mro__):
        for member in vars(base).values():
            if isinstance(member, Param):
                attributes.pop(member.name, None)
                attributes[member.name] = member

    def rank(attribute: Param[Any]) -> int:
        tests = (attribute.namevar, attribute.name == "provider", attribute.name == "ensure", attribute.is_property, not attribute.meta)
        return tests.index(True) if True in tests else len(tests)

    return {a.name: a for a in sorted(attributes.values(), key=rank)}


_RESERVED = frozenset(n for n in vars(Type) if not n.startswith("_") and not isinstance(vars(Type)[n], Param)) | {
    "title", "origin", "ref", "surroundings", "handler", "fault", "declaration", "pending",
}  # fmt: skip


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the strings and numbers in a value, as text."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _texts_in(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _texts_in(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)

"""Providers: how a type's things are read and changed on one platform, when a provider fits, and which one is chosen."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from ..errors import ResourceError
from .attributes import text_of
from .commands import Command, which
from .core import Type
from .handling import Handler

R = TypeVar("R", bound=Type)


@dataclass(frozen=True, slots=True)
class Platform:
    """The properties of a machine that providers are chosen by: facts by dotted name, named features, and where programs are found."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    find_program: Callable[[str], str | None] = which

    @classmethod
    def here(cls, facts: Mapping[str, Any]) -> Platform:
        """Return this machine's platform: its facts and the features that can be seen without running anything."""
        features = {"posix"} | ({"root"} if os.geteuid() == 0 else set())
        if Path("/sys/fs/selinux/enforce").exists():
            features.add("selinux")
        return cls(facts, frozenset(features))

    def fact(self, name: str) -> Any:
        """Return a fact by its name, or by a dotted path into a structured one (`os.family`); None: no such fact."""
        if name in self.facts:
            return self.facts[name]
        value: Any = self.facts
        for part in name.split("."):
            if not isinstance(value, Mapping) or part not in value:
                return None
            value = value[part]
        return value


@dataclass(frozen=True, slots=True)
class Confine:
    """One condition for a provider to fit: `holds(platform)`, and the message when it does not."""

    needs: str
    holds: Callable[[Platform], bool]


def feature(name: str) -> Confine:
    """Return a confine that holds where the named feature is present."""
    return Confine(f"feature {name}", lambda platform: name in platform.features)


def fact(name: str, *values: Any) -> Confine:
    """Fits where the fact has one of the values, compared as text without regard to case."""
    return Confine(f"fact {name} in {', '.join(map(text_of, values))}", lambda platform: _among(platform.fact(name), values))


def program(name: str) -> Confine:
    """Return a confine that holds where the program exists: an absolute path, or a name in PATH."""
    return Confine(f"program {name}", lambda platform: platform.find_program(name) is not None)


def _among(value: Any, desired: Iterable[Any]) -> bool:
    text = text_of(value).lower()
    return value is not None and any(w.search(text_of(value)) if isinstance(w, re.Pattern) else text_of(w).lower() == text for w in desired)


def _all_match(conditions: Mapping[str, Any], platform: Platform) -> bool:
    return all(
        value in platform.features
        if key == "feature"
        else _among(platform.fact(key), value if isinstance(value, list | tuple) else [value])
        for key, value in conditions.items()
    )


class Provider(Handler[R]):
    """
    Base of all providers; one instance serves all resources of its type in a run, and may cache data.

        class Fog(Provider[DnsZone], type=DnsZone, confine=[feature("fog")]):
            async def prefetch(self, resources): …
            async def flush(self, zone, now): …

    Keywords of the class statement: `type`; `name` (default: the class's name in snake case; '' for
    a type that has one implementation and no attribute `provider`); `confine`; `default_for`, maps
    of fact → value(s) that all must match (key `feature` asks for a feature); `not_default_for`; `features`. What it needs
    is given to its `__init__` by whoever wires the run. Every method may raise ResourceError; its message is the report's.
    """

    serves: ClassVar[type[Type]]
    confine: ClassVar[tuple[Confine, ...]] = ()  # with the programs of its commands
    _conditions: ClassVar[tuple[Confine, ...]] = ()  # without
    default_for: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    not_default_for: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    last_resort: ClassVar[bool] = False  # never the default while another fits (pip is no system's package manager)
    doc: str | None = None  # what describes it, where that is not the class's own text
    on_request: bool = False  # the same, and it is not even asked whether it fits

    def __init_subclass__(
        cls,
        *,
        type: type[Type] | None = None,
        name: str | None = None,
        confine: Sequence[Confine] = (),
        default_for: Sequence[Mapping[str, Any]] = (),
        not_default_for: Sequence[Mapping[str, Any]] = (),
        features: Iterable[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        if type is not None:
            cls.serves = type
        cls.name = name if name is not None else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        cls._conditions = (*cls._conditions, *confine)
        # Where a subclass declares a command anew (dnf in place of yum), it does not need the base's.
        commands = {
            attribute: value for base in reversed(cls.__mro__) for attribute, value in vars(base).items() if isinstance(value, Command)
        }
        cls.confine = (*cls._conditions, *(program(command.path) for command in commands.values() if not command.optional))
        cls.default_for = tuple(default_for)
        cls.not_default_for = tuple(not_default_for)
        cls.features = cls.features | frozenset(features)

    # --- the choice among the providers of a type

    def unmet(self, platform: Platform) -> list[str]:
        """Return the conditions of this provider that the platform does not meet."""
        return [condition.needs for condition in self.confine if not condition.holds(platform)]

    def is_default(self, platform: Platform) -> bool:
        """Return whether this provider is meant for such a platform."""
        return any(_all_match(each, platform) for each in self.default_for) and not any(
            _all_match(each, platform) for each in self.not_default_for
        )

    def specificity(self, platform: Platform) -> int:
        """Return how closely this provider is meant for such a platform; the highest is the default."""
        conditions = max((len(each) for each in self.default_for if _all_match(each, platform)), default=0)
        return 1 if self.last_resort and not conditions else 100 * conditions + len(type(self).__mro__)

    def reads_as(self, other: Provider[Any]) -> bool:
        """Return whether it lists the same things as another one of its type: one of the two extends the other (apt, dpkg)."""
        return self is other or isinstance(self, type(other)) or isinstance(other, type(self))


def drop_unsupported(resource: Type, provider: Handler[Any]) -> None:
    """Make those attributes of a resource unmanaged for which its provider lacks the features. Source: resource layer reference 1.3."""
    for attribute in resource.declaration.particular:
        missing = [feature for feature in attribute.requires if feature not in provider.features]
        if missing and resource.is_given(attribute.name):
            features = ", ".join(missing)
            resource.log(
                attribute.unsupported,
                f"Provider {provider.name} does not support features {features}; not managing attribute {attribute.name}",
            )
        if missing:
            resource.forget(attribute.name)


def check_values(resource: Type, provider: Handler[Any]) -> None:
    """Raise ResourceError for a desired value that needs features its provider does not have."""
    for declared in resource.declaration.properties:
        for value in resource.wanted(declared.name) or ():
            listed = declared.needs_for(value)
            missing = [feature for feature in listed if feature not in provider.features]
            if missing:
                features = ", ".join(missing)
                raise ResourceError(
                    f"Provider {provider.name} must have features '{features}' to set '{declared.name}' to '{text_of(value)}'"
                )


ProviderFactories = Mapping[str, Callable[[], Sequence[Provider[Any]]]]
"""Type name → the function that creates that type's providers."""


class Providers:
    """
    The providers of a run, and the choice among them.

    Args:
        factories: called when the first resource of a type is met, so that providers that a catalog does not use are never imported.
    """

    def __init__(self, factories: ProviderFactories, platform: Platform) -> None:
        self.platform = platform
        self._factories = factories
        self._providers_by_type: dict[str, Sequence[Provider[Any]]] = {}
        self._defaults: dict[str, tuple[Provider[Any] | None, str]] = {}

    def of(self, type_name: str) -> Sequence[Provider[Any]]:
        """Return all providers of a type, whether they fit or not."""
        if type_name not in self._providers_by_type:
            factory = self._factories.get(type_name)
            self._providers_by_type[type_name] = tuple(factory()) if factory else ()
        return self._providers_by_type[type_name]

    def suitable(self, type_name: str) -> Sequence[Provider[Any]]:
        """Return the providers that fit this system now; evaluated each time, because a run may install a provider's program."""
        return [p for p in self.of(type_name) if not self.unmet(p)]

    def unmet(self, provider: Provider[Any]) -> list[str]:
        """Return the conditions of a provider that this system does not meet."""
        return provider.unmet(self.platform)

    def for_resource(self, resource: Type) -> Provider[Any]:
        """
        Return the provider that serves a resource: the one that it names, else the default.

        Raises:
            ResourceError: no such provider, or none that fits (yet).
        """
        type_name = resource.declaration.name
        if not self.of(type_name):
            raise ResourceError(
                f"The type '{type_name}' has no provider in this version",
                hint="Resources of this type cannot be applied yet; the rest of the catalog is.",
            )
        if resource.provider:
            named = next((p for p in self.of(type_name) if p.name == resource.provider), None)
            if named is None and resource.provider in resource.elsewhere:
                raise ResourceError(f"Provider {resource.provider} is not functional on this host", hint=self._names(type_name))
            if named is None:
                raise ResourceError(f"Invalid {type_name} provider '{resource.provider}'", hint=self._names(type_name))
            missing = self.unmet(named)
            if missing:
                raise ResourceError(f"Provider {named.name} is not functional on this host", hint=f"It needs: {', '.join(missing)}")
            return named
        chosen, _warning = self.default(type_name)
        if chosen is None:
            missing_by_name = "; ".join(f"{p.name} needs {', '.join(self.unmet(p))}" for p in self.of(type_name))
            raise ResourceError(f"Could not find a suitable provider for {type_name}", hint=f"On this host {missing_by_name}.")
        return chosen

    def check_named(self, resources: Iterable[Type]) -> None:
        """Raise ResourceError for the first resource whose attribute `provider` names none of its type, on no system."""
        for resource in resources:
            type_name = resource.declaration.name
            known = {p.name for p in self.of(type_name)} if resource.value_of("provider") else set()
            if known and resource.provider not in known | resource.elsewhere:
                raise ResourceError(
                    f"Parameter provider failed on {resource.ref}: Invalid {type_name} provider '{resource.provider}'",
                    where=resource.origin.where,
                    hint=self._names(type_name),
                )

    def _names(self, type_name: str) -> str:
        return f"This version has: {', '.join(sorted(p.name for p in self.of(type_name)))}."

    def default(self, type_name: str) -> tuple[Provider[Any] | None, str]:
        """Return the default provider of a type, or None when none fits, and a warning or ''. A choice, once made, stays."""
        if type_name not in self._defaults:
            choice = self._choose(type_name)
            if choice[0] is None:
                return choice
            self._defaults[type_name] = choice
        return self._defaults[type_name]

    def _choose(self, type_name: str) -> tuple[Provider[Any] | None, str]:
        fitting = [p for p in self.of(type_name) if not p.on_request and not self.unmet(p)] or self.suitable(type_name)
        candidates = [p for p in fitting if p.is_default(self.platform)] or fitting
        if not candidates:
            return None, ""
        best = max(p.specificity(self.platform) for p in candidates)
        winners = [p for p in candidates if p.specificity(self.platform) == best]
        names = ", ".join(sorted(p.name for p in winners))
        warning = f"Found multiple default providers for {type_name}: {names}; using {winners[0].name}" if len(winners) > 1 else ""
        return winners[0], warning

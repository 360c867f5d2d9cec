"""Aliases: names for other types. The definition of an alias may lead back to the alias."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shared.errors import EvaluationError

from ...values.core import Expansion, Guard, PuppetType, Value
from ..kinds.base import UNDEF, NotUndefType, OptionalType, VariantType
from ..kinds.normalization import normalized


class AliasType(PuppetType):
    """
    A name for another type, which may refer back to the alias; `define` sets it after the alias was made.

    Attributes:
        builtin: whether the alias is the language's own (`Data`, `RichData`, …), which is never printed with its definition.
    """

    __slots__ = ("_definition", "_is_settled", "alias", "builtin", "recursive")

    def __init__(self, alias: str, definition: PuppetType | None = None, *, builtin: bool = False) -> None:
        self.alias = alias
        self._definition = definition
        self._is_settled = True
        self.builtin = builtin
        self.recursive = False

    @property
    def name(self) -> str:
        return self.alias

    @property
    def definition(self) -> PuppetType:
        if self._definition is None:
            raise EvaluationError(f"Reference to unresolved type {self.alias}")
        if not self._is_settled:
            self._settle(self._definition)
        return self._definition

    def define(self, definition: PuppetType) -> None:
        """
        Set the definition of the alias. If it names aliases that are not defined yet, it is simplified when it is first used.

        Raises:
            EvaluationError: the alias refers only to itself.
        """
        self._definition = definition
        self._is_settled = False
        if not has_undefined(definition):
            self._settle(definition)

    def _settle(self, definition: PuppetType) -> None:
        self._is_settled = True
        definition = self._without_itself(definition)
        self._definition = definition
        self._definition = normalized(definition)
        self.recursive = _reaches(self._definition, self, set())

    def _without_itself(self, definition: PuppetType) -> PuppetType:
        """Return `definition` without the alias as one of its own alternatives, as that adds nothing; a real type has to remain."""
        if _is_alternative(self, definition, set()):
            members: dict[PuppetType, None] = {}
            _add_alternatives(self, definition, {id(self)}, members)
            is_optional = UNDEF in members and len(members) > 1
            real = [member for member in members if member is not UNDEF or not is_optional]
            if real and not _only_aliases(VariantType(real), {id(self)}):
                variant = VariantType.of(real)
                return OptionalType(variant) if is_optional else variant
        elif isinstance(definition, VariantType):
            real = [t for t in definition.types if not _only_aliases(t, set())]
            if real:
                return definition if len(real) == len(definition.types) else VariantType.of(real)
        if _only_aliases(definition, {id(self)}):
            self._definition = None
            raise EvaluationError(f"Type alias '{self.alias}' cannot be resolved to a real type")
        return definition

    def resolved(self) -> PuppetType:
        return self.definition.resolved()

    def instance(self, value: Value) -> bool:
        return self.definition.instance(value)

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        return self.assignable(other, guard)

    def assignable(self, other: PuppetType, guard: Guard = None) -> bool:
        if other is self:
            return True
        definition = self.definition
        if self.recursive:
            guard = set() if guard is None else guard
            if _is_asked_again((id(self), id(other)), guard):
                return True
        return definition.assignable(other, guard)

    def assign_to(self, target: PuppetType, guard: Guard) -> bool:
        definition = self.definition
        if self.recursive:
            guard = set() if guard is None else guard
            if _is_asked_again((-id(self), id(target)), guard):
                return True
        return target.assignable(definition, guard)

    def notation(self, expansion: Expansion = None) -> str:
        if expansion is None or self.builtin or self.alias in expansion:
            return self.alias
        return f"{self.alias} = {self.definition.notation(expansion | {self.alias})}"

    def __str__(self) -> str:
        return self.expanded()

    def parts(self) -> Iterable[PuppetType]:
        return (self.definition,)

    def key(self) -> tuple[object, ...]:
        return (self.alias,)

    @property
    def iterable_of(self) -> PuppetType | None:
        return self.definition.iterable_of

    @property
    def is_callable(self) -> bool:
        if self._definition is None:
            return False
        definition = self.definition
        return not self.recursive and definition.is_callable


def builtin_alias(name: str, definition: PuppetType) -> AliasType:
    """Return an alias of the language itself, which is never printed with its definition."""
    alias = AliasType(name, builtin=True)
    alias.define(definition)
    return alias


def _is_asked_again(pair: tuple[int, int], guard: set[tuple[int, int]]) -> bool:
    """Return whether this pair is being compared already, and record that it is being compared now."""
    if pair in guard:
        return True
    guard.add(pair)
    return False


def _reaches(start: PuppetType, target: PuppetType, seen: set[int]) -> bool:
    if start is target:
        return True
    if isinstance(start, AliasType):
        if id(start) in seen or start._definition is None:
            return False
        seen.add(id(start))
    return any(_reaches(part, target, seen) for part in start.parts())


def has_undefined(type_: PuppetType, seen: set[int] | None = None) -> bool:
    """Return whether a type, or the definition of an alias in it, contains an alias that is not defined yet."""
    seen = set() if seen is None else seen
    if isinstance(type_, AliasType):
        if type_._definition is None:
            return True
        if id(type_) in seen:
            return False
        seen.add(id(type_))
        return has_undefined(type_._definition, seen)
    return any(has_undefined(part, seen) for part in type_.parts())


def _alternatives(type_: PuppetType) -> Sequence[PuppetType]:
    """Return the alternatives of a Variant, Optional, NotUndef or alias; an empty list for any other type."""
    if isinstance(type_, VariantType):
        return type_.types
    if isinstance(type_, OptionalType | NotUndefType):
        return [] if type_.type is None else [type_.type]
    return [type_._definition] if isinstance(type_, AliasType) and type_._definition is not None else []


def _is_alternative(alias: AliasType, type_: PuppetType, seen: set[int]) -> bool:
    """Return whether `alias` is `type_`, or an alternative of it at any depth."""
    if type_ is alias:
        return True
    if id(type_) in seen:
        return False
    seen.add(id(type_))
    return any(_is_alternative(alias, alternative, seen) for alternative in _alternatives(type_))


def _add_alternatives(alias: AliasType, type_: PuppetType, seen: set[int], members: dict[PuppetType, None]) -> None:
    """Add to `members` the alternatives of `type_` that are real types, or aliases that do not lead back to `alias`."""
    if id(type_) in seen:
        return
    if not _is_alternative(alias, type_, set()):
        members[type_] = None
        return
    seen.add(id(type_))
    inner: dict[PuppetType, None] = {}
    for alternative in _alternatives(type_):
        _add_alternatives(alias, alternative, seen, inner)
    if isinstance(type_, NotUndefType):
        inner = {NotUndefType(member): None for member in inner if member is not UNDEF}
    elif isinstance(type_, OptionalType):
        inner[UNDEF] = None
    members.update(inner)


def _only_aliases(type_: PuppetType, seen: set[int]) -> bool:
    """Return whether a type consists of aliases and variants of aliases only."""
    if isinstance(type_, AliasType):
        if id(type_) in seen or type_._definition is None:
            return True
        return _only_aliases(type_._definition, seen | {id(type_)})
    if isinstance(type_, NotUndefType):
        return type_.type is not None and _only_aliases(type_.type, seen)
    return isinstance(type_, VariantType) and all(_only_aliases(t, seen) for t in type_.types)

"""A type as a value: the base class of the types, which `types` implements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Protocol, TypeAlias

from .core import Instance, Value

Guard: TypeAlias = "set[tuple[int, int]] | None"
"""Pairs of (alias, other type) that are being compared: where a recursive alias leads back to itself, the types are taken to fit."""

Expansion: TypeAlias = "frozenset[str] | None"
"""How aliases are printed: None: by name; else by name and definition, except the aliases whose names are in the set."""


class Types(Protocol):
    """Finds the types that are not built in, by name: aliases, Object types, resource types."""

    def find_type(self, name: str) -> PuppetType | None:
        """Return the type called `name` (in any case, with `::` between its segments), or None."""


class PuppetType:
    """
    A type of the language. Types are immutable, and two are equal when their structures are.

    Attributes:
        is_selected_by_equality: whether this type, as an option of `case` or of a selector, selects the values that equal it
            instead of its instances.
    """

    __slots__ = ()
    is_selected_by_equality: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The name in the language, without parameters; most types set it in their class."""
        return "Any"

    @property
    def pcore_name(self) -> str:
        """The name that the type's class has in Pcore, Puppet's object model; messages and inspection put a `P` in front."""
        return self.__class__.__name__

    @property
    def label(self) -> str:
        """The type as messages name it."""
        return f"{self}-Type"

    def instance(self, value: Value) -> bool:
        """Return whether `value` is of this type."""
        raise NotImplementedError

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        """Return whether `other` is this type or narrower; `other` is no Variant, Optional, NotUndef, alias or Unit."""
        raise NotImplementedError

    def assignable(self, other: PuppetType, guard: Guard = None) -> bool:
        """Return whether every value of `other` is a value of this type."""
        return other.assign_to(self, guard)

    def assign_to(self, target: PuppetType, guard: Guard) -> bool:
        """Return whether `target` accepts this type; wrappers override this and ask for each of their parts."""
        return target.accepts(self, guard)

    def generalized(self) -> PuppetType:
        """Return this type without ranges, sizes and literal values."""
        return self

    def notation(self, expansion: Expansion = None) -> str:
        """Return the type as the language writes it."""
        parameters = self.parameters(expansion)
        return f"{self.name}[{', '.join(parameters)}]" if parameters else self.name

    def parameters(self, expansion: Expansion) -> list[str]:
        """Return the texts between the brackets; an empty list for the bare type."""
        return []

    def resolved(self) -> PuppetType:
        """Return the type that an alias stands for, through further aliases; of any other type, the type itself."""
        return self

    def parts(self) -> Iterable[PuppetType]:
        """Return the types that this one contains."""
        return ()

    def key(self) -> tuple[object, ...]:
        """Return the data by which two types of one class are equal or not."""
        return ()

    def expanded(self) -> str:
        """Return the type as text, aliases with their definitions."""
        return self.notation(frozenset())

    @property
    def iterable_of(self) -> PuppetType | None:
        """The type of the elements if values of this type can be iterated over; else None."""
        return None

    @property
    def is_callable(self) -> bool:
        """Whether this is a Callable, or a wrapper around one."""
        return False

    def __eq__(self, other: object) -> bool:
        return self is other or (self.__class__ is other.__class__ and self.key() == other.key())

    def __hash__(self) -> int:
        return hash((self.__class__, self.key()))

    def __str__(self) -> str:
        return self.notation()

    def __repr__(self) -> str:
        return f"<{self}>"


class InstanceType(PuppetType):
    """What an Instance asks of its Object type: the base class of `types.kinds.objects.ObjectType`."""

    __slots__ = ()

    @property
    def equality(self) -> tuple[str, ...] | None:
        """The names of the attributes by which two instances are equal or not; None for all attributes."""
        raise NotImplementedError

    def same_instance(self, one: Instance, two: Instance) -> bool:
        """Return whether two instances are equal, of which `one` is of this type."""
        raise NotImplementedError

    def member(self, instance: Instance, name: str) -> Value:
        """Return the attribute or constant `name`; raise KeyError when there is none, EvaluationError when only Ruby implements it."""
        raise NotImplementedError

    def init_hash(self, instance: Instance) -> dict[str, Value]:
        """Return the attributes of an instance that differ from their defaults."""
        raise NotImplementedError

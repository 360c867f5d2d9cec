"""The type Init: values that can be converted to a type. `callables.conversions` does the conversions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..values.core import Expansion, Guard, PuppetType, Value
from ..values.text import program
from .kinds.base import Wrapper
from .named.data import RICH_DATA


@dataclass(frozen=True, slots=True)
class Constructors:
    """
    The services of `new` that types need.

    Attributes:
        new: makes a value of a type from arguments; raises EvaluationError when they do not convert.
        check_constructible: raises EvaluationError when a type has no `new`.
        accept_values: returns whether `new` of a type has a signature for these arguments. With `several=True` only signatures that
            could take more than one argument count.
        accept_type: returns whether `new` of a type takes a single argument of another type.
    """

    new: Callable[[PuppetType, Sequence[Value]], Value]
    check_constructible: Callable[[PuppetType], None]
    accept_values: Callable[..., bool]
    accept_type: Callable[[PuppetType, PuppetType], bool]


class InitType(Wrapper):
    """
    The values that `new` of `type` takes as its first argument, when `arguments` follow.

    Attributes:
        constructors: the implementation of `new`, which is a layer above the types and registers itself here when it is imported.
    """

    __slots__ = ("arguments",)
    name = "Init"
    constructors: ClassVar[Constructors]

    def __init__(self, type_: PuppetType | None = None, arguments: Sequence[Value] = ()) -> None:
        super().__init__(type_)
        self.arguments = tuple(arguments)

    def instance(self, value: Value) -> bool:
        if self.type is None:
            return RICH_DATA.instance(value)
        self.constructors.check_constructible(self.type)
        if self.type.instance(value) or self.constructors.accept_values(self.type, [value, *self.arguments]):
            return True
        return not self.arguments and value.__class__ is list and self.constructors.accept_values(self.type, value, several=True)

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        if self.type is None:
            return isinstance(other, InitType) or RICH_DATA.assignable(other, guard)
        self.constructors.check_constructible(self.type)
        if isinstance(other, InitType):
            return other.type is not None and self.type.assignable(other.type, guard)
        if self.type.assignable(other, guard):
            return True
        return not self.arguments and self.constructors.accept_type(self.type, other)

    def around(self, type_: PuppetType) -> PuppetType:
        return self

    def parameters(self, expansion: Expansion) -> list[str]:
        return [] if self.type is None else [self.type.notation(expansion), *map(program, self.arguments)]

    def key(self) -> tuple[object, ...]:
        return (self.type, self.arguments)

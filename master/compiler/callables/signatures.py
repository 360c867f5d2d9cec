"""
What may be called and how: Parameter, Signature, and Closure, a lambda as a value.

The code of a lambda or function is a plain Python function of its positional arguments (a captures-rest parameter is
`*rest`); it fills in its own defaults. The signature checks what was given. A signature without types and defaults
costs a comparison of two numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.errors import EvaluationError

from ..errors.issues import LanguageError
from ..types.base import ANY, INF, AnyType, OptionalType, Range, UnitType
from ..types.containers import ArrayType, TupleType
from ..types.descriptions.describe import describe_mismatch, describe_signatures
from ..types.infer import arguments_type, infer_set
from ..types.references import CallableType
from ..values.core import LambdaValue, Value
from ..values.variables import RESERVED

if TYPE_CHECKING:
    from ..types.base import PuppetType

__all__ = ["Closure", "Parameter", "Signature", "WrongDefaultError", "of_type"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. `type` None is Any; `optional`: has a default; `splat`: takes the rest, `type` being each element's."""

    name: str
    type: PuppetType | None = None
    optional: bool = False
    splat: bool = False
    low: int = 0  # of a splat: how many at least …
    high: int | None = None  # … and at most; None: any number

    @classmethod
    def declared(cls, name: str, type_: PuppetType | None, *, default: bool = False, splat: bool = False) -> Parameter:
        """As the language declares it: `Array[T, 1, 3] *$x` stands for one to three values of T."""
        if splat and isinstance(type_, ArrayType):
            low, high = type_.sizes
            return cls(name, _checked(type_.element), False, True, int(low), None if high == INF else int(high))
        return cls(name, _checked(type_), default, splat)


def _checked(type_: PuppetType | None) -> PuppetType | None:
    return None if type_ is ANY else type_


def _arity_only(block: PuppetType | None) -> Range | None:
    """How many arguments a block is called with, when its type says nothing else: then no types need comparing."""
    wanted = block.type if isinstance(block, OptionalType) else block
    if not isinstance(wanted, CallableType) or wanted.returns is not None or wanted.block is not None or wanted.params is None:
        return None
    return wanted.params.sizes if all(isinstance(t, UnitType) for t in wanted.params.types) else None


class Signature:
    """
    Parameters, block and return type of one way to call something.

    Attributes:
        low, high: how many arguments; `high` None: any number.
        block: a CallableType, an OptionalType of one, or None: no block may be given.
        plain: no type is to be checked.
        returns: None is Any.
        reserved: the name of a parameter that nothing may be assigned to, so that it cannot be called.
    """

    __slots__ = ("_arity", "_callable", "block", "block_name", "high", "low", "parameters", "plain", "reserved", "returns", "types")

    def __init__(
        self,
        parameters: Sequence[Parameter] = (),
        *,
        block: PuppetType | None = None,
        block_name: str = "block",
        returns: PuppetType | None = None,
    ) -> None:
        self.parameters = tuple(parameters)
        self.block = block
        self.block_name = block_name
        self.returns = _checked(returns)
        self.low = sum(p.low if p.splat else not p.optional for p in self.parameters)
        last = self.parameters[-1] if self.parameters else None
        self.high: int | None = len(self.parameters)
        if last is not None and last.splat:
            self.high = None if last.high is None else len(self.parameters) - 1 + last.high
        self.types = tuple([p.type for p in self.parameters])
        self.plain = not any(self.types)
        self.reserved = next((p.name for p in self.parameters if p.name in RESERVED), None)
        self._callable: CallableType | None = None
        self._arity = _arity_only(block)

    @property
    def names(self) -> list[str]:
        return [p.name for p in self.parameters]

    def accepts_count(self, count: int) -> bool:
        return self.low <= count and (self.high is None or count <= self.high)

    def accepts(self, args: Sequence[Value]) -> bool:
        """Whether number and types fit; the block is not looked at."""
        count = len(args)
        if count < self.low or (self.high is not None and count > self.high):
            return False
        if self.plain:
            return True
        types = self.types
        last = len(types) - 1
        for index, arg in enumerate(args):
            type_ = types[index if index < last else last]
            if type_ is not None and not type_.instance(arg):
                return False
        return True

    def accepts_block(self, block: Closure | None) -> bool:
        if self.block is None:
            return block is None
        if block is None:
            return isinstance(self.block, OptionalType)
        if self._arity is not None:
            given = block.signature
            return given.low <= self._arity[0] and (given.high is None or given.high >= self._arity[1])
        wanted = self.block.type if isinstance(self.block, OptionalType) else self.block
        return isinstance(wanted, AnyType) or wanted is None or wanted.instance(block)

    @property
    def callable(self) -> CallableType:
        """The signature as a type."""
        if self._callable is None:
            types = [p.type or ANY for p in self.parameters]
            self._callable = CallableType(TupleType(tuple(types), (self.low, self.high)), self.block, self.returns)
        return self._callable

    def refuse(self, name: str, args: Sequence[Value], block: Closure | None = None) -> EvaluationError:
        """The error for arguments that do not fit; `name` is the function's, or `lambda`."""
        return EvaluationError(describe_signatures(name, [self], arguments_type(args, block)))

    def refuse_reserved(self) -> EvaluationError:
        return EvaluationError(f"Attempt to assign to a reserved variable name: '{self.reserved}'")

    def check_return(self, name: str, value: Value) -> Value:
        """`value`, when it is of the declared return type; else EvaluationError."""
        if self.returns is None or self.returns.instance(value):
            return value
        raise EvaluationError(describe_mismatch(f"value returned from {name} has wrong type,", self.returns, infer_set(value)))


class WrongDefaultError(EvaluationError):
    """A default is not of its parameter's type; it is the call that is wrong, for it gave no value."""


def of_type(value: Value, type_: PuppetType, label: str, parameter: str) -> Value:
    """The value of a default, when it is of the declared type; `label` is what the parameter belongs to: `block` or `'function'`."""
    if type_.instance(value):
        return value
    raise WrongDefaultError(describe_mismatch(f"{label} parameter '{parameter}'", type_, infer_set(value)))


class Closure(LambdaValue):
    """
    A lambda that was given to a call: calling it checks its parameters and runs its code.

    Surplus arguments are dropped, as the reference does; `caller(n)` gives the fastest way to call it n-ary many times.
    """

    __slots__ = ("code", "fixed", "signature")

    def __init__(self, code: Callable[..., Value], signature: Signature) -> None:
        self.code = code
        self.signature = signature
        self.fixed = signature.plain and signature.returns is None and signature.reserved is None

    def __call__(self, *args: Value) -> Value:
        signature = self.signature
        count = len(args)
        if signature.parameters and signature.parameters[-1].splat and not signature.accepts_count(count):
            raise signature.refuse("lambda", args)
        if count < signature.low:
            missing = signature.parameters[count].name if count < len(signature.parameters) else signature.parameters[-1].name
            raise LanguageError(f"Parameter ${missing} is required but no value was given", operand=f"${missing}")
        if signature.high is not None and count > signature.high:
            args = args[: signature.high]
        if self.fixed:
            return self.code(*args)
        if not signature.accepts(args):
            raise signature.refuse("lambda", args)
        if signature.reserved is not None:
            raise signature.refuse_reserved()
        try:
            return signature.check_return("lambda", self.code(*args))
        except WrongDefaultError as error:
            raise EvaluationError(error.message) from None

    def caller(self, count: int) -> Callable[..., Value]:
        """A function of exactly `count` positional arguments."""
        if self.fixed and self.signature.accepts_count(count):
            return self.code
        return self.__call__

    @property
    def arity(self) -> int:
        """How many parameters it declares; a captures-rest one counts as many."""
        last = self.signature.parameters[-1:]
        return 1 << 30 if last and last[0].splat else len(self.signature.parameters)

    @property
    def type(self) -> CallableType:
        return self.signature.callable

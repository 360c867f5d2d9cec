"""
Signatures of functions and lambdas: Parameter, Signature, and Closure, which is a lambda as a value.

The code of a lambda or function is a Python function of its positional arguments (a captures-rest parameter is `*rest`), and it fills
in its own defaults. The signature checks the arguments. A signature without types and defaults costs a comparison of two numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

from shared.errors import EvaluationError

from ..errors.issues import LanguageError
from ..types.descriptions.describe import describe_mismatch, describe_signatures
from ..types.inference.infer import arguments_type, infer_set
from ..types.kinds.base import ANY, INF, AnyType, OptionalType, Range, UnitType
from ..types.kinds.containers import ArrayType, TupleType
from ..types.kinds.references import CallableType
from ..values.core import LambdaValue, PuppetType, Value
from ..values.labels import declared_type
from ..values.variables import RESERVED

Accepted: TypeAlias = Sequence[Any]
"""Arguments that a signature has accepted: each is of its parameter's type, a Puppet type, of which Python knows nothing."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """
    One parameter of a signature.

    Attributes:
        type: None for Any; of a splat, the type of each element.
        optional: whether it has a default.
        splat: whether it takes all remaining arguments.
        low: the smallest number of arguments of a splat.
        high: the largest number of arguments of a splat; None: any number.
    """

    name: str
    type: PuppetType | None = None
    optional: bool = False
    splat: bool = False
    low: int = 0
    high: int | None = None

    @classmethod
    def declared(cls, name: str, type_: PuppetType | None, *, default: bool = False, splat: bool = False) -> Parameter:
        """Return the parameter of a declaration in the language: `Array[T, 1, 3] *$x` takes one to three values of T."""
        if splat and isinstance(type_, ArrayType):
            low, high = type_.sizes
            return cls(name, _checked(name, type_.element), False, True, int(low), None if high == INF else int(high))
        return cls(name, _checked(name, type_), default, splat)


def _checked(name: str, type_: PuppetType | None) -> PuppetType | None:
    return None if type_ is ANY or type_ is None else declared_type(f"Parameter '{name}'" if name else "The result", type_)


def _arity_only(block: PuppetType | None) -> Range | None:
    """Return the number of arguments of a block whose type restricts nothing else, so that no types need to be compared; else None."""
    callable_type = block.type if isinstance(block, OptionalType) else block
    if (
        not isinstance(callable_type, CallableType)
        or callable_type.returns is not None
        or callable_type.block is not None
        or callable_type.params is None
    ):
        return None
    return callable_type.params.sizes if all(isinstance(t, UnitType) for t in callable_type.params.types) else None


class Signature:
    """
    Parameters, block and return type of one way to call something.

    Attributes:
        low: the smallest number of arguments.
        high: the largest number of arguments; None: any number.
        block: a CallableType, an OptionalType of one, or None when no block is allowed.
        plain: whether no types are checked.
        returns: the return type; None for Any.
        reserved: the name of a parameter that is a reserved variable, which makes every call an error; else None.
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
        self.returns = _checked("", returns)
        self.low = sum(p.low if p.splat else not p.optional for p in self.parameters)
        rest = next((p for p in self.parameters if p.splat), None)
        self.high: int | None = len(self.parameters)
        if rest is not None:
            self.high = None if rest.high is None else len(self.parameters) - 1 + rest.high
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

    def accepts(self, args: Sequence[Value]) -> TypeGuard[Accepted]:
        """Return whether the number and the types of the arguments fit; the block is not checked."""
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
            signature = block.signature
            return signature.low <= self._arity[0] and (signature.high is None or signature.high >= self._arity[1])
        block_type = self.block.type if isinstance(self.block, OptionalType) else self.block
        return isinstance(block_type, AnyType) or block_type is None or block_type.instance(block)

    @property
    def callable(self) -> CallableType:
        """The signature as a type."""
        if self._callable is None:
            types = [p.type or ANY for p in self.parameters]
            self._callable = CallableType(TupleType(tuple(types), (self.low, self.high)), self.block, self.returns)
        return self._callable

    def mismatch_error(self, name: str, args: Sequence[Value], block: Closure | None = None) -> EvaluationError:
        """Return the error for arguments that do not fit; `name` is the function's, or `lambda`."""
        return EvaluationError(describe_signatures(name, [self], arguments_type(args, block)))

    def reserved_name_error(self) -> EvaluationError:
        return EvaluationError(f"Attempt to assign to a reserved variable name: '{self.reserved}'")

    def check_return(self, name: str, value: Value) -> Value:
        """Return `value`; raise EvaluationError when it is not of the declared return type."""
        if self.returns is None or self.returns.instance(value):
            return value
        raise EvaluationError(describe_mismatch(f"value returned from {name} has wrong type,", self.returns, infer_set(value)))


class WrongDefaultError(EvaluationError):
    """A default is not of its parameter's type. The error is reported at the call, which passed no value."""


def of_type(value: Value, type_: PuppetType, label: str, parameter: str) -> Value:
    """Return the value of a default; raise WrongDefaultError when it is not of the declared type. `label` is `block` or `'function'`."""
    if type_.instance(value):
        return value
    raise WrongDefaultError(describe_mismatch(f"{label} parameter '{parameter}'", type_, infer_set(value)))


class Closure(LambdaValue):
    """
    A lambda that was passed to a call. Calling it checks the arguments and runs its code.

    Surplus arguments are dropped, as in the reference. A function that calls the lambda many times uses `caller`.
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
            raise signature.mismatch_error("lambda", args)
        if count < signature.low:
            missing = signature.parameters[count].name if count < len(signature.parameters) else signature.parameters[-1].name
            raise LanguageError(f"Parameter ${missing} is required but no value was given", operand=f"${missing}")
        if signature.high is not None and count > signature.high:
            args = args[: signature.high]
        if self.fixed:
            return self.code(*args)
        if not signature.accepts(args):
            raise signature.mismatch_error("lambda", args)
        if signature.reserved is not None:
            raise signature.reserved_name_error()
        try:
            return signature.check_return("lambda", self.code(*args))
        except WrongDefaultError as error:
            raise EvaluationError(error.message) from None

    def caller(self, count: int) -> Callable[..., Value]:
        """Return the fastest function of exactly `count` positional arguments that calls the lambda."""
        if self.fixed and self.signature.accepts_count(count):
            return self.code
        return self.__call__

    @property
    def arity(self) -> int:
        """The number of parameters; a captures-rest parameter counts as many."""
        last = self.signature.parameters[-1:]
        return 1 << 30 if last and last[0].splat else len(self.signature.parameters)

    @property
    def type(self) -> CallableType:
        return self.signature.callable

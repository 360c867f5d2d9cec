"""Types of types, of lambdas, and of catalog entries."""

from __future__ import annotations

from collections.abc import Iterable

from ...values.core import Expansion, Guard, LambdaValue, PuppetType, Value
from ...values.text import quoted
from .base import ANY, UNDEF, AnyType, UnitType, Wrapper, range_texts
from .containers import TupleType
from .scalars import EnumType, IntegerType


class TypeType(Wrapper):
    __slots__ = ()
    name = "Type"

    def instance(self, value: Value) -> bool:
        return isinstance(value, PuppetType) and (self.type is None or self.type.assignable(value))

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        if not isinstance(other, TypeType):
            return False
        return self.type is None or (other.type is not None and self.type.assignable(other.type, guard))

    @property
    def iterable_of(self) -> PuppetType | None:
        inner = None if self.type is None else self.type.resolved()
        if isinstance(inner, EnumType):
            return inner
        return inner if isinstance(inner, IntegerType) and inner.finite else None


class CallableType(PuppetType):
    """
    A lambda with parameters `params` (None: any), a block and a return type.

    Parameters are contravariant: a type with wider parameters is narrower.
    """

    __slots__ = ("block", "params", "returns")
    name = "Callable"

    def __init__(self, params: TupleType | None = None, block: PuppetType | None = None, returns: PuppetType | None = None) -> None:
        self.params = params
        self.block = block
        self.returns = None if isinstance(returns, AnyType) else returns

    def instance(self, value: Value) -> bool:
        return isinstance(value, LambdaValue) and ((self.params is None and self.returns is None) or self.assignable(value.type))

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        if not isinstance(other, CallableType):
            return False
        if self.returns is not None and not self.returns.assignable(other.returns or ANY, guard):
            return False
        if self.params is None:
            return True
        if other.params is None or not other.params.assignable(self.params, guard):
            return False
        return (other.block or UNDEF).assignable(self.block or UNDEF, guard)

    def generalized(self) -> PuppetType:
        params = self.params.generalized() if self.params is not None else None
        return CallableType(params, self.block and self.block.generalized(), self.returns and self.returns.generalized())

    def parameters(self, expansion: Expansion) -> list[str]:
        if self.returns is None:
            return [] if self.params is None else self._call(self.params, expansion)
        call = "[]" if self.params is None else "[" + ", ".join(self._call(self.params, expansion)) + "]"
        return [call, self.returns.notation(expansion)]

    def _call(self, params: TupleType, expansion: Expansion) -> list[str]:
        texts = [t.notation(expansion) for t in params.types if not isinstance(t, UnitType)]
        texts += range_texts(params.size) if params.types else ["0", "0"]
        return texts + ([self.block.notation(expansion)] if self.block is not None else [])

    def key(self) -> tuple[object, ...]:
        return (self.params, self.block, self.returns)

    def parts(self) -> Iterable[PuppetType]:
        return [t for t in (self.params, self.block, self.returns) if t is not None]

    @property
    def is_callable(self) -> bool:
        return True


class CatalogEntryType(PuppetType):
    __slots__ = ()
    name = "CatalogEntry"

    def instance(self, value: Value) -> bool:
        return False  # a reference is itself a type: an instance of Type[CatalogEntry]

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        return isinstance(other, CatalogEntryType)


class ClassType(CatalogEntryType):
    """`Class`, or the class `class_name` (lower case, no leading `::`)."""

    __slots__ = ("class_name",)
    name = "Class"

    def __init__(self, class_name: str | None = None) -> None:
        self.class_name = class_name

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        return isinstance(other, ClassType) and (self.class_name is None or self.class_name == other.class_name)

    def parameters(self, expansion: Expansion) -> list[str]:
        return [] if self.class_name is None else [self.class_name]

    def key(self) -> tuple[object, ...]:
        return (self.class_name,)


class ResourceEntryType(CatalogEntryType):
    """`Resource`, a resource type (`File`), or one resource of it (`File['/a']`); `type_name` is written as in `Foo::Bar`."""

    __slots__ = ("lower", "title", "type_name")
    name = "Resource"

    @property
    def pcore_name(self) -> str:
        return "ResourceType"

    @property
    def label(self) -> str:
        return super().label if self.title is None else f"{self} Resource-Reference"

    def __init__(self, type_name: str | None = None, title: str | None = None) -> None:
        self.type_name = None if type_name is None else capitalized(type_name)
        self.lower = None if type_name is None else type_name.lower()
        self.title = title

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        if not isinstance(other, ResourceEntryType):
            return False
        return self.lower is None or (self.lower == other.lower and (self.title is None or self.title == other.title))

    def notation(self, expansion: Expansion = None) -> str:
        if self.type_name is None:
            return "Resource"
        return self.type_name if self.title is None else f"{self.type_name}[{quoted(self.title)}]"

    def key(self) -> tuple[object, ...]:
        return (self.lower, self.title)


def capitalized(type_name: str) -> str:
    """Return `foo::bar` as `Foo::Bar`, and a name that starts with a capital unchanged."""
    if "A" <= type_name[:1] <= "Z":
        return type_name
    return "::".join(segment[:1].upper() + segment[1:].lower() for segment in type_name.split("::"))


def reference_text(value: ResourceEntryType | ClassType) -> str | None:
    """Return `Type[title]`, the text of a reference in catalogs; None for the bare type `Resource`."""
    if isinstance(value, ClassType):
        return "Class[]" if value.class_name is None else f"Class[{_catalog_name(value.class_name) or 'main'}]"
    return None if value.type_name is None else f"{_catalog_name(value.type_name)}[{value.title or ''}]"


def _catalog_name(name: str) -> str:
    return "::".join(segment.capitalize() for segment in name.removeprefix("::").split("::"))

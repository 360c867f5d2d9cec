"""Types of single values: numbers, strings, regular expressions, times, versions, URIs, binaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ...values.comparison import matches
from ...values.core import DEFAULT, Binary, Expansion, ForeignObject, Guard, PuppetType, Sensitive, Value
from ...values.text import ascii_fold, program, quoted
from ...values.times import Timespan, Timestamp
from ...values.uris import URI
from ...values.versions import SemVer, SemVerRange
from .base import ANY, ANY_SIZE, INF, AnyType, Range, Wrapper, as_size, range_texts, within


class DefaultType(PuppetType):
    __slots__ = ()
    name = "Default"

    def instance(self, value: Value) -> bool:
        return value is DEFAULT

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        return isinstance(other, DefaultType)


class ScalarType(PuppetType):
    __slots__ = ()
    name = "Scalar"
    _values: ClassVar[frozenset[type]] = frozenset((str, int, float, bool, Regexp, SemVer, SemVerRange, Timespan, Timestamp))

    def instance(self, value: Value) -> bool:
        return value.__class__ in self._values

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        return isinstance(other, ScalarType)


class ScalarDataType(ScalarType):
    __slots__ = ()
    name = "ScalarData"
    _values = frozenset((str, int, float, bool))

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        return isinstance(other, ScalarDataType)


# --- numbers ------------------------------------------------------------------------------------------------------


class RangeType(ScalarDataType):
    """The base of Numeric, Integer and Float: numbers from `low` to `high`, both included."""

    __slots__ = ("high", "low")

    def __init__(self, low: float = -INF, high: float = INF) -> None:
        if low > high:
            raise EvaluationError(f"'from' must be less or equal to 'to'. Got ({program(low)}, {program(high)}")
        self.low = low
        self.high = high

    @property
    def range(self) -> Range:
        return (self.low, self.high)

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        return isinstance(other, self.__class__) and self.low <= other.low and self.high >= other.high

    def generalized(self) -> PuppetType:
        return self.__class__()

    def parameters(self, expansion: Expansion) -> list[str]:
        return range_texts(self.range)

    def key(self) -> tuple[object, ...]:
        return (self.low, self.high)


class NumericType(RangeType):
    __slots__ = ()
    name = "Numeric"

    def instance(self, value: Value) -> bool:
        return (value.__class__ is int or value.__class__ is float) and self.low <= value <= self.high

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        return isinstance(other, RangeType) and self.low <= other.low and self.high >= other.high


class IntegerType(RangeType):
    __slots__ = ()
    name = "Integer"

    def instance(self, value: Value) -> bool:
        return value.__class__ is int and self.low <= value <= self.high

    @property
    def finite(self) -> bool:
        return self.low != -INF and self.high != INF

    @property
    def iterable_of(self) -> PuppetType | None:
        return INTEGER


class FloatType(RangeType):
    __slots__ = ()
    name = "Float"

    def instance(self, value: Value) -> bool:
        return value.__class__ is float and self.low <= value <= self.high

    def __init__(self, low: float = -INF, high: float = INF) -> None:
        super().__init__(float(low), float(high))


INTEGER: Final = IntegerType()


class BooleanType(ScalarDataType):
    __slots__ = ("value",)
    name = "Boolean"

    def __init__(self, value: bool | None = None) -> None:
        self.value = value

    def instance(self, value: Value) -> bool:
        return value.__class__ is bool and (self.value is None or self.value is value)

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        return isinstance(other, BooleanType) and (self.value is None or self.value is other.value)

    def generalized(self) -> PuppetType:
        return BooleanType()

    def parameters(self, expansion: Expansion) -> list[str]:
        return [] if self.value is None else ["true" if self.value else "false"]

    def key(self) -> tuple[object, ...]:
        return (self.value,)


# --- strings ------------------------------------------------------------------------------------------------------


class StringType(ScalarDataType):
    """Strings of a size, or one literal string, which only inference produces and which prints as the bare type."""

    __slots__ = ("size", "value")
    name = "String"

    def __init__(self, size: Range | None = None, value: str | None = None) -> None:
        self.size = as_size(size)
        self.value = value

    def instance(self, value: Value) -> bool:
        if value.__class__ is not str:
            return False
        if self.size is not None:
            return self.size[0] <= len(value) <= self.size[1]
        return self.value is None or self.value == value

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        if self.size is not None:
            if isinstance(other, StringType):
                return within(self.size, other.sizes)
            if isinstance(other, EnumType):
                sizes = [len(v) for v in other.values]
                return within(self.size, (min(sizes), max(sizes)) if sizes else ANY_SIZE)
            return isinstance(other, PatternType) and within(self.size, ANY_SIZE)
        if self.value is None:
            return isinstance(other, StringType | EnumType | PatternType)
        if isinstance(other, EnumType):
            return len(other.values) == 1 and not other.any_case and other.values[0] == self.value
        return isinstance(other, StringType) and other.value == self.value

    @property
    def sizes(self) -> Range:
        if self.size is not None:
            return self.size
        return ANY_SIZE if self.value is None else (len(self.value), len(self.value))

    def generalized(self) -> PuppetType:
        return STRING

    def parameters(self, expansion: Expansion) -> list[str]:
        return range_texts(self.size)

    def key(self) -> tuple[object, ...]:
        return (self.size, self.value)

    @property
    def iterable_of(self) -> PuppetType | None:
        return StringType((1, 1))


STRING: Final = StringType()


class EnumType(ScalarDataType):
    __slots__ = ("_folded", "any_case", "values")
    name = "Enum"

    def __init__(self, values: Iterable[str] = (), any_case: bool = False) -> None:
        self.values = tuple(sorted(set(values)))
        self.any_case = any_case
        self._folded = frozenset(ascii_fold(v) for v in self.values) if any_case else frozenset(self.values)

    def instance(self, value: Value) -> bool:
        return value.__class__ is str and (ascii_fold(value) if self.any_case else value) in self._folded

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        if self == other:
            return True
        if not self.values and isinstance(other, StringType | EnumType | PatternType):
            return True
        if isinstance(other, StringType):
            return self.instance(other.value)
        if isinstance(other, EnumType):
            return bool(other.values) and (self.any_case or not other.any_case) and all(map(self.instance, other.values))
        return False

    def generalized(self) -> PuppetType:
        if not self.values:
            return STRING
        sizes = [len(v) for v in self.values]
        return StringType((min(sizes), max(sizes)))

    def parameters(self, expansion: Expansion) -> list[str]:
        return [quoted(v) for v in self.values] + (["true"] if self.any_case else [])

    def key(self) -> tuple[object, ...]:
        return (self.values, self.any_case)

    @property
    def iterable_of(self) -> PuppetType | None:
        return StringType((1, 1))


class PatternType(ScalarDataType):
    __slots__ = ("patterns",)
    name = "Pattern"

    def __init__(self, patterns: Sequence[Regexp] = ()) -> None:
        self.patterns = tuple(dict.fromkeys(patterns))

    def instance(self, value: Value) -> bool:
        if value.__class__ is not str:
            return False
        return not self.patterns or any(p.search(value) for p in self.patterns)

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        if self == other or not self.patterns:
            return isinstance(other, StringType | EnumType | PatternType)
        if isinstance(other, StringType):
            return other.value is not None and self.instance(other.value)
        return isinstance(other, EnumType) and bool(other.values) and all(map(self.instance, other.values))

    def parameters(self, expansion: Expansion) -> list[str]:
        return [str(p) for p in self.patterns]

    def key(self) -> tuple[object, ...]:
        return (frozenset(self.patterns),)


class RegexpType(ScalarType):
    __slots__ = ("regexp",)
    name = "Regexp"

    def __init__(self, regexp: Regexp | None = None) -> None:
        self.regexp = regexp

    def instance(self, value: Value) -> bool:
        return value.__class__ is Regexp and (self.regexp is None or self.regexp == value)

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        return isinstance(other, RegexpType) and (self.regexp is None or self.regexp == other.regexp)

    def parameters(self, expansion: Expansion) -> list[str]:
        return [] if self.regexp is None else [str(self.regexp)]

    def key(self) -> tuple[object, ...]:
        return (self.regexp,)


# --- times and versions -------------------------------------------------------------------------------------------


class TimeType(ScalarType):
    """The base of Timespan and Timestamp: `low` and `high` are values of that class, or None."""

    __slots__ = ("high", "low")
    of: ClassVar[type[Timespan | Timestamp]]

    def __init__(self, low: Timespan | Timestamp | None = None, high: Timespan | Timestamp | None = None) -> None:
        if low is not None and high is not None and low.nanoseconds > high.nanoseconds:
            raise EvaluationError(f"'from' must be less or equal to 'to'. Got ({low}, {high}")
        self.low = low
        self.high = high

    @property
    def range(self) -> Range:
        return (-INF if self.low is None else self.low.nanoseconds, INF if self.high is None else self.high.nanoseconds)

    def instance(self, value: Value) -> bool:
        return value.__class__ is self.of and self.range[0] <= value.nanoseconds <= self.range[1]

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        return isinstance(other, self.__class__) and within(self.range, other.range)

    def generalized(self) -> PuppetType:
        return self.__class__()

    def parameters(self, expansion: Expansion) -> list[str]:
        if self.low is None and self.high is None:
            return []
        low = "default" if self.low is None else f"'{self.low}'"
        return [low] if self.high is None or self.high == self.low else [low, f"'{self.high}'"]

    def key(self) -> tuple[object, ...]:
        return (self.low, self.high)


class TimespanType(TimeType):
    __slots__ = ()
    name = "Timespan"
    of = Timespan


class TimestampType(TimeType):
    __slots__ = ()
    name = "Timestamp"
    of = Timestamp


class SemVerType(ScalarType):
    __slots__ = ("ranges",)
    name = "SemVer"

    def __init__(self, ranges: Sequence[SemVerRange] = ()) -> None:
        self.ranges = tuple(ranges)

    def instance(self, value: Value) -> bool:
        return value.__class__ is SemVer and (not self.ranges or any(value in r for r in self.ranges))

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        if not isinstance(other, SemVerType):
            return False
        return not self.ranges or (bool(other.ranges) and all(any(m.covers(o) for m in self.ranges) for o in other.ranges))

    def parameters(self, expansion: Expansion) -> list[str]:
        return [f"'{r}'" for r in self.ranges]

    def key(self) -> tuple[object, ...]:
        return (self.ranges,)


class SemVerRangeType(PuppetType):
    __slots__ = ()
    name = "SemVerRange"

    def instance(self, value: Value) -> bool:
        return value.__class__ is SemVerRange

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        return isinstance(other, SemVerRangeType)


# --- the rest -----------------------------------------------------------------------------------------------------


class BinaryType(PuppetType):
    __slots__ = ()
    name = "Binary"

    def instance(self, value: Value) -> bool:
        return value.__class__ is Binary

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        return isinstance(other, BinaryType)


class URIType(PuppetType):
    """URIs some of whose parts match. `matchers` maps names of parts to values that are compared as options of a `case`."""

    __slots__ = ("matchers",)
    name = "URI"

    def __init__(self, matchers: Mapping[str, Value] | None = None) -> None:
        self.matchers = dict(matchers) if matchers else None

    @classmethod
    def of_uri(cls, uri: URI) -> URIType:
        """Return the type of the URIs that have the same parts as `uri`."""
        port = uri.shown_port()
        parts = {
            "scheme": uri.scheme,
            "userinfo": uri.userinfo,
            "host": uri.host.lower() if uri.host else None,
            "port": None if port is None else str(port),
            "path": uri.path,
            "query": uri.query,
            "fragment": uri.fragment,
            "opaque": uri.opaque,
        }
        return cls({name: part for name, part in parts.items() if part})

    def instance(self, value: Value) -> bool:
        if value.__class__ is not URI:
            return False
        return all(matches(getattr(value, name), matcher) for name, matcher in (self.matchers or {}).items())

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        if not isinstance(other, URIType):
            return False
        theirs = other.matchers or {}
        return all(
            name in theirs and (matches(theirs[name], mine) or _is_assignable(mine, theirs[name]))
            for name, mine in (self.matchers or {}).items()
        )

    def generalized(self) -> PuppetType:
        return URIType()

    def parameters(self, expansion: Expansion) -> list[str]:
        return [] if self.matchers is None else [program(self.matchers)]

    def key(self) -> tuple[object, ...]:
        return (tuple(sorted((self.matchers or {}).items(), key=lambda item: item[0])),)


def _is_assignable(matcher: Value, other: Value) -> bool:
    return isinstance(matcher, PuppetType) and isinstance(other, PuppetType) and matcher.assignable(other)


class SensitiveType(Wrapper):
    __slots__ = ()
    name = "Sensitive"

    def __init__(self, type_: PuppetType | None = None) -> None:
        super().__init__(type_.generalized() if type_ is not None else ANY)

    def around(self, type_: PuppetType) -> PuppetType:
        wrapper = self.__class__()
        wrapper.type = type_
        return wrapper

    def instance(self, value: Value) -> bool:
        assert self.type is not None
        return value.__class__ is Sensitive and self.type.instance(value.unwrap())

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        assert self.type is not None
        return isinstance(other, SensitiveType) and other.type is not None and self.type.assignable(other.type, guard)

    def parameters(self, expansion: Expansion) -> list[str]:
        return [] if self.type is None or isinstance(self.type, AnyType) else [self.type.notation(expansion)]


class RuntimeType(PuppetType):
    """A type of the language that Puppet is implemented in: the class of an object of a module's Ruby."""

    __slots__ = ("pattern", "runtime")
    name = "Runtime"

    def __init__(self, runtime: str | None = None, pattern: Value = None) -> None:
        self.runtime = runtime
        self.pattern = pattern

    def instance(self, value: Value) -> bool:
        return value.__class__ is ForeignObject and self.accepts(RuntimeType("ruby", value.ruby_class), None)

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        return isinstance(other, RuntimeType) and (self.runtime is None or self == other)

    def parameters(self, expansion: Expansion) -> list[str]:
        return [] if self.runtime is None else [self.runtime] + ([program(self.pattern)] if self.pattern is not None else [])

    def key(self) -> tuple[object, ...]:
        return (self.runtime, self.pattern)

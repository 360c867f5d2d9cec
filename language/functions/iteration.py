"""
each map filter reduce slice step reverse_each tree_each all any index partition group_by: loops with a lambda.

A lambda of one parameter gets the element (of a hash: `[key, value]`), one of two gets index and element, or key and value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from collections.abc import Iterator as PythonIterator
from contextlib import suppress
from itertools import islice
from typing import Final, TypedDict, TypeVar

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ..callables.signatures import Closure
from ..errors.control import Break
from ..types.attributes import attributes_of
from ..types.inference.infer import infer_set
from ..types.inference.iterables import elements, pairs
from ..types.kinds.base import ANY, UnitType, VariantType
from ..types.kinds.containers import TupleType
from ..types.kinds.scalars import IntegerType
from ..types.notation.parse import parse_type
from ..values.core import Deferred, Instance, Iterator, Key, PuppetType, Value, entries, is_same, key_of, value_of
from .api import Context, Function, function

_HASH_2: Final = ("Hash[Any, Any] hash", "Callable[2,2] &block")
_HASH_1: Final = ("Hash[Any, Any] hash", "Callable[1,1] &block")
_ITERABLE_2: Final = ("Iterable enumerable", "Callable[2,2] &block")
_ITERABLE_1: Final = ("Iterable enumerable", "Callable[1,1] &block")


Loop = Callable[[Value, Closure], Value]
HashLoop = Callable[[dict[Key, Value], Closure], Value]
Values = TypeVar("Values", bound=Value)


def _loop_function(name: str, doc: str, hash_2: HashLoop, hash_1: HashLoop, iterable_2: Loop, iterable_1: Loop) -> Function:
    """Return a function with the four signatures that loops have."""

    def adapt(loop: Callable[[Values, Closure], Value]) -> Callable[..., Value]:
        def code(context: Context, values: Values, *, block: Closure) -> Value:
            return loop(values, block)

        return code

    loop_function = Function(name, (), doc)
    loop_function.also(*_HASH_2)(adapt(hash_2))
    loop_function.also(*_HASH_1)(adapt(hash_1))
    loop_function.also(*_ITERABLE_2)(adapt(iterable_2))
    loop_function.also(*_ITERABLE_1)(adapt(iterable_1))
    return loop_function


def _each_1(values: Value, block: Closure) -> Value:
    call = block.caller(1)
    with suppress(Break):
        for item in elements(values):
            call(item)
    return values


def _each_2(values: Value, block: Closure) -> Value:
    call = block.caller(2)
    with suppress(Break):
        for key, item in pairs(values):
            call(key, item)
    return values


each = _loop_function("each", "Call the lambda for each element; return the collection itself.", _each_2, _each_1, _each_2, _each_1)


def _map_1(values: Value, block: Closure) -> list[Value]:
    call, results = block.caller(1), list[Value]()
    with suppress(Break):
        for item in elements(values):
            results.append(call(item))
    return results


def _map_2(values: Value, block: Closure) -> list[Value]:
    call, results = block.caller(2), list[Value]()
    with suppress(Break):
        for key, item in pairs(values):
            results.append(call(key, item))
    return results


map_ = _loop_function("map", "Return an array of the values that the lambda returns.", _map_2, _map_1, _map_2, _map_1)


def _is_true(value: Value) -> bool:
    return value is not None and value is not False


def _filter_hash_1(values: dict[Key, Value], block: Closure) -> Value:
    call = block.caller(1)
    return {key: item for key, item in values.items() if _is_true(call([value_of(key), item]))}


def _filter_hash_2(values: dict[Key, Value], block: Closure) -> Value:
    call = block.caller(2)
    return {key: item for key, item in values.items() if _is_true(call(value_of(key), item))}


def _filter_1(values: Value, block: Closure) -> Value:
    call, chosen = block.caller(1), list[Value]()
    with suppress(Break):
        for item in elements(values):
            if _is_true(call(item)):
                chosen.append(item)
    return chosen


def _filter_2(values: Value, block: Closure) -> Value:
    call, chosen = block.caller(2), list[Value]()
    with suppress(Break):
        for index, item in enumerate(elements(values)):
            if _is_true(call(index, item)):
                chosen.append(item)
    return chosen


filter_ = _loop_function(
    "filter", "Return the elements for which the lambda returns true.", _filter_hash_2, _filter_hash_1, _filter_2, _filter_1
)


def _all_1(values: Value, block: Closure) -> bool:
    call = block.caller(1)
    return all(_is_true(call(item)) for item in elements(values))


def _all_2(values: Value, block: Closure) -> bool:
    call = block.caller(2)
    return all(_is_true(call(key, item)) for key, item in pairs(values))


def _any_1(values: Value, block: Closure) -> bool:
    call = block.caller(1)
    return any(_is_true(call(item)) for item in elements(values))


def _any_2(values: Value, block: Closure) -> bool:
    call = block.caller(2)
    return any(_is_true(call(key, item)) for key, item in pairs(values))


all_ = _loop_function(
    "all", "Return whether the lambda returns true for all elements; true when there are none.", _all_2, _all_1, _all_2, _all_1
)
any_ = _loop_function(
    "any", "Return whether the lambda returns true for some element; false when there are none.", _any_2, _any_1, _any_2, _any_1
)


def _index_1(values: Value, block: Closure) -> Value:
    call = block.caller(1)
    return next((key for key, item in pairs(values) if _is_true(call(item))), None)


def _index_2(values: Value, block: Closure) -> Value:
    call = block.caller(2)
    return next((key for key, item in pairs(values) if _is_true(call(key, item))), None)


index = _loop_function("index", "Return the first index or key for which the lambda returns true.", _index_2, _index_1, _index_2, _index_1)


@index.also("String str", "Variant[String,Regexp] match")
def index_string(context: Context, str_: str, match: str | Regexp) -> int | None:
    if isinstance(match, str):
        offset = str_.find(match)
        return offset if offset >= 0 else None
    first_match = match.search(str_)
    return first_match.start() if first_match else None


@index.also("Iterable enumerable", "Any match")
def index_value(context: Context, enumerable: Value, match: Value) -> Value:
    return next((key for key, item in pairs(enumerable) if is_same(item, match)), None)


# --- reduce, slice ------------------------------------------------------------------------------------------------


@function("reduce", "Iterable enumerable", "Callable[2,2] &block")
def reduce(context: Context, enumerable: Value, *, block: Closure) -> Value:
    """Return the last value of the lambda, which is called with its previous value and an element."""
    rest = iter(elements(enumerable))
    return _reduce(next(rest, None), rest, block)


@reduce.also("Iterable enumerable", "Any memo", "Callable[2,2] &block")
def reduce_from(context: Context, enumerable: Value, memo: Value, *, block: Closure) -> Value:
    return _reduce(memo, elements(enumerable), block)


def _reduce(memo: Value, rest: Iterable[Value], block: Closure) -> Value:
    call = block.caller(2)
    with suppress(Break):
        for item in rest:
            memo = call(memo, item)
    return memo


@function("slice", "Hash[Any, Any] hash", "Integer[1, default] slice_size", "Callable &block?")
def slice_(context: Context, hash_: Value, slice_size: int, *, block: Closure | None = None) -> Value:
    """Return arrays of `slice_size` elements each; with a lambda, call it with them and return the collection."""
    return _slice(hash_, slice_size, [], block)


@slice_.also("Iterable enumerable", "Integer[1, default] slice_size", "Callable &block?")
def slice_iterable(context: Context, enumerable: Value, slice_size: int, *, block: Closure | None = None) -> Value:
    return _slice(enumerable, slice_size, None, block)


def _slice(values: Value, size: int, filler: Value, block: Closure | None) -> Value:
    rest = iter(elements(values))
    slices = iter(lambda: list(islice(rest, size)), [])
    if block is None:
        return list(slices)
    arity = size if block.signature.high is None or block.signature.low != block.signature.high else block.arity
    if arity == 0:
        raise EvaluationError("slice(): block must define at least one parameter. Block has 0.")
    if arity not in (1, size):
        raise EvaluationError(
            "slice(): block must define one parameter, or the same number of parameters as the given size of the slice "
            f"({size}). Block has {arity}; {', '.join(block.signature.names)}"
        )
    with suppress(Break):
        for part in slices:
            if arity == 1:
                block(part)
            else:
                block(*part, *[filler] * (arity - len(part)))
    return values


# --- lazy iterators -----------------------------------------------------------------------------------------------


def _element_type(value: Value) -> PuppetType:
    if value.__class__ is Iterator:
        return value.element_type or ANY
    if value.__class__ is dict:
        columns = [VariantType.of(map(infer_set, column)) for column in zip(*entries(value), strict=True)]
        return TupleType(columns or (UnitType(), UnitType()), (2, 2))
    if value.__class__ is list:
        return VariantType.of(map(infer_set, value)) if value else UnitType()
    if value.__class__ is int:
        return IntegerType(0, value - 1) if value else UnitType()
    if isinstance(value, PuppetType):
        return value
    return parse_type("String[1,1]")


def _iterator(
    value: Value, start: Callable[[], PythonIterator[Value]], back: Callable[[], PythonIterator[Value]] | None = None
) -> Iterator:
    return Iterator(start, element_type=_element_type(value), back=back)


@function("step", "Iterable iterable", "Integer[1] step")
def step(context: Context, iterable: Value, step_: int) -> Iterator:
    """Return every n-th element, lazily; with a lambda, call it for each of them and return undef."""
    return _iterator(iterable, lambda: islice(iter(elements(iterable)), 0, None, step_))


@step.also("Iterable iterable", "Integer[1] step", "Callable[1,1] &block")
def step_each(context: Context, iterable: Value, step_: int, *, block: Closure) -> None:
    _each_1(list(islice(elements(iterable), 0, None, step_)), block)


def _reverse(value: Value) -> PythonIterator[Value]:
    if value.__class__ is Iterator:
        return reversed(value)
    items = elements(value)
    return reversed(items) if isinstance(items, list | range | tuple) else reversed(list(items))


@function("reverse_each", "Iterable iterable")
def reverse_each(context: Context, iterable: Value) -> Iterator:
    """Return the elements from the last to the first, lazily; with a lambda, call it for each of them and return undef."""
    return _iterator(iterable, lambda: _reverse(iterable), lambda: iter(elements(iterable)))


@reverse_each.also("Iterable iterable", "Callable[1,1] &block")
def reverse_each_block(context: Context, iterable: Value, *, block: Closure) -> None:
    _each_1(list(_reverse(iterable)), block)


_TREE: Final = "Variant[Iterator, Array, Hash, Object] tree"
_OPTIONS: Final = "OptionsType options?"
_TREE_TYPES: Final = {
    "OptionsType": "Struct[{container_type => Optional[Type], include_root => Optional[Boolean], include_containers => Optional[Boolean], "
    "include_values => Optional[Boolean], order => Optional[Enum[depth_first, breadth_first]], include_refs => Optional[Boolean]}]"
}


class TreeOptions(TypedDict, total=False):
    """The options of `tree_each`, which its signature has checked; undef is the same as a missing option."""

    container_type: PuppetType | None
    include_root: bool | None
    include_containers: bool | None
    include_values: bool | None
    order: str | None


@function("tree_each", _TREE, _OPTIONS, "Callable[2,2] &block", aliases=_TREE_TYPES)
def tree_each(context: Context, tree: Value, options: TreeOptions | None = None, *, block: Closure) -> Value:
    """Call the lambda with the path and value of everything inside a structure; without one, return an iterator over these."""
    call = block.caller(2)
    with suppress(Break):
        for path, value in _walk(tree, options or {}):
            call(path, value)
    return tree


@tree_each.also(_TREE, _OPTIONS, "Callable[1,1] &block")
def tree_each_values(context: Context, tree: Value, options: TreeOptions | None = None, *, block: Closure) -> Value:
    call = block.caller(1)
    with suppress(Break):
        for _, value in _walk(tree, options or {}):
            call(value)
    return tree


@tree_each.also(_TREE, _OPTIONS)
def tree_iterator(context: Context, tree: Value, options: TreeOptions | None = None) -> Iterator:
    _walk(tree, options or {})  # raises now for wrong options, not at the first element
    return Iterator(lambda: ([path, value] for path, value in _walk(tree, options or {})))


_CONTAINERS: Final = VariantType((parse_type("Array"), parse_type("Hash"), parse_type("Object")))


def _walk(root: Value, options: TreeOptions) -> PythonIterator[tuple[list[Value], Value]]:
    containers = options.get("container_type") or _CONTAINERS
    if not _CONTAINERS.assignable(containers):
        raise EvaluationError(f"Only Array, Hash, and Object types can be used as container types. Got {containers}")
    with_containers, with_values = options.get("include_containers") is not False, options.get("include_values") is not False
    if not with_containers and not with_values:
        raise EvaluationError("Options 'include_containers' and 'include_values' cannot both be false")
    with_root = with_containers and options.get("include_root") is not False
    depth_first = options.get("order") != "breadth_first"
    if isinstance(root, Iterator):
        root = list(root)
    return _visit(root, containers, with_root, with_containers, with_values, depth_first)


def _visit(
    root: Value, containers: PuppetType, with_root: bool, with_containers: bool, with_values: bool, depth_first: bool
) -> PythonIterator[tuple[list[Value], Value]]:
    if with_root:
        yield [], root
    pending: deque[tuple[list[Value], PythonIterator[tuple[Value, Value]]]] = deque([([], _children(root))])
    while pending:
        path, children = pending[-1] if depth_first else pending[0]
        child = next(children, None)
        if child is None:
            pending.pop() if depth_first else pending.popleft()
            continue
        child_path, value = [*path, child[0]], child[1]
        if containers.instance(value):
            if with_containers:
                yield child_path, value
            pending.append((child_path, _children(value)))
        elif with_values:
            yield child_path, value


def _children(value: Value) -> PythonIterator[tuple[Value, Value]]:
    if isinstance(value, Instance):
        return iter(list(value.attributes.items()))
    if isinstance(value, Deferred):
        return iter([("name", value.name), ("arguments", value.arguments)])
    if isinstance(value, PuppetType):
        return iter(attributes_of(value))
    return iter(pairs(value))


# --- partition, group_by ------------------------------------------------------------------------------------------


def _grouping_function(name: str, doc: str, returns: str, group: Callable[[list[tuple[Value, Value]]], Value]) -> Function:
    """Return a function whose result is made of elements, each with what the lambda returns for it."""

    def by_element(context: Context, collection: Value, *, block: Closure) -> Value:
        call = block.caller(1)
        return group([(item, call(item)) for item in elements(collection)])

    def by_index(context: Context, array: list[Value], *, block: Closure) -> Value:
        call = block.caller(2)
        return group([(item, call(index, item)) for index, item in enumerate(array)])

    def by_key(context: Context, collection: dict[Key, Value], *, block: Closure) -> Value:
        call = block.caller(2)
        return group([([key, item], call(key, item)) for key, item in entries(collection)])

    grouping_function = Function(name, (), doc)
    grouping_function.also("Collection collection", "Callable[1,1] &block", returns=returns)(by_element)
    grouping_function.also("Array array", "Callable[2,2] &block", returns=returns)(by_index)
    grouping_function.also("Collection collection", "Callable[2,2] &block", returns=returns)(by_key)
    return grouping_function


def _partition(items_with_results: list[tuple[Value, Value]]) -> Value:
    return [
        [item for item, result in items_with_results if _is_true(result)],
        [item for item, result in items_with_results if not _is_true(result)],
    ]


def _group(items_with_groups: list[tuple[Value, Value]]) -> Value:
    groups: dict[Key, list[Value]] = {}
    for item, group in items_with_groups:
        groups.setdefault(key_of(group), []).append(item)
    return groups


partition = _grouping_function(
    "partition", "Return the elements for which the lambda returns true, and the others.", "Tuple[Array, Array]", _partition
)
group_by = _grouping_function("group_by", "Return arrays of elements by the value that the lambda returns for them.", "Hash", _group)

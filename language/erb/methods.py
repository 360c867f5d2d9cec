"""What is translated: the methods of Ruby's core, each with its function, its arguments and what its block gets, and the names in code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from .errors import RubyError
from .runtime import collections, iteration, operators, texts, values

CLASSES = frozenset(
    ("Array", "FalseClass", "Float", "Hash", "Integer", "NilClass", "Numeric", "Regexp", "String", "Symbol", "TrueClass", "Range")
)
CONVERSIONS = {"Array": (1, 1), "Float": (1, 1), "Integer": (1, 1), "String": (1, 1), "format": (1, 20), "sprintf": (1, 20)}
"""Functions of Kernel, with the least and greatest number of arguments."""

RESERVED = frozenset((*CONVERSIONS, "has_variable?", "scope", "raise", "to_s", "render", "classes", "all_tags", "tags", "initialize"))
"""Names that a template may not define."""


class Method(NamedTuple):
    """
    One method.

    Attributes:
        function: of the runtime.
        least: the least number of arguments.
        most: their greatest number.
        mutates: whether it changes its receiver.
        sets_groups: whether it may set `$1` and the like.
    """

    function: Callable[..., Any]
    least: int = 0
    most: int = 0
    mutates: bool = False
    sets_groups: bool = False


class BlockMethod(NamedTuple):
    """
    One method with a block.

    Attributes:
        values: what the block gets: one value, which is destructured when the block has several parameters, or two.
        loop: yields what a loop over it has, for methods whose value is the receiver or is not used.
    """

    function: Callable[..., Any] | None
    values: int = 1
    least: int = 0
    most: int = 0
    mutates: bool = False
    loop: Callable[..., Any] | None = None
    sets_groups: bool = False


_OPERATORS = {
    "%": "_modulo",
    "&": "_intersection",
    "*": "_multiply",
    "+": "_add",
    "-": "_subtract",
    "/": "_divide",
    "<": "_less",
    "<<": "_append",
    "<=": "_less_or_equal",
    "<=>": "_compare",
    "==": "_equal",
    ">": "_greater",
    ">=": "_greater_or_equal",
    "[]": "_element",
    "[]=": "_set_element",
    "|": "_union",
}


def python_name(name: str) -> str:
    """Return the name that translated templates have for the function of a method; of its block and loop with `_block` and `_loop`."""
    return _OPERATORS.get(name) or "_" + name.replace("?", "_p").replace("!", "_x")


def _raise(message: Any) -> None:
    raise RubyError(values.to_s(message))


def _text_so_far() -> values.TextSoFar:
    return values.TEXT_SO_FAR


def _is_nil(value: Any) -> bool:
    return value is None


def _no_method(value: Any) -> None:
    """A method that no class of Ruby's core has."""
    raise values.missing_method("is_a", value)


def _alias(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function under another name of Ruby's, which not all classes have."""

    def call(value: Any, *arguments: Any) -> Any:
        if values.lacks(name, value):
            raise values.missing_method(name, value)
        return function(value, *arguments)

    return call


METHODS: dict[str, Method] = {
    "%": Method(operators.modulo, 1, 1),
    "&": Method(operators.intersection, 1, 1),
    "*": Method(operators.multiply, 1, 1),
    "+": Method(operators.add, 1, 1),
    "-": Method(operators.subtract, 1, 1),
    "/": Method(operators.divide, 1, 1),
    "<": Method(operators.less, 1, 1),
    "<<": Method(collections.append, 1, 1, mutates=True),
    "<=": Method(operators.less_or_equal, 1, 1),
    "<=>": Method(values.spaceship, 1, 1),
    "==": Method(values.equal, 1, 1),
    ">": Method(operators.greater, 1, 1),
    ">=": Method(operators.greater_or_equal, 1, 1),
    "[]": Method(collections.element, 1, 2),
    "[]=": Method(collections.set_element, 2, 2, mutates=True),
    "abs": Method(operators.absolute),
    "any?": Method(collections.is_any),
    "capitalize": Method(texts.capitalize),
    "center": Method(texts.center, 1, 2),
    "chars": Method(texts.chars),
    "chomp": Method(texts.chomp),
    "chop": Method(texts.chop),
    "class": Method(values.class_of),
    "compact": Method(collections.compact),
    "compact!": Method(collections.compact_in_place, mutates=True),
    "concat": Method(collections.concat, 1, 1, mutates=True),
    "count": Method(collections.count, 0, 1),
    "delete": Method(collections.delete, 1, 1, mutates=True),
    "delete_prefix": Method(texts.delete_prefix, 1, 1),
    "delete_suffix": Method(texts.delete_suffix, 1, 1),
    "dig": Method(collections.dig, 1, 8),
    "downcase": Method(texts.downcase),
    "drop": Method(collections.drop, 1, 1),
    "dup": Method(operators.duplicate),
    "empty?": Method(collections.is_empty),
    "end_with?": Method(texts.end_with, 1, 8),
    "eql?": Method(values.eql, 1, 1),
    "fetch": Method(collections.fetch, 1, 2),
    "first": Method(collections.first, 0, 1),
    "flatten": Method(collections.flatten),
    "flatten!": Method(collections.flatten_in_place, mutates=True),
    "gsub": Method(texts.gsub, 2, 2, sets_groups=True),
    "has_key?": Method(_alias("has_key?", collections.has_key), 1, 1),
    "has_value?": Method(_alias("has_value?", collections.has_value), 1, 1),
    "include?": Method(collections.is_including, 1, 1),
    "index": Method(collections.index, 1, 1, sets_groups=True),
    "inspect": Method(values.inspect),
    "invert": Method(collections.invert),
    "is_a": Method(_no_method),
    "join": Method(collections.join, 0, 1),
    "key?": Method(collections.has_key, 1, 1),
    "keys": Method(collections.keys),
    "last": Method(collections.last, 0, 1),
    "length": Method(collections.length),
    "lines": Method(texts.lines),
    "ljust": Method(texts.ljust, 1, 2),
    "lstrip": Method(texts.lstrip),
    "match": Method(texts.match_method, 1, 1, sets_groups=True),
    "match?": Method(texts.is_match, 1, 1, sets_groups=True),
    "max": Method(collections.greatest),
    "member?": Method(_alias("member?", collections.is_including), 1, 1),
    "merge": Method(collections.merge, 1, 1),
    "merge!": Method(_alias("merge!", collections.update), 1, 1, mutates=True),
    "min": Method(collections.smallest),
    "nil?": Method(_is_nil),
    "none?": Method(collections.is_none),
    "push": Method(collections.push, 1, 8, mutates=True),
    "reverse": Method(collections.reverse),
    "rjust": Method(texts.rjust, 1, 2),
    "round": Method(operators.rounded),
    "rstrip": Method(texts.rstrip),
    "scan": Method(texts.scan, 1, 1, sets_groups=True),
    "shift": Method(collections.shift, mutates=True),
    "size": Method(partial(collections.length, name="size")),
    "sort": Method(collections.sort),
    "sort!": Method(collections.sort_in_place, mutates=True),
    "split": Method(texts.split, 0, 1),
    "start_with?": Method(texts.start_with, 1, 8),
    "store": Method(_alias("store", collections.set_element), 2, 2, mutates=True),
    "strip": Method(texts.strip),
    "sub": Method(texts.sub, 2, 2, sets_groups=True),
    "sum": Method(collections.total),
    "swapcase": Method(texts.swapcase),
    "take": Method(collections.take, 1, 1),
    "to_a": Method(collections.to_a),
    "to_f": Method(operators.to_f),
    "to_h": Method(collections.to_h),
    "to_hash": Method(_alias("to_hash", collections.to_h)),
    "to_i": Method(operators.to_i),
    "to_json": Method(texts.to_json),
    "to_s": Method(values.to_s),
    "to_sym": Method(operators.to_sym),
    "tr": Method(texts.tr, 2, 2),
    "transpose": Method(collections.transpose),
    "uniq": Method(collections.uniq),
    "uniq!": Method(collections.uniq_in_place, mutates=True),
    "unshift": Method(collections.unshift, 1, 1, mutates=True),
    "upcase": Method(texts.upcase),
    "update": Method(collections.update, 1, 1, mutates=True),
    "value?": Method(collections.has_value, 1, 1),
    "values": Method(collections.values),
    "values_at": Method(collections.values_at, 0, 20),
    "zip": Method(collections.zip_arrays, 1, 1),
    "|": Method(operators.union, 1, 1),
}

BLOCK_METHODS: dict[str, BlockMethod] = {
    "all?": BlockMethod(iteration.all_block),
    "any?": BlockMethod(iteration.any_block),
    "collect": BlockMethod(_alias("collect", iteration.map_items), loop=partial(collections.walk, "collect")),
    "collect!": BlockMethod(_alias("collect!", iteration.map_in_place), mutates=True),
    "count": BlockMethod(iteration.count_block),
    "detect": BlockMethod(_alias("detect", iteration.find)),
    "each": BlockMethod(None, loop=iteration.each),
    "each_index": BlockMethod(None, loop=iteration.each_index),
    "each_key": BlockMethod(None, loop=iteration.each_key),
    "each_pair": BlockMethod(None, loop=iteration.each_pair),
    "each_value": BlockMethod(None, loop=iteration.each_value),
    "each_with_index": BlockMethod(None, values=2, loop=iteration.each_with_index),
    "each_with_object": BlockMethod(iteration.each_with_object, values=2, least=1, most=1),
    "filter": BlockMethod(_alias("filter", iteration.select)),
    "find": BlockMethod(iteration.find),
    "flat_map": BlockMethod(iteration.flat_map),
    "gsub": BlockMethod(iteration.gsub_block, least=1, most=1, sets_groups=True),
    "inject": BlockMethod(iteration.inject, values=2, most=1),
    "map": BlockMethod(iteration.map_items, loop=partial(collections.walk, "map")),
    "map!": BlockMethod(iteration.map_in_place, mutates=True),
    "none?": BlockMethod(iteration.none_block),
    "partition": BlockMethod(iteration.partition),
    "reduce": BlockMethod(_alias("reduce", iteration.inject), values=2, most=1),
    "reject": BlockMethod(iteration.reject),
    "reject!": BlockMethod(iteration.reject_in_place, mutates=True),
    "select": BlockMethod(iteration.select),
    "sort": BlockMethod(iteration.sort_block, values=2),
    "sort_by": BlockMethod(iteration.sort_by),
    "sum": BlockMethod(iteration.sum_block),
    "times": BlockMethod(None, loop=iteration.times),
}

WITH_INDEX = {("map", "with_index"), ("map", "each_with_index"), ("collect", "with_index"), ("each", "with_index")}
"""A method without block and the one behind it: the block gets pairs of item and index."""

NAMES: Mapping[str, Any] = {
    **{python_name(name): method.function for name, method in METHODS.items()},
    **{f"{python_name(name)}_block": method.function for name, method in BLOCK_METHODS.items() if method.function is not None},
    **{f"{python_name(name)}_loop": method.loop for name, method in BLOCK_METHODS.items() if method.loop is not None},
    "_Array": collections.to_array,
    "_Float": texts.strict_float,
    "_Integer": texts.strict_integer,
    "_String": values.to_s,
    "_case_equal": operators.case_equal,
    "_erbout": _text_so_far,
    "_file_basename": texts.file_basename,
    "_file_join": texts.file_join,
    "_finish": values.finish,
    "_format": texts.format_text,
    "_group": texts.group,
    "_hash": collections.make_hash,
    "_indexed": iteration.indexed,
    "_is_class": values.is_a,
    "_match_index": texts.match_index,
    "_match_noting": texts.match_noting,
    "_raise": _raise,
    "_range": values.make_range,
    "_regexp": values.pattern,
    "_regexp_escape": texts.regexp_escape,
    "_split_noting": texts.split_noting,
    "_spread": iteration.spread,
    "_spread_all": iteration.spread_all,
    "_symbol": values.symbol,
}
"""What translated templates call while they run, by name."""

"""The methods of Ruby's core that are translated: the runtime's function for each, its arguments, and the block's arguments."""

from __future__ import annotations

from typing import NamedTuple

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

    function: str
    least: int = 0
    most: int = 0
    mutates: bool = False
    sets_groups: bool = False


class BlockMethod(NamedTuple):
    """
    One method with a block.

    Attributes:
        values: the block's arguments: one value, which is destructured when the block has several parameters, or two.
        loop: the function that yields the items of a loop, for methods whose value is the receiver or is not used.
    """

    function: str
    values: int = 1
    least: int = 0
    most: int = 0
    mutates: bool = False
    loop: str = ""
    sets_groups: bool = False


def _name(word: str) -> str:
    return "_" + word.replace("?", "_p").replace("!", "_x")


_PLAIN = {
    0: "abs any? capitalize chars chomp chop class compact downcase dup empty? flatten inspect invert keys length "
    "lines lstrip max min nil? none? reverse rstrip size sort strip sum swapcase to_a to_f to_h to_hash to_i to_json to_s to_sym "
    "transpose uniq upcase values",
    1: "delete_prefix delete_suffix drop eql? has_key? has_value? include? index key? match match? member? merge scan take value? zip",
}
_OPERATORS = {
    "+": "_add",
    "-": "_subtract",
    "*": "_multiply",
    "/": "_divide",
    "%": "_modulo",
    "==": "_equal",
    "<": "_less",
    "<=": "_less_or_equal",
    ">": "_greater",
    ">=": "_greater_or_equal",
    "<=>": "_compare",
    "&": "_intersection",
    "|": "_union",
}
_GROUPS = frozenset(("match", "scan", "index", "match?"))

METHODS: dict[str, Method] = {
    **{name: Method(_name(name), count, count, sets_groups=name in _GROUPS) for count, names in _PLAIN.items() for name in names.split()},
    **{name: Method(function, 1, 1) for name, function in _OPERATORS.items()},
    "[]": Method("_element", 1, 2),
    "[]=": Method("_set_element", 2, 2, mutates=True),
    "<<": Method("_append", 1, 1, mutates=True),
    "center": Method("_center", 1, 2),
    "compact!": Method("_compact_x", mutates=True),
    "concat": Method("_concat", 1, 1, mutates=True),
    "count": Method("_count", 0, 1),
    "delete": Method("_delete", 1, 1, mutates=True),
    "dig": Method("_dig", 1, 8),
    "end_with?": Method("_end_with_p", 1, 8),
    "fetch": Method("_fetch", 1, 2),
    "first": Method("_first", 0, 1),
    "flatten!": Method("_flatten_x", mutates=True),
    "gsub": Method("_gsub", 2, 2, sets_groups=True),
    "is_a": Method("_no_method"),
    "join": Method("_join", 0, 1),
    "last": Method("_last", 0, 1),
    "ljust": Method("_ljust", 1, 2),
    "merge!": Method("_merge_x", 1, 1, mutates=True),
    "push": Method("_push", 1, 8, mutates=True),
    "rjust": Method("_rjust", 1, 2),
    "round": Method("_round", 0, 0),
    "shift": Method("_shift", mutates=True),
    "sort!": Method("_sort_x", mutates=True),
    "split": Method("_split", 0, 1),
    "start_with?": Method("_start_with_p", 1, 8),
    "store": Method("_store", 2, 2, mutates=True),
    "sub": Method("_sub", 2, 2, sets_groups=True),
    "tr": Method("_tr", 2, 2),
    "uniq!": Method("_uniq_x", mutates=True),
    "unshift": Method("_unshift", 1, 1, mutates=True),
    "update": Method("_update", 1, 1, mutates=True),
    "values_at": Method("_values_at", 0, 20),
}

BLOCK_METHODS: dict[str, BlockMethod] = {
    "all?": BlockMethod("_all_block"),
    "any?": BlockMethod("_any_block"),
    "collect": BlockMethod("_collect", loop="_each_of_collect"),
    "collect!": BlockMethod("_collect_x", mutates=True),
    "count": BlockMethod("_count_block"),
    "detect": BlockMethod("_detect"),
    "each": BlockMethod("", loop="_each"),
    "each_index": BlockMethod("", loop="_each_index"),
    "each_key": BlockMethod("", loop="_each_key"),
    "each_pair": BlockMethod("", loop="_each_pair"),
    "each_value": BlockMethod("", loop="_each_value"),
    "each_with_index": BlockMethod("", values=2, loop="_each_with_index"),
    "each_with_object": BlockMethod("_each_with_object", values=2, least=1, most=1),
    "find": BlockMethod("_find"),
    "flat_map": BlockMethod("_flat_map"),
    "gsub": BlockMethod("_gsub_block", least=1, most=1, sets_groups=True),
    "inject": BlockMethod("_inject", values=2, most=1),
    "map": BlockMethod("_map", loop="_each_of_map"),
    "map!": BlockMethod("_map_x", mutates=True),
    "none?": BlockMethod("_none_block"),
    "partition": BlockMethod("_partition"),
    "reduce": BlockMethod("_reduce", values=2, most=1),
    "reject": BlockMethod("_reject"),
    "reject!": BlockMethod("_reject_x", mutates=True),
    "select": BlockMethod("_select"),
    "filter": BlockMethod("_filter"),
    "sort": BlockMethod("_sort_block", values=2),
    "sort_by": BlockMethod("_sort_by"),
    "sum": BlockMethod("_sum_block"),
    "times": BlockMethod("", loop="_times"),
}

WITH_INDEX = {("map", "with_index"), ("map", "each_with_index"), ("collect", "with_index"), ("each", "with_index")}
"""A method without block and the one behind it: the block gets pairs of item and index."""

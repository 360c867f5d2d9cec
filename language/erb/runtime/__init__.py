"""The names that translated templates call while they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..errors import RubyError
from . import collections, iteration, operators, texts, values


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


NAMES: Mapping[str, Any] = {
    "_Array": collections.to_array,
    "_Float": texts.strict_float,
    "_Integer": texts.strict_integer,
    "_String": values.to_s,
    "_abs": operators.absolute,
    "_add": operators.add,
    "_all_block": iteration.all_block,
    "_any_block": iteration.any_block,
    "_any_p": collections.is_any,
    "_append": collections.append,
    "_capitalize": texts.capitalize,
    "_case_equal": operators.case_equal,
    "_center": texts.center,
    "_chars": texts.chars,
    "_chomp": texts.chomp,
    "_chop": texts.chop,
    "_class": values.class_of,
    "_compact": collections.compact,
    "_compact_x": collections.compact_in_place,
    "_compare": values.spaceship,
    "_concat": collections.concat,
    "_count": collections.count,
    "_count_block": iteration.count_block,
    "_delete": collections.delete,
    "_delete_prefix": texts.delete_prefix,
    "_delete_suffix": texts.delete_suffix,
    "_dig": collections.dig,
    "_divide": operators.divide,
    "_downcase": texts.downcase,
    "_drop": collections.drop,
    "_dup": operators.duplicate,
    "_each": iteration.each,
    "_each_index": iteration.each_index,
    "_each_key": iteration.each_key,
    "_each_pair": iteration.each_pair,
    "_each_value": iteration.each_value,
    "_each_with_index": iteration.each_with_index,
    "_each_with_object": iteration.each_with_object,
    "_element": collections.element,
    "_empty_p": collections.is_empty,
    "_end_with_p": texts.end_with,
    "_eql_p": values.eql,
    "_equal": values.equal,
    "_erbout": _text_so_far,
    "_fetch": collections.fetch,
    "_file_basename": texts.file_basename,
    "_file_join": texts.file_join,
    "_find": iteration.find,
    "_finish": values.finish,
    "_first": collections.first,
    "_flat_map": iteration.flat_map,
    "_flatten": collections.flatten,
    "_flatten_x": collections.flatten_in_place,
    "_format": texts.format_text,
    "_greater": operators.greater,
    "_greater_or_equal": operators.greater_or_equal,
    "_group": texts.group,
    "_gsub": texts.gsub,
    "_gsub_block": iteration.gsub_block,
    "_hash": collections.make_hash,
    "_include_p": collections.is_including,
    "_index": collections.index,
    "_indexed": iteration.indexed,
    "_inject": iteration.inject,
    "_inspect": values.inspect,
    "_intersection": operators.intersection,
    "_invert": collections.invert,
    "_is_a": values.is_a,
    "_join": collections.join,
    "_key": collections.key,
    "_key_p": collections.has_key,
    "_keys": collections.keys,
    "_last": collections.last,
    "_length": collections.length,
    "_less": operators.less,
    "_less_or_equal": operators.less_or_equal,
    "_lines": texts.lines,
    "_ljust": texts.ljust,
    "_lstrip": texts.lstrip,
    "_map": iteration.map_items,
    "_map_x": iteration.map_in_place,
    "_match": texts.match_method,
    "_match_index": texts.match_index,
    "_match_p": texts.is_match,
    "_match_noting": texts.match_noting,
    "_max": collections.greatest,
    "_merge": collections.merge,
    "_min": collections.smallest,
    "_modulo": operators.modulo,
    "_multiply": operators.multiply,
    "_nil_p": _is_nil,
    "_no_method": _no_method,
    "_none_block": iteration.none_block,
    "_none_p": collections.is_none,
    "_partition": iteration.partition,
    "_push": collections.push,
    "_raise": _raise,
    "_range": values.make_range,
    "_regexp": values.pattern,
    "_regexp_escape": texts.regexp_escape,
    "_reject": iteration.reject,
    "_reject_x": iteration.reject_in_place,
    "_reverse": collections.reverse,
    "_rjust": texts.rjust,
    "_round": operators.rounded,
    "_rstrip": texts.rstrip,
    "_scan": texts.scan,
    "_select": iteration.select,
    "_set_element": collections.set_element,
    "_sort": collections.sort,
    "_sort_block": iteration.sort_block,
    "_sort_by": iteration.sort_by,
    "_sort_x": collections.sort_in_place,
    "_split": texts.split,
    "_split_noting": texts.split_noting,
    "_spread": iteration.spread,
    "_spread_all": iteration.spread_all,
    "_start_with_p": texts.start_with,
    "_strip": texts.strip,
    "_sub": texts.sub,
    "_subtract": operators.subtract,
    "_sum": collections.total,
    "_sum_block": iteration.sum_block,
    "_swapcase": texts.swapcase,
    "_symbol": values.symbol,
    "_take": collections.take,
    "_times": iteration.times,
    "_to_a": collections.to_a,
    "_to_f": operators.to_f,
    "_to_h": collections.to_h,
    "_to_i": operators.to_i,
    "_to_json": texts.to_json,
    "_to_s": values.to_s,
    "_to_sym": operators.to_sym,
    "_tr": texts.tr,
    "_transpose": collections.transpose,
    "_union": operators.union,
    "_uniq": collections.uniq,
    "_uniq_x": collections.uniq_in_place,
    "_unshift": collections.unshift,
    "_upcase": texts.upcase,
    "_update": collections.update,
    "_value_p": collections.has_value,
    "_values": collections.values,
    "_values_at": collections.values_at,
    "_zip": collections.zip_arrays,
    "_collect": _alias("collect", iteration.map_items),
    "_collect_x": _alias("collect!", iteration.map_in_place),
    "_detect": _alias("detect", iteration.find),
    "_each_of_collect": partial(collections.walk, "collect"),
    "_each_of_map": partial(collections.walk, "map"),
    "_filter": _alias("filter", iteration.select),
    "_has_key_p": _alias("has_key?", collections.has_key),
    "_has_value_p": _alias("has_value?", collections.has_value),
    "_member_p": _alias("member?", collections.is_including),
    "_merge_x": _alias("merge!", collections.update),
    "_reduce": _alias("reduce", iteration.inject),
    "_shift": collections.shift,
    "_size": partial(collections.length, name="size"),
    "_store": _alias("store", collections.set_element),
    "_to_hash": _alias("to_hash", collections.to_h),
}

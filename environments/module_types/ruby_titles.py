"""Reads the title patterns of types in Ruby (`title_patterns`) where they are literals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .models import TitlePattern
from .ruby_source import RubyExpressions, RubyFile, RubyRegexp, Unreadable

if TYPE_CHECKING:
    from tree_sitter import Node


def literal_patterns(expressions: RubyExpressions, file: RubyFile, statements: Sequence[Node]) -> list[tuple[RubyRegexp, tuple[str, ...]]]:
    """
    Return the value `[[regexp, [[name], [name, proc]]], …]` at the end of a method: the regexps with their names.

    A proc that returns its argument is ignored.

    Raises:
        Unreadable: a pattern has another proc, or is computed.
    """
    names: dict[str, Any] = {}
    for child in statements[:-1]:
        left, right = child.child_by_field_name("left"), child.child_by_field_name("right")
        if left is None or right is None:
            raise Unreadable("title patterns that are computed")
        text = file.text(right)
        names[file.text(left)] = None if _is_identity(text) else expressions.value(file, right, names)
    last = statements[-1]
    if last.type == "return":
        last = last.named_children[0].named_children[0]
    if last.type != "array":
        return [
            (pattern, tuple(str(child[0]) for child in attributes_of)) for pattern, attributes_of in expressions.value(file, last, names)
        ]
    patterns: list[tuple[RubyRegexp, tuple[str, ...]]] = []
    for entry in (child for child in last.named_children if child.type != "comment"):
        regexp_node, list_node = (child for child in entry.named_children if child.type != "comment")
        regexp = expressions.value(file, regexp_node, names)
        if not isinstance(regexp, RubyRegexp):
            raise Unreadable("a title pattern that is no regular expression")
        attributes: list[str] = []
        for pattern in (child for child in list_node.named_children if child.type != "comment"):
            parts = [child for child in pattern.named_children if child.type != "comment"] if pattern.type == "array" else [pattern]
            if len(parts) > 1 and not _is_identity(file.text(parts[1])) and names.get(file.text(parts[1]), "") is not None:
                raise Unreadable("a title pattern with a function")
            attributes.append(str(expressions.value(file, parts[0], names)))
        patterns.append((regexp, tuple(attributes)))
    return patterns


def named_patterns(expressions: RubyExpressions, file: RubyFile, node: Node) -> tuple[TitlePattern, ...] | None:
    """Return the title patterns of the resource API, `[{pattern: /…(?<name>…)…/, desc: '…'}, …]`; None when they cannot be read."""
    patterns: list[TitlePattern] = []
    try:
        for entry in expressions.value(file, node, {}):
            regexp = entry["pattern"]
            patterns.append((regexp.plain, tuple(re.findall(r"\(\?<(\w+)>", regexp.source))))
    except (Unreadable, KeyError, TypeError, AttributeError):
        return None
    return tuple(patterns)


def _is_identity(text: str) -> bool:
    compact = "".join(text.split()).replace("(", "").replace(")", "")
    return compact in ("lambda{|x|x}", "->x{x}", "proc{|x|x}", "Proc.new{|x|x}", "lambdado|x|xend")

"""How types in Ruby take their titles apart (`title_patterns`), where that is written out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .models import TitlePattern
from .ruby_source import Expressions, RubyFile, RubyRegexp, Unreadable

if TYPE_CHECKING:
    from tree_sitter import Node


def literal_patterns(expressions: Expressions, file: RubyFile, statements: Sequence[Node]) -> list[tuple[RubyRegexp, tuple[str, ...]]]:
    """
    `[[regexp, [[name], [name, proc]]], …]` at a method's end.

    A proc that hands on what it is given is no proc; with another one the pattern is Unreadable.
    """
    names: dict[str, Any] = {}
    for each in statements[:-1]:
        left, right = each.child_by_field_name("left"), each.child_by_field_name("right")
        if left is None or right is None:
            raise Unreadable("title patterns that are computed")
        text = file.text(right)
        names[file.text(left)] = None if _is_identity(text) else expressions.value(file, right, names)
    last = statements[-1]
    if last.type == "return":
        last = last.named_children[0].named_children[0]
    if last.type != "array":
        return [(one, tuple(str(each[0]) for each in two)) for one, two in expressions.value(file, last, names)]
    found: list[tuple[RubyRegexp, tuple[str, ...]]] = []
    for entry in (each for each in last.named_children if each.type != "comment"):
        regexp_node, list_node = (each for each in entry.named_children if each.type != "comment")
        regexp = expressions.value(file, regexp_node, names)
        if not isinstance(regexp, RubyRegexp):
            raise Unreadable("a title pattern that is no regular expression")
        attributes: list[str] = []
        for one in (each for each in list_node.named_children if each.type != "comment"):
            parts = [each for each in one.named_children if each.type != "comment"] if one.type == "array" else [one]
            if len(parts) > 1 and not _is_identity(file.text(parts[1])) and names.get(file.text(parts[1]), "") is not None:
                raise Unreadable("a title pattern with a function")
            attributes.append(str(expressions.value(file, parts[0], names)))
        found.append((regexp, tuple(attributes)))
    return found


def named_patterns(expressions: Expressions, file: RubyFile, node: Node) -> tuple[TitlePattern, ...] | None:
    """The resource API's: `[{pattern: /…(?<name>…)…/, desc: '…'}, …]`."""
    found: list[TitlePattern] = []
    try:
        for each in expressions.value(file, node, {}):
            regexp = each["pattern"]
            found.append((regexp.plain, tuple(re.findall(r"\(\?<(\w+)>", regexp.source))))
    except (Unreadable, KeyError, TypeError, AttributeError):
        return None
    return tuple(found)


def _is_identity(text: str) -> bool:
    squeezed = "".join(text.split()).replace("(", "").replace(")", "")
    return squeezed in ("lambda{|x|x}", "->x{x}", "proc{|x|x}", "Proc.new{|x|x}", "lambdado|x|xend")

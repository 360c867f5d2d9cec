"""Ruby's grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node


def syntax_tree(source: bytes) -> Node:
    """Return the root of the syntax tree of Ruby source. The grammar is loaded at the first call."""
    import tree_sitter_ruby
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_ruby.language())).parse(source).root_node

"""Ruby's grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node


def syntax_tree(source: bytes) -> Node:
    """Return the root of the tree of Ruby source; whoever meets none does not load the grammar."""
    import tree_sitter_ruby
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_ruby.language())).parse(source).root_node

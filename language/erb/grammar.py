"""Ruby's grammar."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node


_HEREDOC = re.compile(rb"""<<(?=[~-]?(?:(["'`])([^"'`\n]*)\1|(\w+)))""")


def with_plain_shifts(source: bytes) -> bytes:
    """
    Return Ruby source with a space after each `<<` behind which the end of a heredoc is named that has no such line: `text<<"more"`.

    Ruby knows from the variable that it is no heredoc; the grammar would read all that follows as its text.
    """
    if b"<<" not in source:
        return source
    lines = {line.strip() for line in source.splitlines()}
    return _HEREDOC.sub(lambda found: found[0] if (found[2] or found[3] or b"") in lines else b"<< ", source)


def syntax_tree(source: bytes) -> Node:
    """Return the root of the syntax tree of Ruby source. The grammar is loaded at the first call."""
    import tree_sitter_ruby
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_ruby.language())).parse(source).root_node

"""Translates a template: reads it with the grammar of Ruby, and writes the code of the tree."""

from __future__ import annotations

from types import CodeType

from ..syntax.source import Source
from . import nodes as n
from .errors import Refusal
from .grammar import syntax_tree
from .reading.node_reader import named
from .reading.scanner import scan
from .reading.templates import Reader
from .writing.templates import template_code


def translate(source: Source) -> CodeType:
    """
    Return the code of a template: it sets `_body`, a function of a TemplateSession that returns the text.

    Raises:
        Refusal: the template has a construct that is not translated.
    """
    tree, own = read_template(source.text)
    try:
        return template_code(tree, source, own)
    except RecursionError:
        raise Refusal("expressions that are nested too deeply", 0) from None


def read_template(template: str) -> tuple[n.Body, tuple[str, ...]]:
    """
    Return the tree of a template, and the Python names of its own variables.

    Raises:
        Refusal: it has something that is not in the subset.
    """
    program = scan(template)
    root = syntax_tree(program.octets)
    reader = Reader(program, len(template))
    try:
        body = reader.body(named(root), 0)
    except RecursionError:
        raise Refusal("expressions that are nested too deeply", 0) from None
    if root.has_error:
        raise Refusal("what the grammar of Ruby does not know", reader.error_offset(root))
    return body, tuple(reader.variables.current.own)

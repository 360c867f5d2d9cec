"""The writer of Python's syntax tree: positions, temporaries, constants, and the order of evaluation."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from shared.errors import Unsupported

from ..syntax import nodes as n
from ..syntax.source import Source
from .frames import Frame

Rule = Callable[[Any, Any], ast.expr]
"""Takes a Writer and a node of exactly the class that it stands behind in its table."""
Effect = Callable[[Any, Any], None]
Place = tuple[int, int, int, int]
"""Line, column, end line, end column as Python has them: lines from 1, columns from 0, in UTF-8 bytes."""

Marks = dict[Place, tuple[str, int, int, dict[str, tuple[int, int]]]]
"""By place, what the message of an error there names: the construct's label, its line and column in characters, those of its operands."""

LOAD = ast.Load()
STORE = ast.Store()


# Fields that hold no node with a place: text, operators, and whether a name is read or written.
_PLAIN = frozenset(("ctx", "op", "ops", "id", "attr", "arg", "name", "names", "kind", "type_comment", "conversion", "module", "level"))
_KINDS = [kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.AST)]
_PLACED = frozenset(kind for kind in _KINDS if issubclass(kind, ast.expr | ast.stmt | ast.arg | ast.keyword | ast.excepthandler))
# Computed once for each kind of node, and not for each node.
_INNER = {kind: () if kind is ast.Constant else tuple(name for name in kind._fields if name not in _PLAIN) for kind in _KINDS}
_LEAVES = frozenset((ast.Constant, ast.Name))
_INNER |= {ast.arguments: ast.arguments._fields, ast.arg: ("annotation",)}


class Writer:
    """Writes the Python module of one part of a file. `marks`, unless it is None, is filled while it writes."""

    def __init__(
        self,
        source: Source,
        rules: Mapping[type[n.SyntaxNode], Rule],
        effects: Mapping[type[n.SyntaxNode], Effect],
        marks: Marks | None = None,
    ) -> None:
        self.source = source
        self.rules = rules
        self.effects = effects
        self.module: list[ast.stmt] = []
        self.marks = marks
        self.frame = Frame("module")
        self.hoisted = 0  # statements written so far that may have an effect
        self._count = 0
        # Most manifests are ASCII, where columns in characters are those in octets.
        self._ascii = source.text.isascii()
        self._places: dict[tuple[int, int], Place] = {}

    # --- the walk ---

    def value(self, node: n.SyntaxNode) -> ast.expr:
        """Return the Python expression for `node`'s value; statements it needs come before it, in the current block."""
        rule = self.rules.get(type(node))
        if rule is None:
            raise Unsupported(f"{type(node).__name__} cannot be compiled", where=self.source.locate(node.at))
        return rule(self, node)

    def effect(self, node: n.SyntaxNode) -> None:
        """Write the statements for `node` where its value is not used."""
        effect = self.effects.get(type(node))
        if effect is not None:
            effect(self, node)
            return
        self.discard(self.value(node), node)

    def discard(self, value: ast.expr, node: n.SyntaxNode) -> None:
        """Write the statement for a value that is not used. One without effect needs none."""
        if not isinstance(value, ast.Constant | ast.Name):
            self.emit(ast.Expr(value), node)

    def operands(self, parts: Sequence[n.SyntaxNode]) -> list[ast.expr]:
        """
        Return the values of `parts`, evaluated left to right.

        When a later one needs statements (an `if` used as a value), the values of the earlier ones are assigned to names first:
        Python would otherwise run the statements before them.
        """
        values: list[ast.expr] = []
        for part in parts:
            start, before = len(self.frame.block), self.hoisted
            value = self.value(part)
            if self.hoisted != before:
                assignments: list[ast.stmt] = []
                for index, earlier in enumerate(values):
                    if isinstance(earlier, ast.Constant | ast.Name):
                        continue
                    splat = isinstance(earlier, ast.Starred)
                    inner = earlier.value if isinstance(earlier, ast.Starred) else earlier
                    name = self.new_name("t")
                    assignments.append(ast.copy_location(ast.Assign([self._target(name, earlier)], inner), earlier))
                    loaded = ast.copy_location(ast.Name(name, LOAD), earlier)
                    values[index] = ast.copy_location(ast.Starred(loaded, LOAD), earlier) if splat else loaded
                self.frame.block[start:start] = assignments
            values.append(value)
        return values

    # --- places ---

    def place(self, node: n.SyntaxNode) -> Place:
        """Return where `node` is in Python's terms: line and column of its begin and of its end, columns in octets."""
        at = node.at
        key = at, node.end
        place = self._places.get(key)
        if place is None:
            line, column = self._position(at)
            end_line, end_column = self._position(max(node.end, at))
            place = self._places[key] = line, column, end_line, end_column
        return place

    def _position(self, at: int) -> tuple[int, int]:
        starts = self.source.starts
        line = bisect_right(starts, at)
        start = starts[line - 1]
        if self._ascii:
            return line, at - start
        return line, len(self.source.text[start:at].encode("utf-8", "surrogatepass"))

    def mark(self, node: n.SyntaxNode, label: str, **operands: n.SyntaxNode) -> None:
        """Record that an error at `node` shows `label`, the construct's name with its article, or points at one of `operands`."""
        if self.marks is None:
            return
        where = self.source.locate(node.at)
        marked = {name: self._line_and_column(operand.at) for name, operand in operands.items()}
        self.marks.setdefault(self.place(node), (label, where.line or 0, where.column or 0, marked))

    def _line_and_column(self, at: int) -> tuple[int, int]:
        where = self.source.locate(at)
        return where.line or 0, where.column or 0

    def set_place(self, python: ast.expr | ast.stmt | ast.arg, node: n.SyntaxNode) -> None:
        """Give `python`, and all its parts without a place, the place of `node`."""
        # An inner construct has its own, more precise place already.
        if hasattr(python, "lineno"):
            return
        line, column, end_line, end_column = self.place(node)
        if python.__class__ in _LEAVES:
            python.lineno, python.col_offset, python.end_lineno, python.end_col_offset = line, column, end_line, end_column
            return
        # Not `ast.fix_missing_locations`, which recurses once for each level of a deep expression.
        pending: list[Any] = [python]
        while pending:
            current = pending.pop()
            kind = current.__class__
            if kind in _PLACED:
                if hasattr(current, "lineno"):
                    continue
                current.lineno = line
                current.col_offset = column
                current.end_lineno = end_line
                current.end_col_offset = end_column
            for name in _INNER[kind]:
                inner = getattr(current, name, None)
                if inner.__class__ is list:
                    for child in inner:
                        if child is not None:  # `**` in a dict has no key
                            pending.append(child)
                elif inner is not None:
                    pending.append(inner)

    def at(self, node: n.SyntaxNode, python: ast.expr) -> ast.expr:
        """Return `python`, with the place of `node`."""
        self.set_place(python, node)
        return python

    # --- statements ---

    def emit(self, statement: ast.stmt, node: n.SyntaxNode, *, pure: bool = False) -> None:
        """Write `statement` to the current block; `pure` when running it earlier changes nothing (a `def`)."""
        self.set_place(statement, node)
        self.frame.block.append(statement)
        # A pure statement may move; any other forces earlier operands into names (see `operands`).
        if not pure:
            self.hoisted += 1

    def new_name(self, prefix: str) -> str:
        """Return a name that the module does not have yet."""
        self._count += 1
        return f"{prefix}{self._count}"

    def name_for(self, value: ast.expr, node: n.SyntaxNode) -> ast.expr:
        """Assign `value` to a new name and return that, so that it can be used twice; a constant or name is returned as it is."""
        if isinstance(value, ast.Constant | ast.Name):
            return value
        name = self.new_name("t")
        self.emit(ast.Assign([ast.Name(name, STORE)], value), node)
        return self.at(node, ast.Name(name, LOAD))

    def _target(self, name: str, like: ast.expr) -> ast.Name:
        return ast.copy_location(ast.Name(name, STORE), like)

    @contextmanager
    def block(self) -> Iterator[list[ast.stmt]]:
        """
        Collect the statements that are written inside the block in a list of their own: a branch.

        A variable that is assigned only in it is not known afterwards.
        """
        # An assignment inside a branch is not certain after it, so `known` is restored.
        frame, outside, known = self.frame, self.frame.block, set(self.frame.known)
        inside: list[ast.stmt] = []
        frame.block = inside
        try:
            yield inside
        finally:
            frame.block, frame.known = outside, known

    @contextmanager
    def within(self, frame: Frame) -> Iterator[Frame]:
        """Write another Python function."""
        outside, self.frame = self.frame, frame
        try:
            yield frame
        finally:
            self.frame = outside

    def constant(self, value: ast.expr, node: n.SyntaxNode, prefix: str = "K") -> ast.expr:
        """Return a module-level name for `value`, computed once per file; values never change, so that all may share it."""
        name = self.new_name(prefix)
        assign = ast.Assign([ast.Name(name, STORE)], value)
        self.set_place(assign, node)
        # At module level: the constant is built once for each file and not at each evaluation.
        self.module.append(assign)
        return self.at(node, ast.Name(name, LOAD))

    # --- Python in short ---

    def scope(self) -> ast.expr:
        return ast.Name(self.frame.scope, LOAD)

    def runtime_call(self, function: str, *arguments: ast.expr) -> ast.Call:
        """Return a call of the runtime."""
        return ast.Call(ast.Name(function, LOAD), list(arguments), [])

    def scope_call(self, name: str, *arguments: ast.expr) -> ast.Call:
        """Return a call of a method of the scope in force."""
        return ast.Call(ast.Attribute(self.scope(), name, LOAD), list(arguments), [])

    def parameters(self, names: Sequence[str]) -> ast.arguments:
        return ast.arguments(posonlyargs=[], args=[ast.arg(name) for name in names], kwonlyargs=[], kw_defaults=[], defaults=[])

    def function(self, name: str, names: Sequence[str], frame: Frame, node: n.SyntaxNode) -> ast.FunctionDef:
        """Return the Python function whose body was written in `frame`."""
        body = frame.body
        if not body:
            body = [ast.Pass()]
        function = ast.FunctionDef(name, self.parameters(names), body, [])
        self.set_place(function, node)
        return function


def constant_of(value: object) -> ast.Constant:
    """Return the Python expression for a value that Python has a constant for."""
    return ast.Constant(value)  # type: ignore[arg-type]


def load(name: str) -> ast.Name:
    return ast.Name(name, LOAD)

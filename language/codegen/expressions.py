"""Literals, variables, operators, access: nodes that are values."""

from __future__ import annotations

import ast

from shared.errors import Unsupported

from ..syntax import nodes as n
from ..values.variables import RESERVED
from .frames import Frame, walk
from .static_types import with_element_types
from .writer import LOAD, STORE, Writer, constant_of, load

# --- literals -----------------------------------------------------------------------------------------------------

_PLAIN = (n.IntegerLiteral, n.FloatLiteral, n.StringLiteral, n.BooleanLiteral, n.UndefLiteral, n.QualifiedName)


def is_constant(node: n.SyntaxNode) -> bool:
    """Return whether `node` has the same value wherever and whenever it is evaluated."""
    if isinstance(node, (*_PLAIN, n.DefaultLiteral, n.RegexpLiteral)):
        return True
    if isinstance(node, n.ArrayLiteral):
        # A constant is built once for each file; that is safe, as values of the language are never changed.
        return all(not _is_splat(item) and is_constant(item) for item in node.values)
    if isinstance(node, n.HashLiteral):
        return all(is_constant(entry.key) and is_constant(entry.value) for entry in node.entries)
    if isinstance(node, n.ParenthesizedExpression):
        return is_constant(node.expression)
    return False


def is_boolean(node: n.SyntaxNode) -> bool:
    """Return whether `node` always evaluates to a Boolean."""
    if isinstance(node, n.ParenthesizedExpression):
        return is_boolean(node.expression)
    if isinstance(node, n.BooleanLiteral):
        return True
    if isinstance(node, n.UnaryOperation):
        return node.op == "!"
    return isinstance(node, n.BinaryOperation) and node.op in _BOOLEAN


_BOOLEAN = frozenset(("==", "!=", "<", "<=", ">", ">=", "=~", "!~", "in", "and", "or"))


def _is_splat(node: n.SyntaxNode) -> bool:
    while isinstance(node, n.ParenthesizedExpression):
        node = node.expression
    return isinstance(node, n.UnaryOperation) and node.op == "*"


def nop(writer: Writer, node: n.SyntaxNode) -> ast.expr:
    return writer.at(node, constant_of(None))


def literal(writer: Writer, node: n.IntegerLiteral | n.FloatLiteral | n.StringLiteral | n.BooleanLiteral | n.QualifiedName) -> ast.expr:
    return writer.at(node, constant_of(node.value))


def default(writer: Writer, node: n.SyntaxNode) -> ast.expr:
    return writer.at(node, load("_DEFAULT"))


def regex(writer: Writer, node: n.RegexpLiteral) -> ast.expr:
    return writer.constant(writer.runtime_call("_regexp", constant_of(node.source)), node, "R")


def array(writer: Writer, node: n.ArrayLiteral) -> ast.expr:
    if is_constant(node):
        return writer.constant(_constant(writer, node), node)
    return writer.at(node, ast.List(elements(writer, node.values), LOAD))


def elements(writer: Writer, parts: tuple[n.SyntaxNode, ...]) -> list[ast.expr]:
    """Return the values of a list in which `*x` unfolds and neighbouring `k => v` make one hash."""
    return writer.operands(_join_entries(parts))


def _join_entries(parts: tuple[n.SyntaxNode, ...]) -> list[n.SyntaxNode]:
    """Return the elements of a list: neighbouring entries are one hash, and an unfolded array is a _SplatElement."""
    elements_of_list: list[n.SyntaxNode] = []
    run: list[n.HashEntry] = []
    for part in (*parts, None):
        if isinstance(part, n.HashEntry):
            run.append(part)
            continue
        if run:
            elements_of_list.append(n.HashLiteral(run[0].at, run[-1].end, tuple(run)))
            run = []
        if part is not None:
            elements_of_list.append(_SplatElement(part.at, part.end, part) if _is_splat(part) else part)
    return elements_of_list


class _SplatElement(n.ParenthesizedExpression):
    """`*x` where it takes several places."""

    __slots__ = ()


def splat_element(writer: Writer, node: n.ParenthesizedExpression) -> ast.expr:
    inner = node.expression
    while isinstance(inner, n.ParenthesizedExpression):
        inner = inner.expression
    assert isinstance(inner, n.UnaryOperation)
    return writer.at(node, ast.Starred(writer.runtime_call("_unfold", writer.value(inner.operand)), LOAD))


def hash_(writer: Writer, node: n.HashLiteral) -> ast.expr:
    if is_constant(node):
        return writer.constant(_constant(writer, node), node)
    values = writer.operands([part for entry in node.entries for part in (entry.key, entry.value)])
    keys: list[ast.expr | None] = [_key(writer, key, entry.key) for key, entry in zip(values[::2], node.entries, strict=True)]
    return writer.at(node, ast.Dict(keys, values[1::2]))


def _key(writer: Writer, key: ast.expr, node: n.SyntaxNode) -> ast.expr:
    # Other keys, such as 1.0 or true, equal an integer in Python and need a wrapper.
    if isinstance(key, ast.Constant) and (key.value is None or type(key.value) in (str, int)):
        return key
    return writer.at(node, writer.runtime_call("_key", key))


def _constant(writer: Writer, node: n.SyntaxNode) -> ast.expr:
    """Return the Python expression for a constant, all of it in one place."""
    if isinstance(node, n.ParenthesizedExpression):
        return _constant(writer, node.expression)
    if isinstance(node, n.ArrayLiteral):
        return writer.at(node, ast.List([_constant(writer, item) for item in node.values], LOAD))
    if isinstance(node, n.HashLiteral):
        keys: list[ast.expr | None] = [_key(writer, _constant(writer, entry.key), entry.key) for entry in node.entries]
        return writer.at(node, ast.Dict(keys, [_constant(writer, entry.value) for entry in node.entries]))
    return writer.value(node)


def parenthesized(writer: Writer, node: n.ParenthesizedExpression) -> ast.expr:
    return writer.value(node.expression)


def type_name(writer: Writer, node: n.QualifiedReference) -> ast.expr:
    writer.mark(node, "a Type-Name")
    # What an alias stands for need not be there: it then takes no value.
    runtime = "_type_or_reference" if writer.frame.kind == "alias" else "_type"
    return constant_type(writer, node, writer.at(node, writer.runtime_call(runtime, load("scope"), constant_of(node.value))))


def constant_type(writer: Writer, node: n.SyntaxNode, type_: ast.expr) -> ast.expr:
    """Return a type that is the same for a whole environment: it is resolved when first needed, and stored with the code."""
    writer.set_place(type_, node)
    type_ = writer.at(node, ast.Lambda(writer.parameters(["scope"]), type_))
    constant = writer.constant(writer.runtime_call("_Lazy", type_), node, "T")
    return writer.at(node, ast.Call(constant, [writer.scope()], []))


# --- variables ----------------------------------------------------------------------------------------------------


def variable(writer: Writer, node: n.VariableExpression) -> ast.expr:
    return writer.at(node, read(writer, node.name, writer.frame))


def read(writer: Writer, name: str, frame: Frame) -> ast.expr:
    """Return the value of `$name` as seen from `frame`."""
    if name.isdecimal():
        return match_variable(frame, int(name))
    if "::" in name:
        qualifier, _, leaf = name.removeprefix("::").rpartition("::")
        if not qualifier:
            return writer.scope_call("top_variable", constant_of(leaf))
        written = [constant_of(name)] if name.startswith("::") else []
        return writer.scope_call("qualified", constant_of(qualifier), constant_of(leaf), *written)
    current: Frame | None = frame
    while current is not None:
        if name in current.known:
            return load(current.python_name(name))
        if not current.scoped and name in current.locals:
            # Assigned in a branch: it may or may not be set by now.
            current.unset.add(name)
            local = load(current.python_name(name))
            outside = read(writer, name, current.outer) if current.outer else writer.scope_call("get", constant_of(name))
            return ast.IfExp(ast.Compare(local, [ast.IsNot()], [load("_MISSING")]), load(current.python_name(name)), outside)
        if current.scoped:
            break  # its scope knows, and what lies outside
        current = current.outer
    return writer.scope_call("get", constant_of(name))


def match_variable(frame: Frame, number: int) -> ast.expr:
    if frame.matches is None:
        return constant_of(None)
    return ast.Subscript(load(frame.matches), constant_of(number), LOAD)


def store(writer: Writer, name: str, value: ast.expr, node: n.SyntaxNode) -> ast.expr:
    """Assign `$name`, and return a name for the value."""
    frame = writer.frame
    python = frame.python_name(name)
    if frame.scoped:
        value = writer.at(node, writer.scope_call("set", constant_of(name), value))
    elif name in RESERVED:
        value = writer.at(node, writer.runtime_call("_refuse_reserved", constant_of(name), value))
    elif name in frame.known:
        value = writer.at(node, writer.runtime_call("_refuse_reassignment", constant_of(name), value))
    elif name in frame.seen:
        frame.unset.add(name)
        name_of_value = writer.name_for(value, node)
        value = writer.at(node, writer.runtime_call("_set_once", load(python), constant_of(name), name_of_value))
    elif frame.block is not frame.body:
        frame.unset.add(name)
    writer.emit(ast.Assign([ast.Name(python, STORE)], value), node)
    frame.known.add(name)
    frame.seen.add(name)
    return writer.at(node, load(python))


def assignment(writer: Writer, node: n.BinaryOperation) -> ast.expr:
    if node.op != "=":
        raise Unsupported(f"The operator {node.op!r} cannot be compiled", where=writer.source.locate(node.at))
    left = node.left
    while isinstance(left, n.ParenthesizedExpression):
        left = left.expression
    if isinstance(left, n.VariableExpression):
        writer.mark(node, "a '=' expression")
        return store(writer, left.name, writer.value(node.right), node)
    if isinstance(left, n.ArrayLiteral):
        operands = {f"${part.name}": part for part in walk(left, into_lambdas=False) if isinstance(part, n.VariableExpression)}
        writer.mark(node, "a '=' expression", value=node.right, **operands)
        value = writer.name_for(writer.value(node.right), node)
        _destructure(writer, left, value, node)
        return value
    raise Unsupported(f"Assigning to {type(left).__name__} cannot be compiled", where=writer.source.locate(node.at))


def _destructure(writer: Writer, left: n.ArrayLiteral, value: ast.expr, node: n.BinaryOperation) -> None:
    """Write `[$a, [$b, $c]] = value`: the value is split as the left side is shaped, then each name is set."""
    shape = writer.at(left, _shape(writer, left))
    flat: list[str] = []
    _flatten(left, flat)
    split = writer.new_name("t")
    writer.emit(ast.Assign([ast.Name(split, STORE)], writer.at(node, writer.runtime_call("_split", writer.scope(), shape, value))), node)
    for index, name in enumerate(flat):
        part = writer.at(node, ast.Subscript(load(split), constant_of(index), LOAD))
        store(writer, name, part, node)


def _shape(writer: Writer, left: n.ArrayLiteral) -> ast.expr:
    parts: list[ast.expr] = []
    for item in left.values:
        while isinstance(item, n.ParenthesizedExpression):
            item = item.expression
        if isinstance(item, n.VariableExpression):
            parts.append(constant_of(item.name))
        elif isinstance(item, n.ArrayLiteral):
            parts.append(_shape(writer, item))
        else:
            raise Unsupported(f"Assigning to {type(item).__name__} cannot be compiled", where=writer.source.locate(item.at))
    return ast.Tuple(parts, LOAD)


def _flatten(left: n.ArrayLiteral, into: list[str]) -> None:
    for item in left.values:
        while isinstance(item, n.ParenthesizedExpression):
            item = item.expression
        if isinstance(item, n.ArrayLiteral):
            _flatten(item, into)
        elif isinstance(item, n.VariableExpression):
            into.append(item.name)


# --- operators ----------------------------------------------------------------------------------------------------

_ARITHMETIC = {"+": "_plus", "-": "_minus", "*": "_times", "/": "_divide", "%": "_modulo", "<<": "_shift_left", ">>": "_shift_right"}
_COMPARISON = {"<": "_less", "<=": "_less_equal", ">": "_greater", ">=": "_greater_equal"}
_RELATIONSHIPS = frozenset(("->", "~>", "<-", "<~"))


def binary(writer: Writer, node: n.BinaryOperation) -> ast.expr:
    op = node.op
    if op in ("and", "or"):
        return _logic(writer, node)
    if op in _RELATIONSHIPS:
        writer.mark(node, f"a '{op}' expression")
        left, right = writer.operands((node.left, node.right))
        return writer.at(node, writer.runtime_call("_relate", writer.scope(), constant_of(op), left, right))
    if op in _ARITHMETIC or op in _COMPARISON or op in ("==", "!="):
        writer.mark(node, f"{_article(op)} '{op}' expression", **{"0": node.left, "1": node.right})
        left, right = writer.operands((node.left, node.right))
        if op == "==":
            return writer.at(node, writer.runtime_call("_equal", left, right))
        if op == "!=":
            return writer.at(node, ast.UnaryOp(ast.Not(), writer.at(node, writer.runtime_call("_equal", left, right))))
        if op in _COMPARISON:
            return writer.at(node, writer.runtime_call(_COMPARISON[op], left, right))
        return writer.at(node, writer.runtime_call(_ARITHMETIC[op], writer.scope(), left, right))
    if op in ("=~", "!~", "in"):
        return _matching(writer, node)
    return assignment(writer, node)


def _article(op: str) -> str:
    return "an" if op in ("in", "or", "and") else "a"


def _matching(writer: Writer, node: n.BinaryOperation) -> ast.expr:
    writer.mark(node, f"{_article(node.op)} '{node.op}' expression", **{"0": node.left, "1": node.right})
    left, right = writer.operands((node.left, node.right))
    holder: ast.expr = load(writer.frame.matches) if writer.frame.matches else constant_of(None)
    if node.op == "in":
        return writer.at(node, writer.runtime_call("_within", left, right, holder))
    is_match = writer.at(node, writer.runtime_call("_matches", left, right, holder))
    return is_match if node.op == "=~" else writer.at(node, ast.UnaryOp(ast.Not(), is_match))


def truth(writer: Writer, node: n.SyntaxNode) -> ast.expr:
    """Return a Python truth for `node`: only undef and false are false."""
    value = writer.value(node)
    if is_boolean(node):
        return value
    return true_of(writer, value, node)


def true_of(writer: Writer, value: ast.expr, node: n.SyntaxNode) -> ast.expr:
    """Return a Python truth for a value."""
    # Decided while code is generated: only undef and false are false.
    if isinstance(value, ast.Constant):
        return writer.at(node, constant_of(value.value is not None and value.value is not False))
    if isinstance(value, ast.Name):
        first: ast.expr = value
        again: ast.expr = load(value.id)
    else:
        name = writer.new_name("t")
        # The value is tested twice but must be evaluated once.
        first = ast.NamedExpr(ast.Name(name, STORE), value)
        again = load(name)
    return writer.at(
        node,
        ast.BoolOp(
            ast.And(),
            [ast.Compare(first, [ast.IsNot()], [constant_of(None)]), ast.Compare(again, [ast.IsNot()], [constant_of(False)])],
        ),
    )


def _logic(writer: Writer, node: n.BinaryOperation) -> ast.expr:
    left = truth(writer, node.left)
    with writer.block() as statements:
        before = writer.hoisted
        right = truth(writer, node.right)
        plain = writer.hoisted == before
    if plain:
        for statement in statements:  # definitions of lambdas
            writer.frame.block.append(statement)
        return writer.at(node, ast.BoolOp(ast.And() if node.op == "and" else ast.Or(), [left, right]))
    name = writer.new_name("t")
    writer.emit(ast.Assign([ast.Name(name, STORE)], left), node)
    statements.append(writer_assign(writer, name, right, node))
    test: ast.expr = load(name)
    if node.op == "or":
        test = ast.UnaryOp(ast.Not(), test)
    writer.emit(ast.If(test, statements, []), node)
    return writer.at(node, load(name))


def writer_assign(writer: Writer, name: str, value: ast.expr, node: n.SyntaxNode) -> ast.stmt:
    """Return the statement `name = value`, which is not written anywhere yet."""
    statement = ast.Assign([ast.Name(name, STORE)], value)
    writer.set_place(statement, node)
    return statement


def unary(writer: Writer, node: n.UnaryOperation) -> ast.expr:
    if node.op == "!":
        return writer.at(node, ast.UnaryOp(ast.Not(), truth(writer, node.operand)))
    if node.op == "-":
        if isinstance(node.operand, n.IntegerLiteral | n.FloatLiteral):
            return writer.at(node, constant_of(-node.operand.value))
        writer.mark(node, "an Unary Minus", **{"0": node.operand})
        return writer.at(node, writer.runtime_call("_negative", writer.scope(), writer.value(node.operand)))
    if node.op == "*":
        writer.mark(node, "an Unfold")
        return writer.at(node, writer.runtime_call("_unfold", writer.value(node.operand)))
    raise Unsupported(f"The operator {node.op!r} cannot be compiled", where=writer.source.locate(node.at))


# --- access -------------------------------------------------------------------------------------------------------


def _is_type_expression(node: n.SyntaxNode) -> bool:
    """Return a type or reference made of constants only."""
    if isinstance(node, n.QualifiedReference):
        return True
    if isinstance(node, n.AccessExpression):
        return _is_type_expression(node.left) and all(is_constant_in_type(key) for key in node.keys)
    return False


def is_constant_in_type(node: n.SyntaxNode) -> bool:
    """Return whether a node is constant as in `is_constant`, or the name of a type, with or without brackets."""
    if isinstance(node, n.UnaryOperation) and node.op == "-":
        return is_constant_in_type(node.operand)
    if isinstance(node, n.ArrayLiteral):
        return all(not _is_splat(item) and is_constant_in_type(item) for item in node.values)
    if isinstance(node, n.HashLiteral):
        return all(is_constant_in_type(entry.key) and is_constant_in_type(entry.value) for entry in node.entries)
    return is_constant(node) or _is_type_expression(node)


def access(writer: Writer, node: n.AccessExpression) -> ast.expr:
    if writer.frame.kind == "alias":
        node = with_element_types(node)
    operands = {"-1": node.left, **{str(index): key for index, key in enumerate(node.keys)}}
    writer.mark(node, "a '[]' expression", **operands)
    if _is_type_expression(node) and not _reads_attribute(node):
        with writer.within(Frame("alias" if writer.frame.kind == "alias" else "type")):
            type_ = _access_call(writer, node)
        return constant_type(writer, node, type_)
    return _access_call(writer, node)


_FACTS = frozenset(("facts", "::facts"))


def _reads_attribute(node: n.AccessExpression) -> bool:
    """Return whether an attribute of a resource is read, as in `File['/x']['mode']`: such a value may change."""
    return isinstance(node.left, n.AccessExpression)


def _access_call(writer: Writer, node: n.AccessExpression) -> ast.expr:
    if isinstance(node.left, n.VariableExpression) and node.left.name in _FACTS and len(node.keys) == 1:
        key = node.keys[0]
        if isinstance(key, n.StringLiteral | n.QualifiedName):  # so that it is known which facts a catalog depends on
            return writer.at(node, writer.runtime_call("_fact", writer.scope(), constant_of(key.value)))
    values = [writer.value(node.left)] if not node.keys else []
    if node.keys:
        values = writer.operands([node.left, *_join_entries(node.keys)])
    if len(values) == 2 and isinstance(values[1], ast.Constant) and type(values[1].value) is str:
        return writer.at(node, writer.runtime_call("_entry", writer.scope(), *values))
    return writer.at(node, writer.runtime_call("_access", writer.scope(), *values))


RULES = {
    n.Nop: nop,
    n.UndefLiteral: nop,
    n.IntegerLiteral: literal,
    n.FloatLiteral: literal,
    n.StringLiteral: literal,
    n.BooleanLiteral: literal,
    n.QualifiedName: literal,
    n.DefaultLiteral: default,
    n.RegexpLiteral: regex,
    n.ArrayLiteral: array,
    _SplatElement: splat_element,
    n.HashLiteral: hash_,
    n.QualifiedReference: type_name,
    n.VariableExpression: variable,
    n.ParenthesizedExpression: parenthesized,
    n.BinaryOperation: binary,
    n.UnaryOperation: unary,
    n.AccessExpression: access,
}

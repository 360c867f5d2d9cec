"""From the nodes of the grammar of Ruby to the checked tree of the subset, or a Refusal with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...syntax.nodes import SyntaxNode
from .. import methods
from .. import nodes as n
from . import literal_reader
from .calls import CallReader
from .node_reader import named
from .ruby_versions import ruby_version_answer

if TYPE_CHECKING:
    from tree_sitter import Node

_SPACED = frozenset(("+", "-", "*", "/", "%", "<<", "&", "["))
_OPERATORS = frozenset(("+", "-", "*", "/", "%", "<<", "==", "!=", "<", "<=", ">", ">=", "<=>", "=~", "!~", "&", "|"))
_UNCHAINED = frozenset(("==", "!=", "=~", "!~", "<=>"))


class Reader(CallReader):
    """Reads one template: control, definitions, variables and operators."""

    # --- control ---

    def if_(self, node: Node) -> SyntaxNode:
        at, end = self.place(node)
        test = self.field(node, "condition")
        then = self.branch(node.child_by_field_name("consequence"), node)
        alternative = node.child_by_field_name("alternative")
        if alternative is not None and alternative.type == "elsif":
            self.branch_depth += 1
            otherwise = self.if_(alternative)
            self.branch_depth -= 1
        else:
            otherwise = self.branch(alternative, node)
        return n.If(at, end, test, then, otherwise, node.type == "unless")

    def modifier(self, node: Node) -> SyntaxNode:
        at, end = self.place(node)
        then = self.branch(self.node(node, "body"), node)  # the body comes first: what it assigns is a variable in the condition
        test = self.field(node, "condition")
        return n.If(at, end, test, then, n.Body(end, end, ()), node.type == "unless_modifier")

    def case(self, node: Node) -> SyntaxNode:
        at, end = self.place(node)
        value = node.child_by_field_name("value")
        subject = self.statement(value) if value is not None else None
        options: list[tuple[tuple[SyntaxNode, ...], SyntaxNode]] = []
        otherwise: SyntaxNode = n.Body(end, end, ())
        for child in named(node):
            if child == value:
                continue
            if child.type == "else":
                otherwise = self.branch(child, node)
            elif child.type == "when":
                patterns = tuple([self.pattern(inner) for inner in child.children_by_field_name("pattern")])
                options.append((patterns, self.branch(child.child_by_field_name("body"), child)))
            else:
                raise self.refuse(child)
        return n.Case(at, end, subject, tuple(options), otherwise)

    def pattern(self, node: Node) -> SyntaxNode:
        inner = named(node)
        if len(inner) != 1:
            raise self.refuse(node)
        if inner[0].type == "constant":
            return self.class_name(inner[0])
        if inner[0].type == "regex" and self.uses_groups:
            raise self.refuse(node, "a match whose groups may be read")
        return self.statement(inner[0])

    def next_(self, node: Node) -> SyntaxNode:
        arguments = [child for part in named(node) for child in named(part)]
        if not self.block_depth or len(arguments) > 1:
            raise self.refuse(node)
        at, end = self.place(node)
        return n.RubyNext(at, end, self.statement(arguments[0]) if arguments else n.Literal(at, end, None))

    def break_(self, node: Node) -> SyntaxNode:
        if not self.block_depth or named(node):
            raise self.refuse(node)
        return n.RubyBreak(*self.place(node))

    def parentheses(self, node: Node) -> SyntaxNode:
        body = self.part(node, node)
        return body.statements[0] if len(body.statements) == 1 else body

    def method(self, node: Node) -> SyntaxNode:
        """Read the definition of a method: of the template's own statements, before anything calls it."""
        name = self.text(self.node(node, "name"))
        if self.block_depth or self.branch_depth or self.in_method or name in self.methods or name in methods.RESERVED:
            raise self.refuse(node, f"the definition of {name}")
        parameters = named(node.child_by_field_name("parameters"))
        if any(parameter.type != "identifier" for parameter in parameters):
            raise self.refuse(node, f"the parameters of {name}")
        scope = self.variables.enter(is_method=True)
        self.in_method = True
        try:
            names = tuple([self.variables.declare_parameter(self.text(parameter)) for parameter in parameters])
            if len(set(scope.names)) != len(parameters):
                raise self.refuse(node)
            body = self.part(node.child_by_field_name("body"), node)
        finally:
            self.in_method = False
            self.variables.leave()
        python_name = self.variables.unique_name(name)
        self.methods[name] = python_name, len(parameters)
        return n.MethodDefinition(*self.place(node), python_name, names, body, tuple(scope.own))

    # --- variables ---

    def identifier(self, node: Node) -> SyntaxNode:
        name = self.text(node)
        python_name = self.variables.find(name)
        if python_name is not None:
            return n.LocalVariable(*self.place(node), python_name)
        return self.own_call(node, name, ())

    def instance_variable(self, node: Node) -> n.InstanceVariable:
        name = self.text(node)[1:]
        if not name.isascii() or name.startswith("__"):
            raise self.refuse(node)
        return n.InstanceVariable(*self.place(node), name)

    def target(self, node: Node) -> n.InstanceVariable | n.LocalVariable:
        if node.type == "identifier":
            name = self.text(node)
            if name == "scope" or name in self.methods:
                raise self.refuse(node)
            return n.LocalVariable(*self.place(node), self.variables.assign(name))
        if node.type == "instance_variable":
            variable = self.instance_variable(node)
            self.assigned.add(variable.name)
            if variable.name in self.tested or not self.variables.assign_instance_variable(f"i_{variable.name}"):
                raise self.refuse(node, f"an assignment to @{variable.name}")
            return variable
        raise self.refuse(node, f"an assignment to {self.text(node)[:60]}")

    def assignment(self, node: Node) -> SyntaxNode:
        at, end = self.place(node)
        left, right = self.node(node, "left"), self.node(node, "right")
        if right.type == "right_assignment_list" or right.type.startswith("rescue"):
            raise self.refuse(node)
        if left.type == "left_assignment_list":
            return self._several(node, left, right)
        if left.type == "element_reference":
            receiver, *keys = [self.statement(child) for child in named(left)]
            if len(keys) != 1:
                raise self.refuse(left)
            return n.RubyMethodCall(at, end, receiver, "[]=", (keys[0], self.statement(right)), None)
        target = self.target(left)
        return n.Assignment(at, end, target, self.statement(right))

    def _several(self, node: Node, left: Node, right: Node) -> SyntaxNode:
        """Read `a, b = value`, a statement by itself."""
        names = named(left)
        parent = node.parent
        if any(name.type != "identifier" for name in names) or len(names) < 2 or len({self.text(name) for name in names}) < len(names):
            raise self.refuse(node)
        if parent is None or parent.type not in ("body_statement", "block_body", "then", "else", "do") or node.next_named_sibling is None:
            raise self.refuse(node)
        targets = [self.target(name) for name in names]
        return n.SeveralAssignments(*self.place(node), tuple(targets), self.statement(right))

    def operator_assignment(self, node: Node) -> SyntaxNode:
        at, end = self.place(node)
        left, operator = self.node(node, "left"), self.text(self.node(node, "operator"))
        if left.type == "element_reference":
            return self._element_assignment(node, left, operator)
        target = self.target(left)
        value = self.field(node, "right")
        if operator in ("||=", "&&="):
            return n.ConditionalAssignment(at, end, target, value, operator == "&&=")
        name = operator.removesuffix("=")
        if name not in _OPERATORS:
            raise self.refuse(node)
        return n.Assignment(at, end, target, n.RubyMethodCall(at, end, target, name, (value,), None))

    def _element_assignment(self, node: Node, left: Node, operator: str) -> SyntaxNode:
        """Read `x[y] ||= value`, `x[y] += value` and so on where both can be evaluated twice."""
        at, end = self.place(node)
        parts = [self.statement(child) for child in named(left)]
        simple = (n.LocalVariable, n.InstanceVariable, n.Literal, n.SymbolLiteral)
        name = operator.removesuffix("=")
        if (operator != "||=" and name not in _OPERATORS) or len(parts) != 2 or not all(isinstance(part, simple) for part in parts):
            raise self.refuse(node)
        element = n.RubyMethodCall(at, end, parts[0], "[]", (parts[1],), None)
        if operator != "||=":
            value = n.RubyMethodCall(at, end, element, name, (self.field(node, "right"),), None)
            return n.RubyMethodCall(at, end, parts[0], "[]=", (parts[1], value), None)
        return n.Or(at, end, element, n.RubyMethodCall(at, end, parts[0], "[]=", (parts[1], self.field(node, "right")), None))

    def global_variable(self, node: Node) -> SyntaxNode:
        name = self.text(node)
        if len(name) != 2 or not name[1].isdecimal() or name == "$0" or self.in_method:
            raise self.refuse(node)
        return n.MatchGroup(*self.place(node), int(name[1]))

    # --- operators ---

    def binary(self, node: Node) -> SyntaxNode:
        at, end = self.place(node)
        answer = ruby_version_answer(self.text(node))
        if answer is not None:
            return n.Literal(at, end, answer)
        operator_node = self.node(node, "operator")
        operator = self.text(operator_node)
        left_node, right_node = self.node(node, "left"), self.node(node, "right")
        self.check_spaces(left_node, operator_node, right_node)
        if operator in _UNCHAINED and any(
            each.type == "binary" and self.text(self.node(each, "operator")) in _UNCHAINED for each in (left_node, right_node)
        ):
            raise self.refuse(node, "a comparison of a comparison")
        left = self.statement(left_node)
        if operator in ("and", "&&", "or", "||"):
            self.branch_depth += 1
            right = self.statement(right_node)
            self.branch_depth -= 1
            return n.And(at, end, left, right) if operator in ("and", "&&") else n.Or(at, end, left, right)
        if operator not in _OPERATORS:
            raise self.refuse(node, f"the operator {operator}")
        right = self.statement(right_node)
        if operator in ("=~", "!~"):
            match = n.MatchTest(at, end, left, right, self.uses_groups)
            if self.uses_groups and self.in_method:
                raise self.refuse(node, "a match whose groups may be read")
            return match if operator == "=~" else n.RubyNot(at, end, match)
        if operator == "!=":
            return n.RubyNot(at, end, n.RubyMethodCall(at, end, left, "==", (right,), None))
        return n.RubyMethodCall(at, end, left, operator, (right,), None)

    def check_spaces(self, left: Node, operator: Node, right: Node) -> None:
        """Refuse `a -b` and the like, which Ruby may read as a call with an argument."""
        if operator.start_byte > left.end_byte and right.start_byte == operator.end_byte and self.text(operator) in _SPACED:
            raise self.refuse(operator, "an operator with a space on its left side only")

    def unary(self, node: Node) -> SyntaxNode:
        at, end = self.place(node)
        operator, operand = self.text(self.node(node, "operator")), self.node(node, "operand")
        if operator == "defined?":
            inner = named(operand) if operand.type == "parenthesized_statements" else [operand]
            if len(inner) != 1 or inner[0].type != "instance_variable":
                raise self.refuse(node)
            name = self.instance_variable(inner[0]).name
            self.tested.add(name)
            if name in self.assigned:
                raise self.refuse(node)
            return n.Defined(at, end, name)
        if operator == "not" and not self._may_begin_with_not(node, operand):
            raise self.refuse(node, "not inside an expression")
        if operator in ("!", "not"):
            return n.RubyNot(at, end, self.statement(operand))
        if operator == "-" and operand.type in ("integer", "float"):
            literal = self.statement(operand)
            assert isinstance(literal, n.Literal) and isinstance(literal.value, int | float)
            return n.Literal(at, end, -literal.value)
        raise self.refuse(node)

    def _may_begin_with_not(self, node: Node, operand: Node) -> bool:
        """
        Return whether Ruby reads `not` here as the grammar does: only at the start of a whole statement, a condition, or a side of `and`.
        """
        parent = node.parent
        if parent is None or self.program.octets[operand.start_byte : operand.start_byte + 1] == b"{":
            return False
        if parent.type == "binary":
            return self.text(self.node(parent, "operator")) in ("and", "or")
        if parent.type == "unary":
            return self.text(self.node(parent, "operator")) == "not"
        if parent.type in ("if", "unless", "elsif", "if_modifier", "unless_modifier"):
            return parent.child_by_field_name("condition") == node
        return parent.type in ("program", "parenthesized_statements", "then", "else", "body_statement", "block_body")


Reader.rules = {
    "array": literal_reader.array,
    "assignment": Reader.assignment,
    "begin": Reader.parentheses,
    "binary": Reader.binary,
    "break": Reader.break_,
    "call": Reader.call,
    "case": Reader.case,
    "chained_string": literal_reader.chained_string,
    "conditional": Reader.if_,
    "element_reference": Reader.element,
    "false": literal_reader.simple,
    "float": literal_reader.float_,
    "global_variable": Reader.global_variable,
    "hash": literal_reader.hash_,
    "identifier": Reader.identifier,
    "if": Reader.if_,
    "if_modifier": Reader.modifier,
    "instance_variable": Reader.instance_variable,
    "integer": literal_reader.integer,
    "method": Reader.method,
    "next": Reader.next_,
    "nil": literal_reader.simple,
    "operator_assignment": Reader.operator_assignment,
    "parenthesized_statements": Reader.parentheses,
    "range": literal_reader.range_,
    "regex": literal_reader.regexp,
    "simple_symbol": literal_reader.symbol,
    "string": literal_reader.string,
    "string_array": literal_reader.word_array,
    "true": literal_reader.simple,
    "unary": Reader.unary,
    "unless": Reader.if_,
    "unless_modifier": Reader.modifier,
}

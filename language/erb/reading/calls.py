"""The reader of calls: of methods of Ruby's core, of the template's own methods, and of Puppet's functions for templates."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ...syntax.nodes import SyntaxNode
from .. import methods
from .. import nodes as n
from .node_reader import NodeReader
from .scanner import OUTPUT, TEXT

if TYPE_CHECKING:
    from tree_sitter import Node

_TYPE_TESTS = frozenset(("is_a?", "kind_of?", "instance_of?"))
_PLAIN_ARGUMENT = re.compile(rb"""["'@A-Za-z_0-9]|:[A-Za-z_]|\[""")
"""The allowed beginnings of an argument without parentheses, which Ruby cannot read as an operator."""
_FUNCTION_NAME = re.compile(r"(?:[a-z_]\w*::)*[a-z_]\w*", re.ASCII)
_OPERATORS = frozenset(methods.METHODS) - frozenset(name for name in methods.METHODS if name[0].isalpha())
MAX_PARAMETERS = 8
MAX_BLOCKS = 15
"""Blocks inside blocks; Python has at most 20 loops inside each other."""


class CallReader(NodeReader):
    """Reads the calls of one template."""

    # --- which call it is ---

    def call(self, node: Node) -> SyntaxNode:
        receiver, method = node.child_by_field_name("receiver"), node.child_by_field_name("method")
        if method is None or method.type not in ("identifier", "constant"):
            raise self.refuse(node)
        name = self.text(method)
        arguments = self.arguments(node)
        if receiver is None:
            return self._call_without_receiver(node, name, arguments)
        operator = self.text(self.node(node, "operator"))
        if operator not in (".", "&."):
            raise self.refuse(node)
        if receiver.type == "identifier" and self.text(receiver) == "scope" and self.variables.find("scope") is None:
            return self._scope_call(node, name, arguments)
        if receiver.type in ("constant", "scope_resolution"):
            return self._constant_call(node, self.text(receiver), name, arguments)
        return self._method_call(node, receiver, name, arguments, is_safe=operator == "&.")

    def arguments(self, node: Node) -> list[Node]:
        """Return the arguments of a call; refuse those that Ruby may read differently, and names of arguments."""
        part = node.child_by_field_name("arguments")
        if part is None:
            return []
        octets = self.program.octets
        begin = octets[part.start_byte : part.start_byte + 1]
        if begin == b"(":
            if octets[part.start_byte - 1 : part.start_byte].isspace():
                raise self.refuse(node, "a space in front of parentheses")
        elif _PLAIN_ARGUMENT.match(octets, part.start_byte) is None:
            raise self.refuse(node, "an argument without parentheses")
        arguments = [child for child in part.named_children if child.type != "comment"]
        for argument in arguments:
            if argument.type in ("pair", "splat_argument", "hash_splat_argument"):
                raise self.refuse(argument)
        return arguments

    def _call_without_receiver(self, node: Node, name: str, arguments: list[Node]) -> SyntaxNode:
        at, end = self.place(node)
        if name == TEXT:
            if self.in_method:
                raise self.refuse(node, "text in a method")
            text, text_at = self.program.texts[int(self.text(arguments[0]))]
            return n.Text(text_at, text_at + len(text), text)
        if name == OUTPUT:
            inner = arguments[0].child_by_field_name("receiver")
            if inner is None or inner.type != "parenthesized_statements" or self.in_method or len(arguments) != 1:
                raise self.refuse(node)
            return n.RubyOutput(at, end, self.part(inner, inner))
        if self._block_node(node) is not None:
            raise self.refuse(node)
        if name == "has_variable?" and len(arguments) == 1:
            return n.HasVariable(at, end, self.statement(arguments[0]))
        if name == "raise" and arguments:
            return n.Raise(at, end, self.statement(arguments[-1]))
        if name in methods.CONVERSIONS:
            least, most = methods.CONVERSIONS[name]
            if not least <= len(arguments) <= most:
                raise self.refuse(node)
            return n.Conversion(at, end, name, self._values(arguments))
        return self.own_call(node, name, arguments)

    def own_call(self, node: Node, name: str, arguments: list[Node] | tuple[()]) -> SyntaxNode:
        """Return the call of a method that the template has defined."""
        python_name, count = self.methods.get(name, ("", -1))
        if count != len(arguments):
            raise self.refuse(node, f"the method {name}")
        return n.OwnCall(*self.place(node), python_name, name, self._values(arguments))

    def _values(self, arguments: list[Node] | tuple[()]) -> tuple[SyntaxNode, ...]:
        return tuple([self.statement(argument) for argument in arguments])

    # --- Puppet's scope, and constants ---

    def _scope_call(self, node: Node, name: str, arguments: list[Node]) -> SyntaxNode:
        at, end = self.place(node)
        if self._block_node(node) is not None:
            raise self.refuse(node)
        if name == "lookupvar" and len(arguments) == 1:
            return n.ScopeVariable(at, end, self.statement(arguments[0]))
        if name == "to_hash" and not arguments:
            return n.ScopeHash(at, end)
        if name == "setvar" and len(arguments) == 2:
            return n.ScopeAssignment(at, end, *self._values(arguments))
        if name.startswith("function_") and len(arguments) == 1:
            return self._function(node, name.removeprefix("function_"), arguments[0])
        if name == "call_function" and len(arguments) == 2:
            function = self.statement(arguments[0])
            if isinstance(function, n.Literal) and isinstance(function.value, str):
                return self._function(node, function.value, arguments[1], is_splat=True)
            if isinstance(function, n.SymbolLiteral):
                return self._function(node, function.name, arguments[1], is_splat=True)
        raise self.refuse(node, f"scope.{name}")

    def _function(self, node: Node, name: str, arguments: Node, *, is_splat: bool = False) -> SyntaxNode:
        """Read a call of a function of the language; `call_function` splats a value that is not an array, `function_…` takes none."""
        values = self.statement(arguments)
        is_array = isinstance(values, n.RubyArrayLiteral)
        if not (is_array or is_splat) or _FUNCTION_NAME.fullmatch(name) is None:
            raise self.refuse(node, f"the arguments of the function {name}")
        if not is_array:
            values = n.Conversion(values.at, values.end, "Array", (values,))
        return n.RubyFunctionCall(*self.place(node), name, values)

    def _constant_call(self, node: Node, constant: str, name: str, arguments: list[Node]) -> SyntaxNode:
        at, end = self.place(node)
        if self._block_node(node) is None:
            if name == "new" and not arguments and constant in ("Hash", "Array"):
                return n.RubyHashLiteral(at, end, (), ()) if constant == "Hash" else n.RubyArrayLiteral(at, end, ())
            if (constant, name) in (("File", "join"), ("Regexp", "escape"), ("File", "basename")) and arguments:
                return n.Conversion(at, end, f"{constant}.{name}", self._values(arguments))
        raise self.refuse(node, f"{constant}.{name}")

    def element(self, node: Node) -> SyntaxNode:
        at, end = self.place(node)
        receiver, *keys = [child for child in node.named_children if child.type != "comment"]
        octets = self.program.octets
        if octets[receiver.end_byte : receiver.end_byte + 1] != b"[":
            raise self.refuse(node, "a space in front of [")
        if node.child_by_field_name("block") is not None or any(key.type in ("pair", "splat_argument", "block_argument") for key in keys):
            raise self.refuse(node)
        if receiver.type == "identifier" and self.text(receiver) == "scope" and self.variables.find("scope") is None:
            if len(keys) != 1:
                raise self.refuse(node)
            return n.ScopeVariable(at, end, self.statement(keys[0]))
        if not 1 <= len(keys) <= 2:
            raise self.refuse(node)
        return n.RubyMethodCall(at, end, self.statement(receiver), "[]", self._values(keys), None)

    # --- methods of Ruby's core ---

    def _method_call(self, node: Node, receiver: Node, name: str, arguments: list[Node], *, is_safe: bool) -> SyntaxNode:
        at, end = self.place(node)
        if name in _TYPE_TESTS:
            if len(arguments) != 1 or is_safe or self._block_node(node) is not None:
                raise self.refuse(node)
            value = self.statement(receiver)
            tested = self.class_name(arguments[0]).name
            if name == "instance_of?" and tested == "Numeric":
                raise self.refuse(node)
            return n.ClassTest(at, end, value, tested)
        indexed = self._indexed(node, receiver, name, arguments)
        if indexed is not None:
            return indexed
        value = self.statement(receiver)
        if name == "is_a" and len(arguments) == 1:  # a slip of modules: Ruby has no such method, whatever the argument is
            return n.RubyMethodCall(at, end, value, name, (), None, is_safe)
        block = self._block_of(node, name, arguments)
        if arguments and arguments[-1].type == "block_argument":
            arguments = arguments[:-1]
        if name in ("inject", "reduce") and block is None and len(arguments) == 1 and arguments[0].type == "simple_symbol":
            block, arguments = self._operator_block(arguments[0]), []
        table = methods.BLOCK_METHODS if block is not None else methods.METHODS
        method = table.get(name)
        if method is None or name in _OPERATORS or not method.least <= len(arguments) <= method.most:
            raise self.refuse(node, f"the method {name}")
        if self.uses_groups and name == "match" and block is None and not is_safe and not self.in_method:
            return n.MatchData(at, end, value, self.statement(arguments[0]))
        splits = name == "split" and len(arguments) == 1 and arguments[0].type != "string"  # text is not matched
        if self.uses_groups and splits and block is None and not is_safe and not self.in_method:
            return n.PatternSplit(at, end, value, self.statement(arguments[0]))
        if self.uses_groups and (method.sets_groups or splits):
            raise self.refuse(node, "a match whose groups may be read")
        return n.RubyMethodCall(at, end, value, name, self._values(arguments), block, is_safe)

    def _indexed(self, node: Node, receiver: Node, name: str, arguments: list[Node]) -> SyntaxNode | None:
        """Return the call of `x.each_with_index.map { … }`, `x.map.with_index(1) { … }` and the like; None for other calls."""
        block = self._block_node(node)
        if receiver.type != "call" or block is None or self._block_node(receiver) is not None or self.arguments(receiver):
            return None
        inner_receiver, inner_name = receiver.child_by_field_name("receiver"), receiver.child_by_field_name("method")
        if inner_receiver is None or inner_name is None:
            return None
        inner = self.text(inner_name)
        begin: SyntaxNode = n.Literal(*self.place(node), 0)
        if inner == "each_with_index" and methods.BLOCK_METHODS.get(name, methods.BlockMethod(None, values=2)).values == 1:
            method = name
        elif (inner, name) in methods.WITH_INDEX:
            method = inner
        else:
            return None
        if self.text(self.node(receiver, "operator")) != ".":
            raise self.refuse(node)
        value = self.statement(inner_receiver)
        if len(arguments) == 1 and name == "with_index":
            begin = self.statement(arguments[0])
        elif arguments:
            raise self.refuse(node)
        arguments_of_pairs = (begin, n.Literal(*self.place(receiver), inner))
        pairs = n.RubyMethodCall(*self.place(receiver), value, "each_with_index", arguments_of_pairs, None)
        return n.RubyMethodCall(*self.place(node), pairs, method, (), self.block(block, 1))

    def _block_node(self, node: Node) -> Node | None:
        return node.child_by_field_name("block")

    def _block_of(self, node: Node, name: str, arguments: list[Node]) -> n.Block | None:
        """Return the block of a call; `&:name` is one, too."""
        block = self._block_node(node)
        method = methods.BLOCK_METHODS.get(name)
        values = method.values if method is not None else 1
        if block is not None:
            if arguments and arguments[-1].type == "block_argument":
                raise self.refuse(node)
            return self.block(block, values)
        if not arguments or arguments[-1].type != "block_argument":
            return None
        inner = arguments[-1].named_children
        if values != 1 or len(inner) != 1 or inner[0].type != "simple_symbol":
            raise self.refuse(arguments[-1])
        called = self.text(inner[0])[1:]
        called_method = methods.METHODS.get(called)
        if called_method is None or called_method.least or called_method.mutates or called_method.sets_groups:
            raise self.refuse(inner[0])
        at, end = self.place(inner[0])
        scope = self.variables.enter()
        parameter = self.variables.declare_parameter("item")
        self.variables.leave()
        body = n.RubyMethodCall(at, end, n.LocalVariable(at, end, parameter), called, (), None)
        return n.Block(at, end, (n.RubyParameter(at, end, parameter),), body, tuple(scope.own), ())

    def _operator_block(self, symbol: Node) -> n.Block:
        """Return the block that `inject(:+)` means."""
        at, end = self.place(symbol)
        name = self.text(symbol)[1:]
        if name not in ("+", "*"):
            raise self.refuse(symbol)
        self.variables.enter()
        left, right = (self.variables.declare_parameter(word) for word in ("left", "right"))
        self.variables.leave()
        operands = [n.LocalVariable(at, end, each) for each in (left, right)]
        body = n.RubyMethodCall(at, end, operands[0], name, (operands[1],), None)
        return n.Block(at, end, (n.RubyParameter(at, end, left), n.RubyParameter(at, end, right)), body, (), ())

    # --- blocks ---

    def block(self, node: Node, values: int) -> n.Block:
        """Read a block that gets one value, or two."""
        if node.type not in ("block", "do_block"):
            raise self.refuse(node)
        if self.block_depth >= MAX_BLOCKS:
            raise self.refuse(node, "blocks that are nested too deeply")
        scope = self.variables.enter()
        self.block_depth += 1
        try:
            part = node.child_by_field_name("parameters")
            parameters = [] if part is None else [self._block_parameter(child) for child in part.named_children]
            if len(parameters) > (MAX_PARAMETERS if values == 1 else 2):
                raise self.refuse(node, "the parameters of a block")
            body = self.part(node.child_by_field_name("body"), node)
            if any(child.type in ("rescue", "ensure", "else") for child in node.named_children):
                raise self.refuse(node)
        finally:
            self.block_depth -= 1
            self.variables.leave()
        return n.Block(*self.place(node), tuple(parameters), body, tuple(scope.own), tuple(scope.outer))

    def _block_parameter(self, node: Node) -> n.RubyParameter:
        at, end = self.place(node)
        if node.type == "identifier":
            name = self.text(node)
            if name in self.variables.current.names:
                raise self.refuse(node)
            return n.RubyParameter(at, end, self.variables.declare_parameter(name))
        if node.type == "destructured_parameter":
            return n.RubyParameter(
                at, end, self.variables.declare_parameter(f"({at}"), tuple([self._block_parameter(child) for child in node.named_children])
            )
        raise self.refuse(node, "the parameters of a block")

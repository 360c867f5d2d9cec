"""Reads the file of a function in Ruby, of the 3.x or the 4.x API, to a checked tree, or a Refusal with its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...syntax.nodes import SyntaxNode
from .. import methods
from .. import nodes as n
from ..errors import Refusal
from ..grammar import syntax_tree
from ..runtime.library import ERRORS
from . import literal_reader
from .function_calls import LIBRARIES, FunctionCallReader
from .node_reader import named
from .scanner import TemplateProgram
from .templates import Reader

if TYPE_CHECKING:
    from tree_sitter import Node

_VISIBILITIES = ("private", "protected", "public")  # methods are called by the function itself alone
_PARAMETER_WORDS = {
    "param": "",
    "required_param": "",
    "optional_param": "?",
    "repeated_param": "*",
    "optional_repeated_param": "*",
    "required_repeated_param": "+",
}
_CLASSES = methods.CLASSES | ERRORS
_FORBIDDEN = ("__END__", "=begin", "=end", "__method__", "binding", "ObjectSpace")


@dataclass(frozen=True, slots=True)
class DispatchTree:
    """One `dispatch :method do … end`: parameters as `functions.api` writes them."""

    method: str
    parameters: tuple[str, ...]
    returns: str | None
    is_mismatch: bool


@dataclass(frozen=True, slots=True)
class FunctionTree:
    """
    A function.

    Attributes:
        methods: by their names in Ruby; a function of the 3.x API has one, ''.
        dispatches: of a function of the 4.x API, in order.
        arity: of one of the 3.x API.
        is_statement: one of the 3.x API gives no value.
    """

    methods: dict[str, n.FunctionMethod]
    dispatches: tuple[DispatchTree, ...] = ()
    arity: int | None = None
    is_statement: bool = False

    @property
    def is_legacy(self) -> bool:
        return self.arity is not None


def read_function(name: str, text: str) -> FunctionTree:
    """
    Return the tree of the function `name` that a file defines.

    Raises:
        Refusal: the file has code outside of the subset, or does more than define the function.
    """
    try:
        octets = text.encode()
    except UnicodeEncodeError as error:
        raise Refusal("text that is not UTF-8", error.start) from None
    for word in _FORBIDDEN:
        if word in text:
            raise Refusal(f"the word {word}", text.index(word))
    program = TemplateProgram(octets, [], [(0, 0, text)])
    root = syntax_tree(octets)
    reader = FunctionReader(program, len(text))
    if root.has_error:
        raise Refusal("what the grammar of Ruby does not know", reader.error_offset(root))
    try:
        return reader.file(root, name)
    except RecursionError:
        raise Refusal("expressions that are nested too deeply", 0) from None


class FunctionReader(FunctionCallReader):
    """
    Reads one file.

    Attributes:
        is_legacy: it defines a function of the 3.x API.
        own_methods: the methods that it defines: the Python name, the least and the greatest number of arguments.
    """

    def __init__(self, program: TemplateProgram, size: int) -> None:
        super().__init__(program, size)
        self.uses_groups = False
        self.is_legacy = False
        self.own_methods: dict[str, tuple[str, int, int | None]] = {}

    # --- the file ---

    def file(self, root: Node, name: str) -> FunctionTree:
        statements = [node for node in named(root) if not self._is_require(node)]
        if len(statements) != 1:
            raise self.refuse(statements[1] if statements else root, "something besides the definition of a function")
        definition = statements[0]
        if definition.type == "module":
            inner = [node for node in named(definition.child_by_field_name("body")) if not self._is_require(node)]
            if self.text(self.node(definition, "name")) != "Puppet::Parser::Functions" or len(inner) != 1:
                raise self.refuse(definition)
            return self._legacy(inner[0], name, inside=True)
        if definition.type != "call":
            raise self.refuse(definition)
        if self.text(self.node(definition, "method")) == "newfunction":
            return self._legacy(definition, name, inside=False)
        return self._modern(definition, name)

    def _is_require(self, node: Node) -> bool:
        if node.type != "call" or self.text(self.node(node, "method")) != "require" or node.child_by_field_name("receiver") is not None:
            return False
        arguments = self.arguments(node)
        library = self.statement(arguments[0]) if len(arguments) == 1 else None
        if not isinstance(library, n.Literal) or library.value not in LIBRARIES:
            raise self.refuse(node)
        return True

    def _name(self, node: Node) -> str:
        if node.type == "delimited_symbol":
            return "".join([self.text(child) for child in node.named_children])
        return self.text(node).lstrip(":") if node.type == "simple_symbol" else str(getattr(self.statement(node), "value", ""))

    def _block_body(self, node: Node) -> tuple[Node, list[Node]]:
        """Return the block of a definition, and its statements."""
        block = node.child_by_field_name("block")
        if block is None or block.type not in ("do_block", "block"):
            raise self.refuse(node)
        body = block.child_by_field_name("body")
        statements = named(body)
        if any(child.type in ("rescue", "ensure", "else") for child in statements):
            raise self.refuse(block)
        return block, statements

    # --- the 3.x API ---

    def _legacy(self, node: Node, name: str, *, inside: bool) -> FunctionTree:
        self.is_legacy = True
        receiver = node.child_by_field_name("receiver")
        if node.type != "call" or self.text(self.node(node, "method")) != "newfunction":
            raise self.refuse(node)
        if (receiver is None) != inside or (receiver is not None and self.text(receiver) != "Puppet::Parser::Functions"):
            raise self.refuse(node)
        name_node, *options = [child for child in named(self.node(node, "arguments")) if child.type != "heredoc_body"]
        if self._name(name_node) != name:
            raise self.refuse(node, "a function of another name")
        arity, is_statement = -1, True
        for option in options:
            key = self.text(self.node(option, "key")).strip(":") if option.type == "pair" else ""
            value = self.node(option, "value") if option.type == "pair" else option
            if key == "arity" and value.type in ("integer", "unary"):
                arity = int(self.text(value))
            elif key == "type" and self.text(value) in (":rvalue", ":statement"):
                is_statement = self.text(value) == ":statement"
            elif key != "doc" or value.type not in ("string", "heredoc_beginning") or self._interpolates(node, value):
                raise self.refuse(option)
        block, statements = self._block_body(node)
        parameters = named(block.child_by_field_name("parameters"))
        if len(parameters) != 1 or parameters[0].type != "identifier":
            raise self.refuse(block, "the parameters of the function")
        method = self._method_tree(block, "m_legacy", parameters, statements)
        return FunctionTree({"": method}, (), arity, is_statement)

    def _interpolates(self, node: Node, value: Node) -> bool:
        texts = [value, *[child for child in named(self.node(node, "arguments")) if child.type == "heredoc_body"]]
        return any(child.type == "interpolation" for text in texts for child in text.named_children)

    # --- the 4.x API ---

    def _modern(self, node: Node, name: str) -> FunctionTree:
        receiver = node.child_by_field_name("receiver")
        if receiver is None or self.text(receiver) != "Puppet::Functions" or self.text(self.node(node, "method")) != "create_function":
            raise self.refuse(node)
        arguments = self.arguments(node)
        if len(arguments) != 1 or self._name(arguments[0]) != name:
            raise self.refuse(node)
        block, statements = self._block_body(node)
        if named(block.child_by_field_name("parameters")):
            raise self.refuse(block)
        statements = [each for each in statements if each.type != "identifier" or self.text(each) not in _VISIBILITIES]
        definitions = [statement for statement in statements if statement.type == "method"]
        for definition in definitions:
            self._declare(definition)
        dispatches = [self._dispatch(statement) for statement in statements if statement.type != "method"]
        trees = {self.text(self.node(each, "name")): self._definition(each) for each in definitions}
        if not dispatches:
            dispatches = [self._default_dispatch(node, name.rpartition("::")[2], definitions)]
        for dispatch in dispatches:
            self._check_arity(node, dispatch, trees.get(dispatch.method))
        return FunctionTree(trees, tuple(dispatches))

    def _dispatch(self, node: Node) -> DispatchTree:
        word = self.text(self.node(node, "method")) if node.type == "call" and node.child_by_field_name("receiver") is None else ""
        if word not in ("dispatch", "argument_mismatch"):
            raise self.refuse(node)
        (method,) = self.arguments(node)
        if method.type != "simple_symbol":
            raise self.refuse(node)
        parameters: list[str] = []
        returns: str | None = None
        for statement in self._block_body(node)[1]:
            name = self.text(self.node(statement, "method")) if statement.type == "call" else ""
            values = self.arguments(statement) if statement.type == "call" else []
            if name in _PARAMETER_WORDS and len(values) == 2 and values[1].type == "simple_symbol":
                parameters.append(f"{self._type(values[0])} {self._name(values[1])}{_PARAMETER_WORDS[name]}")
            elif name == "return_type" and len(values) == 1:
                returns = self._type(values[0])
            else:
                raise self.refuse(statement)
        return DispatchTree(self._name(method), tuple(parameters), returns, word != "dispatch")

    def _type(self, node: Node) -> str:
        text = self.statement(node)
        if not isinstance(text, n.Literal) or not isinstance(text.value, str):
            raise self.refuse(node)
        return text.value.replace("\n", " ")

    def _default_dispatch(self, node: Node, method: str, definitions: Sequence[Node]) -> DispatchTree:
        """Return the dispatch of a function without any: the parameters of its method of the same name."""
        definition = next((each for each in definitions if self.text(self.node(each, "name")) == method), None)
        if definition is None:
            raise self.refuse(node, f"no method {method}")
        marks = {"identifier": "", "optional_parameter": "?", "splat_parameter": "*"}
        parameters: list[str] = []
        for parameter in named(definition.child_by_field_name("parameters")):
            name = self.text(parameter if parameter.type == "identifier" else self.node(parameter, "name"))
            parameters.append(f"Any {name}{marks[parameter.type]}")
        return DispatchTree(method, tuple(parameters), None, False)

    def _check_arity(self, node: Node, dispatch: DispatchTree, method: n.FunctionMethod | None) -> None:
        """Refuse a dispatch that may call its method with more or fewer arguments than it takes."""
        if method is None:
            raise self.refuse(node, f"no method {dispatch.method}")
        least = sum(text[-1] not in "?*" for text in dispatch.parameters)
        most = None if any(text[-1] in "*+" for text in dispatch.parameters) else len(dispatch.parameters)
        if least < method.least or (method.most is not None and (most is None or most > method.most)):
            raise self.refuse(node, f"a dispatch that does not fit the method {dispatch.method}")

    # --- methods ---

    def _declare(self, node: Node) -> None:
        name = self.text(self.node(node, "name"))
        parameters = named(node.child_by_field_name("parameters"))
        kinds = [parameter.type for parameter in parameters]
        if (
            kinds != sorted(kinds, key=("identifier", "optional_parameter", "splat_parameter", *kinds).index)
            or kinds.count("splat_parameter") > 1
        ):
            raise self.refuse(node, f"the parameters of {name}")
        if any(kind not in ("identifier", "optional_parameter", "splat_parameter") for kind in kinds) or name in self.own_methods:
            raise self.refuse(node, f"the parameters of {name}")
        if name in methods.RESERVED or name in ("call_function", "closure_scope", "fail", "require", "_"):
            raise self.refuse(node, f"the definition of {name}")
        most = None if "splat_parameter" in kinds else len(kinds)
        self.own_methods[name] = self.variables.unique_name(name), kinds.count("identifier"), most

    def _definition(self, node: Node) -> n.FunctionMethod:
        part = node.child_by_field_name("body")
        body = [part] if part is not None and part.type != "body_statement" else named(part)
        if any(child.type in ("rescue", "ensure", "else") for child in body):
            raise self.refuse(node, "rescue in a method")
        python_name = self.own_methods[self.text(self.node(node, "name"))][0]
        return self._method_tree(node, python_name, named(node.child_by_field_name("parameters")), body)

    def _method_tree(self, node: Node, python_name: str, parameters: Sequence[Node], body: Sequence[Node]) -> n.FunctionMethod:
        scope = self.variables.enter(is_method=True)
        try:
            read = tuple([self._parameter(parameter) for parameter in parameters])
            if len(scope.names) != len(parameters):
                raise self.refuse(node)
            at, end = self.place(node)
            return n.FunctionMethod(at, end, python_name, read, self.body(body, at, end), tuple(scope.own))
        finally:
            self.variables.leave()

    def _parameter(self, node: Node) -> n.RubyMethodParameter:
        at, end = self.place(node)
        name = self.text(node if node.type == "identifier" else self.node(node, "name"))
        default = self.field(node, "value") if node.type == "optional_parameter" else None
        return n.RubyMethodParameter(at, end, self.variables.declare_parameter(name), default, node.type == "splat_parameter")

    # --- statements ---

    def return_(self, node: Node) -> SyntaxNode:
        at, end = self.place(node)
        values = [child for part in named(node) for child in named(part)]
        if len(values) > 1 or any(value.type in ("pair", "splat_argument") for value in values):
            raise self.refuse(node)
        return n.RubyReturn(at, end, self.statement(values[0]) if values else n.Literal(at, end, None))

    def while_(self, node: Node) -> SyntaxNode:
        at, end = self.place(node)
        test = self.field(node, "condition")
        self.block_depth += 1
        try:
            body = self.part(node.child_by_field_name("body"), node)
        finally:
            self.block_depth -= 1
        return n.RubyWhile(at, end, test, body, node.type == "until")

    def begin(self, node: Node) -> SyntaxNode:
        parts = named(node)
        handlers = [part for part in parts if part.type == "rescue"]
        if not handlers:
            return self.parentheses(node)
        at, end = self.place(node)
        statements = [part for part in parts if part.type != "rescue"]
        if parts[len(statements) :] != handlers:
            raise self.refuse(node)
        body = self.body(statements, at, end)
        classes: list[SyntaxNode] = []
        bodies: list[SyntaxNode] = []
        for handler in handlers:
            variable = handler.child_by_field_name("variable")
            handled = handler.child_by_field_name("body")
            if variable is not None:
                self._refuse_use(variable)
            exceptions = handler.child_by_field_name("exceptions")
            classes.append(self._classes(handler, exceptions))
            bodies.append(self.part(handled, handler))
        return n.Rescued(at, end, body, tuple(classes), tuple(bodies))

    def _refuse_use(self, variable: Node) -> None:
        """Refuse an error that is assigned to a variable, unless the variable is named nowhere else."""
        name = re.escape(self.text(variable.named_children[0]))
        text = self.program.octets.decode()
        if len(re.findall(rf"\b{name}\b", text)) != len(re.findall(rf"=>\s*{name}\b", text)):
            raise self.refuse(variable, "an error in a variable")

    def _classes(self, handler: Node, exceptions: Node | None) -> SyntaxNode:
        at, end = self.place(exceptions or handler)
        items: list[SyntaxNode] = []
        for child in named(exceptions):
            if child.type == "splat_argument":
                items.append(n.RubySplat(*self.place(child), self.statement(child.named_children[0])))
            else:
                items.append(self.statement(child))
        return n.RubyArrayLiteral(at, end, tuple(items) if exceptions is not None else (n.RubyClassName(at, end, "StandardError"),))

    def constant(self, node: Node) -> SyntaxNode:
        name = self.text(node)
        if name not in _CLASSES:
            raise self.refuse(node, f"the constant {name[:40]}")
        return n.RubyClassName(*self.place(node), name)

    def identifier(self, node: Node) -> SyntaxNode:
        if self.text(node) == "scope" and self.variables.find("scope") is None:
            raise self.refuse(node)
        return super().identifier(node)

    def regexp(self, node: Node) -> SyntaxNode:
        inner = node.children[1:-1]
        if not any(child.type == "interpolation" for child in inner):
            return literal_reader.regexp(self, node)
        if any(child.type not in ("interpolation", "string_content") for child in inner) or self.text(node.children[-1]) not in ("/", "}"):
            raise self.refuse(node)
        parts = [
            self.body(named(child), *self.place(child))
            if child.type == "interpolation"
            else n.Literal(*self.place(child), self.text(child))
            for child in inner
        ]
        at, end = self.place(node)
        return n.RegexpInterpolation(at, end, n.Interpolation(at, end, tuple(parts)))

    def target(self, node: Node) -> n.InstanceVariable | n.LocalVariable:
        if node.type != "identifier":
            raise self.refuse(node, f"an assignment to {self.text(node)[:60]}")
        return super().target(node)

    def refused(self, node: Node) -> SyntaxNode:
        raise self.refuse(node)


FunctionReader.rules = {
    **Reader.rules,
    "begin": FunctionReader.begin,
    "call": FunctionReader.call,
    "constant": FunctionReader.constant,
    "element_reference": FunctionReader.element,
    "global_variable": FunctionReader.refused,
    "identifier": FunctionReader.identifier,
    "instance_variable": FunctionReader.refused,
    "method": FunctionReader.refused,
    "regex": FunctionReader.regexp,
    "return": FunctionReader.return_,
    "scope_resolution": FunctionReader.constant,
    "until": FunctionReader.while_,
    "while": FunctionReader.while_,
}

"""Reads calls that functions in Ruby have and templates do not: of Ruby's library, Puppet's log, methods with optional arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...syntax.nodes import SyntaxNode
from .. import methods
from .. import nodes as n
from .templates import Reader

if TYPE_CHECKING:
    from tree_sitter import Node

LIBRARIES = frozenset(("base64", "cgi", "digest", "digest/md5", "digest/sha1", "digest/sha2", "erb", "ipaddr", "json", "set", "uri"))
"""What may be required: parts of Ruby's library, all or nothing of which is translated."""
_LIBRARY_CALLS = {
    "Base64.strict_encode64": "_strict_encode64",
    "CGI.escape": "_cgi_escape",
    "ERB::Util.url_encode": "_url_encode",
    "IPAddr.new": "_ip_address",
}
_DIGESTS = frozenset(("MD5", "SHA1", "SHA256", "SHA384", "SHA512"))
_LEVELS = frozenset(("debug", "info", "notice", "warning", "err", "alert", "emerg", "crit"))
_IP_TESTS = {"ipv4?": "_ipv4_p", "ipv6?": "_ipv6_p"}
_IP_ERRORS = frozenset(("AddressFamilyError", "Error", "InvalidAddressError", "InvalidPrefixError"))


class FunctionCallReader(Reader):
    """
    Reads the calls of one function.

    Attributes:
        is_legacy: it is a function of the 3.x API.
        own_methods: the methods that its file defines: the Python name, the least and the greatest number of arguments.
    """

    is_legacy: bool
    own_methods: dict[str, tuple[str, int, int | None]]

    def call(self, node: Node) -> SyntaxNode:
        receiver, method = node.child_by_field_name("receiver"), node.child_by_field_name("method")
        if method is None or method.type not in ("identifier", "constant"):
            raise self.refuse(node)
        name = self.text(method)
        if receiver is None:
            return self._plain_call(node, name)
        if receiver.type == "self":
            if not self.is_legacy or self._block_node(node) is not None or self.text(self.node(node, "operator")) != ".":
                raise self.refuse(node)
            return self._of_scope(node, name)
        if name in _IP_TESTS and self._block_node(node) is None and not self.arguments(node):
            if self.text(self.node(node, "operator")) != ".":
                raise self.refuse(node)
            return n.LibraryCall(*self.place(node), _IP_TESTS[name], (self.statement(receiver),))
        return super().call(node)

    def _plain_call(self, node: Node, name: str) -> SyntaxNode:
        at, end = self.place(node)
        if self._block_node(node) is not None:
            raise self.refuse(node)
        if name == "call_function" and not self.is_legacy:
            return self._function_with_splats(node)
        if name in ("call_function", "lookupdefaults", "lookupvar") or name.startswith("function_"):
            if not self.is_legacy:
                raise self.refuse(node)
            return self._of_scope(node, name)
        arguments = self.arguments(node)
        if name in ("raise", "fail") and 1 <= len(arguments) <= 2:
            return n.LibraryCall(at, end, "_raise_text" if len(arguments) == 1 else "_raise_of", self._values(arguments))
        if name == "require":
            return self._required(node, arguments)
        if name == "_" and len(arguments) == 1:
            return self.statement(arguments[0])  # here all texts are English
        if name in methods.CONVERSIONS:
            return super().call(node)
        return self.own_call(node, name, arguments)

    def _required(self, node: Node, arguments: list[Node]) -> SyntaxNode:
        """Read `require`, which does nothing here; its value must not be used."""
        at, end = self.place(node)
        library = self.statement(arguments[0]) if len(arguments) == 1 else None
        if not isinstance(library, n.Literal) or library.value not in LIBRARIES:
            raise self.refuse(node)
        parent = node.parent
        if parent is None or parent.type not in ("body_statement", "program") or node.next_named_sibling is None:
            raise self.refuse(node)
        return n.Literal(at, end, None)

    def _of_scope(self, node: Node, name: str) -> SyntaxNode:
        """Read a call of a method of the calling scope, which functions of the 3.x API have as `self`."""
        if name == "lookupdefaults":
            (type_name,) = self.arguments(node)
            return n.ResourceDefaults(*self.place(node), self.statement(type_name))
        if name not in ("lookupvar", "call_function") and not name.startswith("function_"):
            raise self.refuse(node)
        return self._scope_call(node, name, self.arguments(node))

    def _function_with_splats(self, node: Node) -> SyntaxNode:
        """Read `call_function('name', one, *others)`."""
        part = node.child_by_field_name("arguments")
        if part is None or self.program.octets[part.start_byte : part.start_byte + 1] != b"(":
            raise self.refuse(node)
        name_node, *arguments = [child for child in part.named_children if child.type != "comment"]
        name = self.statement(name_node)
        if not isinstance(name, n.Literal) or not isinstance(name.value, str):
            raise self.refuse(node)
        values = [self._splat(argument) for argument in arguments]
        place = self.place(part)
        return n.RubyFunctionCall(*self.place(node), name.value, n.RubyArrayLiteral(*place, tuple(values)))

    def _splat(self, node: Node) -> SyntaxNode:
        if node.type in ("pair", "block_argument", "hash_splat_argument"):
            raise self.refuse(node)
        if node.type != "splat_argument":
            return self.statement(node)
        return n.RubySplat(*self.place(node), self.statement(node.named_children[0]))

    def _constant_call(self, node: Node, constant: str, name: str, arguments: list[Node]) -> SyntaxNode:
        at, end = self.place(node)
        if self._block_node(node) is not None or self.text(self.node(node, "operator")) != ".":
            raise self.refuse(node, f"{constant}.{name}")
        function = _LIBRARY_CALLS.get(f"{constant}.{name}")
        if function is not None and len(arguments) == 1:
            return n.LibraryCall(at, end, function, self._values(arguments))
        algorithm = constant.removeprefix("Digest::")
        if algorithm in _DIGESTS and algorithm != constant and name in ("digest", "hexdigest") and len(arguments) == 1:
            return n.LibraryCall(at, end, f"_{name}", (n.Literal(at, end, algorithm), *self._values(arguments)))
        if constant == "Puppet" and name in _LEVELS and len(arguments) == 1:
            return n.LogCall(at, end, name, self.statement(arguments[0]))
        if (constant, name) == ("IPAddr", "const_defined?") and len(arguments) == 1:
            tested = self.statement(arguments[0])
            if isinstance(tested, n.Literal) and tested.value in _IP_ERRORS:
                return n.Literal(at, end, True)
        return super()._constant_call(node, constant, name, arguments)

    def element(self, node: Node) -> SyntaxNode:
        receiver, *keys = [child for child in node.named_children if child.type != "comment"]
        if receiver.type == "constant" and self.text(receiver) == "Hash":
            if len(keys) != 1 or keys[0].type in ("pair", "splat_argument", "block_argument"):
                raise self.refuse(node)
            return n.LibraryCall(*self.place(node), "_hash_of", (self.statement(keys[0]),))
        if receiver.type == "identifier" and self.text(receiver) == "closure_scope" and not self.is_legacy:
            if len(keys) != 1 or self.program.octets[receiver.end_byte : receiver.end_byte + 1] != b"[":
                raise self.refuse(node)
            return n.ScopeVariable(*self.place(node), self.statement(keys[0]))
        return super().element(node)

    def own_call(self, node: Node, name: str, arguments: list[Node] | tuple[()]) -> SyntaxNode:
        """Return the call of a method of the function."""
        python_name, least, most = self.own_methods.get(name, ("", 0, -1))
        if not python_name or len(arguments) < least or (most is not None and len(arguments) > most):
            raise self.refuse(node, f"the method {name}")
        return n.OwnCall(*self.place(node), python_name, name, self._values(arguments))

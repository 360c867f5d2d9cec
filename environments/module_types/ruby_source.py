"""Reads Ruby source without running it: syntax trees, and the values of expressions that follow from the text."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from language.erb.errors import Refusal
from language.erb.grammar import syntax_tree, with_plain_shifts
from language.erb.reading import literals

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_STEPS = 20_000
"""Expressions evaluated for one type."""
MAX_DEPTH = 50

_REQUIRES = ("require", "require_relative", "load")
_IGNORECASE, _EXTENDED, _MULTILINE = 1, 2, 4


class Unreadable(Exception):
    """The value of an expression does not follow from the text."""


@dataclass(frozen=True, slots=True)
class RubyRegexp:
    """A regular expression: its source and Ruby's option bits."""

    source: str
    options: int = 0

    @property
    def embedded(self) -> str:
        """The source with its options, in the form used inside another regular expression or in the Puppet language."""
        on = "".join(letter for letter, bit in (("m", _MULTILINE), ("i", _IGNORECASE), ("x", _EXTENDED)) if self.options & bit)
        off = "".join(letter for letter in "mix" if letter not in on)
        return f"(?{on}{'-' + off if off else ''}:{self.source})"

    @property
    def plain(self) -> str:
        """The source; in the embedded form when there are options."""
        return self.embedded if self.options else self.source


@dataclass(frozen=True)
class RubyFile:
    """One file and its tree. A node is always passed together with its file."""

    path: str
    data: bytes
    root: Node

    @classmethod
    def parse(cls, path: str, data: bytes) -> RubyFile:
        data = with_plain_shifts(data)
        return cls(path, data, syntax_tree(data))

    def text(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def walk(self, node: Node | None = None) -> Iterator[Node]:
        """Yield `node` and every node below it, in the order of the text."""
        pending = [node or self.root]
        while pending:
            current = pending.pop()
            yield current
            pending.extend(reversed(current.children))

    def heredoc(self, beginning: Node) -> str:
        """Return the text of the heredoc that begins at a node; raise Unreadable when it has expressions."""
        nodes = list(self.walk())
        beginnings = [node.start_byte for node in nodes if node.type == "heredoc_beginning"]
        bodies = [node for node in nodes if node.type == "heredoc_body"]
        index = beginnings.index(beginning.start_byte)
        if index >= len(bodies):
            raise Unreadable("a heredoc without an end")
        if any(node.type == "interpolation" for node in bodies[index].children):
            raise Unreadable("a heredoc with expressions in it")
        lines = self.text(bodies[index]).rstrip().splitlines()[:-1]
        return "\n".join(lines)

    def required(self) -> Iterator[tuple[str, bool]]:
        """Yield the required files: a path without `.rb`, and whether it is relative to the libraries (else it is absolute)."""
        for call in self.walk():
            if call.type != "call" or called_name(self, call) not in _REQUIRES:
                continue
            arguments = call.child_by_field_name("arguments")
            parts = [self.text(node) for node in self.walk(arguments) if node.type == "string_content"] if arguments else []
            if not parts or arguments is None:
                continue
            path, arguments_text = posixpath.join(*parts), self.text(arguments)
            if "__FILE__" in arguments_text or "__dir__" in arguments_text:
                base = self.path if "dirname" not in arguments_text and "__dir__" not in arguments_text else posixpath.dirname(self.path)
                yield posixpath.normpath(posixpath.join(base, path)).removesuffix(".rb"), False
            elif called_name(self, call) == "require_relative":
                yield posixpath.normpath(posixpath.join(posixpath.dirname(self.path), path)).removesuffix(".rb"), False
            else:
                yield path.removesuffix(".rb"), True


def called_name(file: RubyFile, call: Node) -> str:
    """Return the name of the method that a call, or a bare name, calls."""
    if call.type == "identifier":
        return file.text(call)
    name = call.child_by_field_name("method")
    return file.text(name) if name is not None else ""


def is_block(node: Node | None) -> bool:
    return node is not None and node.type in ("block", "do_block")


def nodes_in(node: Node, field: str) -> list[Node]:
    """Return the named nodes of the part of a node that the grammar calls `field`; none when it has no such part."""
    part = node.child_by_field_name(field)
    return [] if part is None else list(part.named_children)


def method_body(node: Node) -> list[Node]:
    """Return the statements of a block, method, class or module."""
    return nodes_in(node, "body")


@dataclass(frozen=True, slots=True)
class RubyMethod:
    """The definition of a method and its file."""

    file: RubyFile
    node: Node

    def signature(self) -> list[tuple[str, Node | None, bool]]:
        """Return the positional parameters: name, default, and whether it takes the rest; raise Unreadable for other kinds."""
        signature: list[tuple[str, Node | None, bool]] = []
        for parameter in nodes_in(self.node, "parameters"):
            name = parameter.child_by_field_name("name")
            if parameter.type == "identifier":
                signature.append((self.file.text(parameter), None, False))
            elif parameter.type in ("optional_parameter", "splat_parameter") and name is not None:
                signature.append((self.file.text(name), parameter.child_by_field_name("value"), parameter.type == "splat_parameter"))
            elif parameter.type != "block_parameter":
                raise Unreadable(f"parameters of the kind {parameter.type}")
        return signature

    def parameters(self) -> list[str]:
        """Return the names of the positional parameters."""
        return [name for name, _, _ in self.signature()]


Names = Mapping[str, Any]


class RubyExpressions:
    """
    Evaluates expressions. Symbols and strings are both text.

    Args:
        constants: by name, the file and the expression.
        methods: by name; functions of modules too, without the module.
    """

    def __init__(self, constants: Mapping[str, tuple[RubyFile, Node]], methods: Mapping[str, RubyMethod]) -> None:
        self.constants = constants
        self.methods = methods
        self.steps = 0
        self.depth = 0

    def value(self, file: RubyFile, node: Node, names: Names) -> Any:
        """Return text, a number, boolean, None, RubyRegexp, list or dict; raise Unreadable when the value does not follow from the text."""
        self.steps += 1
        if self.steps > MAX_STEPS or self.depth > MAX_DEPTH:
            raise Unreadable("too much to evaluate")
        self.depth += 1
        try:
            return self._value(file, node, names)
        except Refusal as err:
            raise Unreadable(err.reason) from err
        finally:
            self.depth -= 1

    def _value(self, file: RubyFile, node: Node, names: Names) -> Any:
        match node.type:
            case "simple_symbol":
                return file.text(node)[1:]
            case "hash_key_symbol":
                return file.text(node).strip("\"'")
            case "string" | "delimited_symbol" | "bare_string" | "bare_symbol":
                delimited = node.parent if node.type.startswith("bare_") else node
                opening = file.text(delimited.children[0]) if delimited is not None and delimited.children else ""
                return self._text(file, node.named_children, names, opening.removeprefix(":"))
            case "chained_string":
                return "".join(str(self.value(file, child, names)) for child in node.named_children)
            case "heredoc_beginning":
                return file.heredoc(node)
            case "integer":
                return int(re.sub(r"^0(?=\d)", "0o", file.text(node).replace("_", "")), 0)
            case "true" | "false":
                return node.type == "true"
            case "nil":
                return None
            case "element_reference":
                return self._element(file, node, names)
            case "array" | "string_array" | "symbol_array":
                return self.values(file, node.named_children, names)
            case "hash":
                return self.pairs(file, node, names)
            case "regex":
                return self._regexp(file, node, names)
            case "identifier":
                return self._named_value(file, node, names)
            case "constant" | "scope_resolution":
                return self._constant(file.text(node).rsplit("::", 1)[-1])
            case "parenthesized_statements" if len(node.named_children) == 1:
                return self.value(file, node.named_children[0], names)
            case "call":
                return self._call(file, node, names)
            case "binary":
                return self._binary(file, node, names)
        raise Unreadable(f"an expression of the kind {node.type}: {file.text(node)[:60]!r}")

    def values(self, file: RubyFile, nodes: Sequence[Node], names: Names) -> list[Any]:
        """Return the values of arguments or elements; splats are expanded."""
        values: list[Any] = []
        for node in nodes:
            if node.type in ("comment", "pair", "block_argument"):
                continue
            if node.type == "splat_argument":
                inner = self.value(file, node.named_children[0], names)
                values += inner if isinstance(inner, list) else [inner]
            else:
                values.append(self.value(file, node, names))
        return values

    def pairs(self, file: RubyFile, node: Node, names: Names) -> dict[Any, Any]:
        """Return a hash, or the `key => value` pairs of an argument list without those that cannot be read."""
        values_by_key: dict[Any, Any] = {}
        for pair in node.named_children:
            if pair.type != "pair":
                continue
            key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
            if key is None or value is None:
                continue
            try:
                values_by_key[self.value(file, key, names)] = self.value(file, value, names)
            except Unreadable:
                if node.type == "hash":
                    raise
        return values_by_key

    def _text(self, file: RubyFile, parts: Sequence[Node], names: Names, opening: str = "") -> str:
        """Return the text of a regular expression's parts, or of those of a string that opens so, the values of expressions among them."""
        texts: list[str] = []
        for part in parts:
            text = file.text(part)
            if part.type == "interpolation":
                value = self.value(file, part.named_children[0], names)
                text = value.embedded if isinstance(value, RubyRegexp) else str(value)
            elif opening:
                text = literals.characters(text, opening, part.start_byte, is_escape=part.type == "escape_sequence")
            texts.append(text)
        return "".join(texts)

    def _regexp(self, file: RubyFile, node: Node, names: Names) -> RubyRegexp:
        flags = re.sub(r"[^imx]", "", file.text(node.children[-1])[1:])
        options = sum({"i": _IGNORECASE, "x": _EXTENDED, "m": _MULTILINE}[flag] for flag in set(flags))
        source = self._text(file, node.children[1:-1], names)
        if file.text(node.children[0]) == "/":
            source = source.replace("\\/", "/")
        return RubyRegexp(source, options)

    def _named_value(self, file: RubyFile, node: Node, names: Names) -> Any:
        name = file.text(node)
        if name in names:
            if isinstance(names[name], Unreadable):
                raise names[name]
            return names[name]
        if name in self.methods:
            return self._method_result(self.methods[name], [])
        raise Unreadable(f"what {name} is")

    def _element(self, file: RubyFile, node: Node, names: Names) -> Any:
        collection, *keys = (self.value(file, child, names) for child in node.named_children)
        try:
            return collection[keys[0]] if isinstance(collection, list | dict) and len(keys) == 1 else None
        except (LookupError, TypeError) as err:
            raise Unreadable(f"what {file.text(node)[:60]!r} is") from err

    def _constant(self, name: str) -> Any:
        if name not in self.constants:
            raise Unreadable(f"what {name} is")
        file, node = self.constants[name]
        return self.value(file, node, {})

    def _binary(self, file: RubyFile, node: Node, names: Names) -> Any:
        left, right, operator = (node.child_by_field_name(field) for field in ("left", "right", "operator"))
        assert left is not None and right is not None and operator is not None
        left_value, right_value = self.value(file, left, names), self.value(file, right, names)
        if isinstance(left_value, list) and isinstance(right_value, list):
            match file.text(operator):
                case "+":
                    return left_value + right_value
                case "|":
                    return left_value + [item for item in right_value if item not in left_value]
                case "-":
                    return [item for item in left_value if item not in right_value]
        if isinstance(left_value, str) and isinstance(right_value, str) and file.text(operator) == "+":
            return left_value + right_value
        match file.text(operator):
            case "==" | "!=":
                return (left_value == right_value) == (file.text(operator) == "==")
            case "and" | "&&":
                return right_value if left_value not in (None, False) else left_value
            case "or" | "||":
                return left_value if left_value not in (None, False) else right_value
        raise Unreadable(f"what {file.text(node)[:60]!r} is")

    def _call(self, file: RubyFile, node: Node, names: Names) -> Any:
        receiver, name, arguments = node.child_by_field_name("receiver"), called_name(file, node), node.child_by_field_name("arguments")
        if receiver is not None and name == "new" and file.text(receiver) == "Regexp" and arguments is not None:
            pattern = self.values(file, arguments.named_children, names)[0]
            return pattern if isinstance(pattern, RubyRegexp) else RubyRegexp(str(pattern))
        is_function = receiver is not None and receiver.type in ("self", "constant", "scope_resolution")
        if (receiver is None or is_function) and name in self.methods:
            return self._method_result(self.methods[name], self.values(file, nodes_in(node, "arguments"), names))
        if receiver is None or node.child_by_field_name("block") is not None:
            raise Unreadable(f"what {name} gives")
        return _call_on_value(self.value(file, receiver, names), name, file.text(arguments) if arguments is not None else "")

    def _method_result(self, method: RubyMethod, arguments: list[Any]) -> Any:
        """Return the result of a method whose statements are assignments, conditions and a last expression."""
        names: dict[str, Any] = {}
        remaining = list(arguments)
        for name, default, splat in method.signature():
            if splat:
                names[name], remaining = remaining, []
            elif remaining:
                names[name] = remaining.pop(0)
            elif default is not None:
                names[name] = self.value(method.file, default, names)
        if remaining:
            raise Unreadable("more arguments than parameters")
        return self._last_value(method.file, method_body(method.node), names)

    def _last_value(self, file: RubyFile, statements: Sequence[Node], names: dict[str, Any]) -> Any:
        """Return the value of the last statement."""
        result: Any = None
        for statement in statements:
            match statement.type:
                case "comment":
                    continue
                case "assignment" | "operator_assignment":
                    left, right = statement.child_by_field_name("left"), statement.child_by_field_name("right")
                    assert left is not None and right is not None
                    result = self.value(file, right, names)
                    if statement.type == "operator_assignment":
                        old_value = names.get(file.text(left))
                        if "+=" not in file.text(statement) or not isinstance(old_value, list) or not isinstance(result, list):
                            raise Unreadable("an assignment that computes")
                        result = old_value + result
                    names[file.text(left)] = result
                case "if" | "unless":
                    result = self._last_value(file, self._chosen_branch(file, statement, names), names)
                case "return" if statement.named_children and statement == statements[-1]:
                    return self.value(file, statement.named_children[0].named_children[0], names)
                case _:
                    result = self.value(file, statement, names)
        return result

    def _chosen_branch(self, file: RubyFile, node: Node, names: dict[str, Any]) -> list[Node]:
        condition = node.child_by_field_name("condition")
        assert condition is not None
        is_true = self.value(file, condition, names) not in (None, False)
        return nodes_in(node, "consequence" if is_true == (node.type == "if") else "alternative")


def _call_on_value(value: Any, name: str, arguments: str) -> Any:
    """Return the result of a method of a text, list or hash; only those that declarations use are known."""
    if name in ("freeze", "dup", "to_a"):
        return value
    if isinstance(value, str) and not arguments:
        match name:
            case "to_sym" | "to_s" | "intern":
                return value
            case "downcase" | "upcase" | "capitalize" | "strip":
                return getattr(value, name)()
    if isinstance(value, dict) and not arguments and name in ("keys", "values"):
        return list(getattr(value, name)())
    if isinstance(value, str | list | dict) and not arguments and name in ("empty?", "count", "size", "length"):
        return not value if name == "empty?" else len(value)
    if isinstance(value, list):
        if name == "map" and arguments in ("(&:to_sym)", "(&:to_s)", "(&:intern)"):
            return [str(item) for item in value]
        if name in ("uniq", "flatten", "compact", "sort", "reverse") and not arguments:
            items = [inner for item in value for inner in (item if isinstance(item, list) and name == "flatten" else [item])]
            if name == "sort":
                return sorted(map(str, items))
            if name == "reverse":
                return items[::-1]
            return [item for index, item in enumerate(items) if name != "uniq" or item not in items[:index]]
    raise Unreadable(f"what .{name} gives")

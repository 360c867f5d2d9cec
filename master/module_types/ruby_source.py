"""Ruby source read without running it: a syntax tree, and the values of expressions that can be told from the text."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Expressions", "Method", "RubyFile", "RubyRegexp", "Unreadable", "is_block", "method_body", "named"]

MAX_STEPS = 20_000
"""Expressions evaluated for one type."""
MAX_DEPTH = 50

_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\e": "\x1b", "\\0": "\0", "\\s": " "}
_REQUIRES = ("require", "require_relative", "load")
_IGNORECASE, _EXTENDED, _MULTILINE = 1, 2, 4


class Unreadable(Exception):
    """What an expression is cannot be told from the text."""


@dataclass(frozen=True, slots=True)
class RubyRegexp:
    """A regular expression: its source and Ruby's option bits."""

    source: str
    options: int = 0

    @property
    def embedded(self) -> str:
        """With its options, as it stands inside another one or in the Puppet language."""
        on = "".join(letter for letter, bit in (("m", _MULTILINE), ("i", _IGNORECASE), ("x", _EXTENDED)) if self.options & bit)
        off = "".join(letter for letter in "mix" if letter not in on)
        return f"(?{on}{'-' + off if off else ''}:{self.source})"

    @property
    def plain(self) -> str:
        """Its source; with options as it would be embedded."""
        return self.embedded if self.options else self.source


@dataclass(frozen=True)
class RubyFile:
    """One file and its tree; every node that is passed around belongs to the file that it came with."""

    path: str
    data: bytes
    root: Node

    @classmethod
    def parsed(cls, path: str, data: bytes) -> RubyFile:
        # Late: only a process that compiles, and that meets a type in Ruby, pays for it.
        import tree_sitter_ruby
        from tree_sitter import Language, Parser

        return cls(path, data, Parser(Language(tree_sitter_ruby.language())).parse(data).root_node)

    def text(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def walk(self, node: Node | None = None) -> Iterator[Node]:
        """Every node below `node`, in the order of the text."""
        pending = [node or self.root]
        while pending:
            each = pending.pop()
            yield each
            pending.extend(reversed(each.children))

    def heredoc(self, beginning: Node) -> str:
        """The text that a heredoc's beginning announces."""
        all_of = list(self.walk())
        begun = [each.start_byte for each in all_of if each.type == "heredoc_beginning"]
        bodies = [each for each in all_of if each.type == "heredoc_body"]
        at = begun.index(beginning.start_byte)
        if at >= len(bodies):
            raise Unreadable("a heredoc without an end")
        if any(each.type == "interpolation" for each in bodies[at].children):
            raise Unreadable("a heredoc with expressions in it")
        lines = self.text(bodies[at]).rstrip().splitlines()[:-1]
        return "\n".join(lines)

    def required(self) -> Iterator[tuple[str, bool]]:
        """The files it requires: a path without `.rb`, and whether it is found below the libraries (else it is absolute)."""
        for call in self.walk():
            if call.type != "call" or named(self, call) not in _REQUIRES:
                continue
            arguments = call.child_by_field_name("arguments")
            parts = [self.text(each) for each in self.walk(arguments) if each.type == "string_content"] if arguments else []
            if not parts or arguments is None:
                continue
            path, shown = posixpath.join(*parts), self.text(arguments)
            if "__FILE__" in shown or "__dir__" in shown:
                base = self.path if "dirname" not in shown and "__dir__" not in shown else posixpath.dirname(self.path)
                yield posixpath.normpath(posixpath.join(base, path)).removesuffix(".rb"), False
            elif named(self, call) == "require_relative":
                yield posixpath.normpath(posixpath.join(posixpath.dirname(self.path), path)).removesuffix(".rb"), False
            else:
                yield path.removesuffix(".rb"), True


def named(file: RubyFile, call: Node) -> str:
    """The name of the method that a call (or a bare name) calls."""
    if call.type == "identifier":
        return file.text(call)
    name = call.child_by_field_name("method")
    return file.text(name) if name is not None else ""


def is_block(node: Node | None) -> bool:
    return node is not None and node.type in ("block", "do_block")


def method_body(node: Node) -> list[Node]:
    """The statements of a block, method, class or module."""
    body = node.child_by_field_name("body")
    return [] if body is None else list(body.named_children)


@dataclass(frozen=True, slots=True)
class Method:
    """A method's definition and the file it stands in."""

    file: RubyFile
    node: Node

    def signature(self) -> list[tuple[str, Node | None, bool]]:
        """Its positional parameters: name, default, whether it takes the rest. Unreadable for other kinds."""
        given = self.node.child_by_field_name("parameters")
        found: list[tuple[str, Node | None, bool]] = []
        for each in given.named_children if given is not None else ():
            name = each.child_by_field_name("name")
            if each.type == "identifier":
                found.append((self.file.text(each), None, False))
            elif each.type in ("optional_parameter", "splat_parameter") and name is not None:
                found.append((self.file.text(name), each.child_by_field_name("value"), each.type == "splat_parameter"))
            elif each.type != "block_parameter":
                raise Unreadable(f"parameters of the kind {each.type}")
        return found

    def parameters(self) -> list[str]:
        """The names of its positional parameters."""
        return [name for name, _, _ in self.signature()]


Names = Mapping[str, Any]


class Expressions:
    """
    Values of expressions. Symbols and strings are both text.

    `constants` and `methods` are what names stand for; modules' functions are found by their own name.
    """

    def __init__(self, constants: Mapping[str, tuple[RubyFile, Node]], methods: Mapping[str, Method]) -> None:
        self.constants = constants
        self.methods = methods
        self.steps = 0
        self.depth = 0

    def value(self, file: RubyFile, node: Node, names: Names) -> Any:
        """Text, number, boolean, None, RubyRegexp, list or dict. Raises: Unreadable."""
        self.steps += 1
        if self.steps > MAX_STEPS or self.depth > MAX_DEPTH:
            raise Unreadable("too much to evaluate")
        self.depth += 1
        try:
            return self._value(file, node, names)
        finally:
            self.depth -= 1

    def _value(self, file: RubyFile, node: Node, names: Names) -> Any:
        match node.type:
            case "simple_symbol":
                return file.text(node)[1:]
            case "hash_key_symbol":
                return file.text(node).strip("\"'")
            case "string" | "delimited_symbol" | "bare_string" | "bare_symbol":
                return self._text(file, node, names)
            case "chained_string":
                return "".join(str(self.value(file, each, names)) for each in node.named_children)
            case "heredoc_beginning":
                return file.heredoc(node)
            case "integer":
                return int(file.text(node).replace("_", ""), 0)
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
                return self._name(file, node, names)
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
        """The values of a list of arguments or elements; splats are laid out."""
        found: list[Any] = []
        for each in nodes:
            if each.type in ("comment", "pair", "block_argument"):
                continue
            if each.type == "splat_argument":
                inner = self.value(file, each.named_children[0], names)
                found += inner if isinstance(inner, list) else [inner]
            else:
                found.append(self.value(file, each, names))
        return found

    def pairs(self, file: RubyFile, node: Node, names: Names) -> dict[Any, Any]:
        """A hash, or the `key => value` of an argument list; Unreadable values are left out of the latter."""
        found: dict[Any, Any] = {}
        for each in node.named_children:
            if each.type != "pair":
                continue
            key, value = each.child_by_field_name("key"), each.child_by_field_name("value")
            if key is None or value is None:
                continue
            try:
                found[self.value(file, key, names)] = self.value(file, value, names)
            except Unreadable:
                if node.type == "hash":
                    raise
        return found

    def _text(self, file: RubyFile, node: Node, names: Names) -> str:
        parts: list[str] = []
        for each in node.children:
            if each.type == "string_content":
                parts.append(file.text(each))
            elif each.type == "escape_sequence":
                shown = file.text(each)
                parts.append(_ESCAPES.get(shown) or shown[1:])
            elif each.type == "interpolation":
                value = self.value(file, each.named_children[0], names)
                parts.append(value.embedded if isinstance(value, RubyRegexp) else str(value))
        return "".join(parts)

    def _regexp(self, file: RubyFile, node: Node, names: Names) -> RubyRegexp:
        parts: list[str] = []
        for each in node.children[1:-1]:
            if each.type == "interpolation":
                value = self.value(file, each.named_children[0], names)
                parts.append(value.embedded if isinstance(value, RubyRegexp) else str(value))
            else:
                parts.append(file.text(each))
        flags = re.sub(r"[^imx]", "", file.text(node.children[-1])[1:])
        options = sum({"i": _IGNORECASE, "x": _EXTENDED, "m": _MULTILINE}[flag] for flag in set(flags))
        source = "".join(parts)
        if file.text(node.children[0]) == "/":
            source = source.replace("\\/", "/")
        return RubyRegexp(source, options)

    def _name(self, file: RubyFile, node: Node, names: Names) -> Any:
        name = file.text(node)
        if name in names:
            if isinstance(names[name], Unreadable):
                raise names[name]
            return names[name]
        if name in self.methods:
            return self._result(self.methods[name], [])
        raise Unreadable(f"what {name} is")

    def _element(self, file: RubyFile, node: Node, names: Names) -> Any:
        of, *keys = (self.value(file, each, names) for each in node.named_children)
        try:
            return of[keys[0]] if isinstance(of, list | dict) and len(keys) == 1 else None
        except (LookupError, TypeError) as err:
            raise Unreadable(f"what {file.text(node)[:60]!r} is") from err

    def _constant(self, name: str) -> Any:
        if name not in self.constants:
            raise Unreadable(f"what {name} is")
        file, node = self.constants[name]
        return self.value(file, node, {})

    def _binary(self, file: RubyFile, node: Node, names: Names) -> Any:
        left, right, operator = (node.child_by_field_name(each) for each in ("left", "right", "operator"))
        assert left is not None and right is not None and operator is not None
        one, two = self.value(file, left, names), self.value(file, right, names)
        if isinstance(one, list) and isinstance(two, list):
            match file.text(operator):
                case "+":
                    return one + two
                case "|":
                    return one + [each for each in two if each not in one]
                case "-":
                    return [each for each in one if each not in two]
        if isinstance(one, str) and isinstance(two, str) and file.text(operator) == "+":
            return one + two
        match file.text(operator):
            case "==" | "!=":
                return (one == two) == (file.text(operator) == "==")
            case "and" | "&&":
                return two if one not in (None, False) else one
            case "or" | "||":
                return one if one not in (None, False) else two
        raise Unreadable(f"what {file.text(node)[:60]!r} is")

    def _call(self, file: RubyFile, node: Node, names: Names) -> Any:
        receiver, name, given = node.child_by_field_name("receiver"), named(file, node), node.child_by_field_name("arguments")
        if receiver is not None and name == "new" and file.text(receiver) == "Regexp" and given is not None:
            pattern = self.values(file, given.named_children, names)[0]
            return pattern if isinstance(pattern, RubyRegexp) else RubyRegexp(str(pattern))
        module = receiver is not None and receiver.type in ("self", "constant", "scope_resolution")
        if (receiver is None or module) and name in self.methods:
            return self._result(self.methods[name], self.values(file, given.named_children, names) if given is not None else [])
        if receiver is None or node.child_by_field_name("block") is not None:
            raise Unreadable(f"what {name} gives")
        return _asked(self.value(file, receiver, names), name, file.text(given) if given is not None else "")

    def _result(self, method: Method, given: list[Any]) -> Any:
        """What a method gives that assigns names, and chooses, before its last expression."""
        names: dict[str, Any] = {}
        left = list(given)
        for name, default, splat in method.signature():
            if splat:
                names[name], left = left, []
            elif left:
                names[name] = left.pop(0)
            elif default is not None:
                names[name] = self.value(method.file, default, names)
        if left:
            raise Unreadable("more arguments than parameters")
        return self._last(method.file, method_body(method.node), names)

    def _last(self, file: RubyFile, statements: Sequence[Node], names: dict[str, Any]) -> Any:
        """The value of the last of the statements."""
        result: Any = None
        for each in statements:
            match each.type:
                case "comment":
                    continue
                case "assignment" | "operator_assignment":
                    left, right = each.child_by_field_name("left"), each.child_by_field_name("right")
                    assert left is not None and right is not None
                    result = self.value(file, right, names)
                    if each.type == "operator_assignment":
                        before = names.get(file.text(left))
                        if "+=" not in file.text(each) or not isinstance(before, list) or not isinstance(result, list):
                            raise Unreadable("an assignment that computes")
                        result = before + result
                    names[file.text(left)] = result
                case "if" | "unless":
                    result = self._last(file, self._chosen(file, each, names), names)
                case "return" if each.named_children and each == statements[-1]:
                    return self.value(file, each.named_children[0].named_children[0], names)
                case _:
                    result = self.value(file, each, names)
        return result

    def _chosen(self, file: RubyFile, node: Node, names: dict[str, Any]) -> list[Node]:
        condition = node.child_by_field_name("condition")
        assert condition is not None
        true = self.value(file, condition, names) not in (None, False)
        branch = node.child_by_field_name("consequence" if true == (node.type == "if") else "alternative")
        return list(branch.named_children) if branch is not None else []


def _asked(value: Any, name: str, arguments: str) -> Any:
    """The methods of text, lists and hashes that declarations use."""
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
            return [str(each) for each in value]
        if name in ("uniq", "flatten", "compact", "sort", "reverse") and not arguments:
            flat = [inner for each in value for inner in (each if isinstance(each, list) and name == "flatten" else [each])]
            if name == "sort":
                return sorted(map(str, flat))
            if name == "reverse":
                return flat[::-1]
            return [each for at, each in enumerate(flat) if name != "uniq" or each not in flat[:at]]
    raise Unreadable(f"what .{name} gives")

"""
Reads resource types declared in Ruby from the source, without running it.

It understands `newtype` with `newparam`, `newproperty` and `ensurable` in it, also in loops over literal lists, in branches, and in
helper methods of the same file or of modules that it requires; title patterns that are literal; the resource API's `register_type`.
A type whose declaration cannot be read completely is *open*: its attributes are not checked, so an unknown one is no error.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .models import DeclaredAttribute, DeclaredType, TitlePattern
from .ruby_source import RubyExpressions, RubyFile, RubyMethod, RubyRegexp, Unreadable, called_name, is_block, method_body, nodes_in
from .ruby_titles import literal_patterns, named_patterns

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_FILES = 40
"""Files that one type may require, itself included."""
_DECLARING = ("newparam", "newproperty", "ensurable", "newtype", "newattr")
# Methods that the body of a type calls and that declare no attribute.
_HARMLESS_WORDS = (
    "desc doc validate autorequire autobefore autosubscribe autonotify feature apply_to apply_to_host apply_to_device apply_to_all "
    "def_delegators def_delegator attr_accessor attr_reader attr_writer attr_rw private public protected private_class_method "
    "alias_method module_function raise warn puts fail require require_relative load include warning debug notice info "
    "private_constant define_method newmetaparam provide catalog pre_run_check class_variable_set instance_variable_set freeze "
    "isomorphic title_patterns munge unmunge rule eval_generate generate self_refresh"
)
_HARMLESS = frozenset(_HARMLESS_WORDS.split())
_BRANCH_KINDS = (
    "if unless if_modifier unless_modifier case when else then elsif begin rescue ensure body_statement block_body "
    "parenthesized_statements rescue_modifier while_modifier"
)
_BRANCHES = frozenset(_BRANCH_KINDS.split())
_BOOLEAN_PARENT = "Puppet::Parameter::Boolean"
ReadFile = Callable[[str], bytes | None]


def read_ruby_type(name: str, path: str, read: ReadFile, libs: Sequence[str] = (), *, docs: bool = False) -> DeclaredType:
    """
    Return the type `name` that the file at `path` declares; an open one when it cannot be read.

    Args:
        read: returns the content of a file, or None.
        libs: the `lib` folders in which required files are searched.
        docs: whether to read descriptions too.
    """
    try:
        declared_type = _RubyTypeReader(name, read, libs, docs, requires=False).type(path)
        if declared_type.open or declared_type.title_patterns is None:
            # The missing parts may be in the files that it requires.
            declared_type = _RubyTypeReader(name, read, libs, docs, requires=True).type(path)
        return declared_type
    except Unreadable as err:
        return DeclaredType(name, open=str(err) or "it cannot be read")
    except RecursionError:
        return DeclaredType(name, open="it is nested too deeply")


@dataclass
class _Declarations:
    """The declarations of a type's body that were read so far."""

    properties: dict[str, DeclaredAttribute] = field(default_factory=dict)
    parameters: dict[str, DeclaredAttribute] = field(default_factory=dict)
    isomorphic: bool = True
    doc: str = ""
    has_providers: bool = False
    open: list[str] = field(default_factory=list)


class _RubyTypeReader:
    """
    Reads one type.

    Attributes:
        requires: whether required files are read too.
    """

    def __init__(self, name: str, read: ReadFile, libs: Sequence[str], docs: bool, *, requires: bool) -> None:
        self.name = name
        self.read = read
        self.libs = libs
        self.docs = docs
        self.requires = requires
        self.files: dict[str, RubyFile] = {}
        self.constants: dict[str, tuple[RubyFile, Node]] = {}
        self.modules: dict[str, tuple[RubyFile, Node]] = {}
        self.functions: dict[str, RubyMethod] = {}
        self.methods: dict[str, RubyMethod] = {}
        self.expressions = RubyExpressions(self.constants, self.functions)
        self.body = _Declarations()
        self.aliases: dict[str, list[str]] = {}
        self.depth = 0

    def type(self, path: str) -> DeclaredType:
        file = self._load(path)
        if file is None:
            raise Unreadable("the file is not there")
        for call in file.walk():
            if call.type != "call":
                continue
            if called_name(file, call) == "newtype" and self._first_argument(file, call) == self.name:
                return self._declared_type(file, call)
            if called_name(file, call) == "register_type":
                declared = self._registered_type(file, call)
                if declared is not None:
                    return declared
        raise Unreadable(f"no declaration of {self.name} can be read in it")

    # --- files ---

    def _load(self, path: str) -> RubyFile | None:
        if path in self.files:
            return self.files[path]
        data = self.read(path) if len(self.files) < MAX_FILES else None
        if data is None:
            return None
        file = self.files[path] = RubyFile.parse(path, data)
        for required, library in file.required() if self.requires else ():
            if not library:
                self._load(f"{required}.rb")
            elif not required.startswith(("puppet/type/", "puppet/provider/")) and "/" in required:
                self._load_library(required)
        self._index(file)
        return file

    def _load_library(self, required: str) -> RubyFile | None:
        own_root = next(iter(self.files), "").partition("/lib/")[0]
        for lib in dict.fromkeys([f"{own_root}/lib", *self.libs]):
            file = self._load(f"{lib}/{required}.rb")
            if file is not None:
                return file
        return None

    def _index(self, file: RubyFile) -> None:
        for node in file.walk():
            name = node.child_by_field_name("name")
            if node.type == "module" and name is not None:
                self.modules.setdefault(file.text(name).rsplit("::", 1)[-1], (file, node))
            elif node.type == "assignment":
                left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
                if left is not None and right is not None and left.type in ("constant", "scope_resolution"):
                    self.constants.setdefault(file.text(left).rsplit("::", 1)[-1], (file, right))
            elif node.type == "singleton_method" and name is not None:
                self.functions.setdefault(file.text(name), RubyMethod(file, node))

    def _find_module(self, constant: str) -> tuple[RubyFile, Node] | None:
        last = constant.rsplit("::", 1)[-1]
        if last not in self.modules and self.requires:
            self._load_library("/".join(_snake_case(part) for part in constant.split("::") if part))
        return self.modules.get(last)

    # --- newtype ---

    def _declared_type(self, file: RubyFile, call: Node) -> DeclaredType:
        block = call.child_by_field_name("block")
        if block is not None and is_block(block):
            self.methods |= _own_methods(file, block)
            self.functions.update(self.methods)
            self._read_statements(file, method_body(block), {})
        body = self.body
        if body.has_providers and "provider" not in body.parameters:
            body.parameters["provider"] = DeclaredAttribute("provider")
        return DeclaredType(
            self.name,
            tuple(body.properties.values()),
            tuple(body.parameters.values()),
            self._title_patterns(),
            body.isomorphic,
            body.doc,
            body.open[0] if body.open else "",
        )

    def _title_patterns(self) -> tuple[TitlePattern, ...] | None:
        method = self.methods.get("title_patterns")
        if method is None:
            return ()
        statements = [node for node in method_body(method.node) if node.type != "comment"]
        try:
            patterns = literal_patterns(self.expressions, method.file, statements)
            return tuple((regexp.plain, names) for regexp, names in patterns)
        except (Unreadable, IndexError, TypeError, AttributeError):
            return None

    def _first_argument(self, file: RubyFile, call: Node, names: Mapping[str, Any] | None = None) -> Any:
        """Return the value of the first argument, or an Unreadable (as a value)."""
        nodes = nodes_in(call, "arguments")[:1]
        try:
            return self.expressions.values(file, nodes, names or {})[0] if nodes else Unreadable("no name")
        except (Unreadable, IndexError) as err:
            return Unreadable(f"line {call.start_point[0] + 1}: {err}")

    def _read_statements(self, file: RubyFile, statements: Sequence[Node], names: Mapping[str, Any]) -> None:
        """Read the declarations in the statements of a type's body."""
        known_names = dict(names)
        for node in statements:
            match node.type:
                case "call" | "identifier":
                    self._read_call(file, node, known_names)
                case "assignment":
                    self._read_assignment(file, node, known_names)
                case kind if kind in _BRANCHES:
                    # All branches are read: what any of them may declare counts as declared.
                    self._read_statements(file, node.named_children, known_names)
                case "singleton_class":
                    self.methods |= _own_methods(file, node)

    def _read_assignment(self, file: RubyFile, node: Node, names: dict[str, Any]) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return
        name = file.text(left)
        if self._declares(file, right) and right.type == "call":
            self._read_call(file, right, names)
            return
        try:
            value = self.expressions.value(file, right, names)
        except Unreadable as err:
            value = err
        if name in ("@isomorphic", "self.isomorphic"):
            self.body.isomorphic = value is not False
        elif name == "@doc" and isinstance(value, str) and self.docs:
            self.body.doc = _dedent(value)
        names[name] = value

    def _declares(self, file: RubyFile, node: Node) -> bool:
        """Return whether anything below a node could declare an attribute."""
        words = {file.text(child) for child in file.walk(node) if child.type == "identifier"}
        return not words.isdisjoint((*_DECLARING, *self.methods.keys() - {"title_patterns"}))

    def _read_call(self, file: RubyFile, node: Node, names: Mapping[str, Any]) -> None:
        receiver = node.child_by_field_name("receiver") if node.type == "call" else None
        name = called_name(file, node)
        if receiver is not None and receiver.type != "self":
            if name == "each" and self._read_loop(file, node, receiver, names):
                return
            if self._declares(file, node) and not file.text(receiver).startswith("Puppet::Type."):
                self._add_open_reason(node, f"attributes are declared by {file.text(receiver)[:40]}.{name}")
            return
        if name in ("newparam", "newproperty", "newattr"):
            self._read_attribute(file, node, names, self.body.parameters if name == "newparam" else self.body.properties)
        elif name == "ensurable":
            self._read_ensurable(file, node)
        elif name in ("extend", "include"):
            self._read_extend(file, node, extends=name == "extend")
        elif name in self.methods:
            self._read_helper(self.methods[name], file, node, names)
        elif name == "desc" and self.docs:
            first = self._first_argument(file, node, names)
            self.body.doc = _dedent(first) if isinstance(first, str) else self.body.doc
        elif name == "provide":
            self.body.has_providers = True
        elif name in ("isomorphic=",) or name in _HARMLESS or name in names:
            return
        elif node.type == "call":
            self._add_open_reason(node, f"{name} could declare attributes")

    def _add_open_reason(self, node: Node, why: str) -> None:
        self.body.open.append(f"line {node.start_point[0] + 1}: {why}")

    def _read_loop(self, file: RubyFile, node: Node, receiver: Node, names: Mapping[str, Any]) -> bool:
        """Read `LIST.each do |name| … end`; return False when there is no block."""
        block = node.child_by_field_name("block")
        if block is None or not is_block(block) or not self._declares(file, block):
            return block is not None
        try:
            items = self.expressions.value(file, receiver, names)
            parameters = _block_parameters(file, block)
        except Unreadable as err:
            self._add_open_reason(node, f"a loop over {err}")
            return True
        if not isinstance(items, list | dict):
            self._add_open_reason(node, "a loop over what is no list")
            return True
        for item in items.items() if isinstance(items, dict) else items:
            values = list(item) if len(parameters) > 1 and isinstance(item, tuple | list) else [item]
            self._read_statements(file, method_body(block), {**names, **dict(zip(parameters, values, strict=False))})
        return True

    def _read_helper(self, method: RubyMethod, file: RubyFile, node: Node, names: Mapping[str, Any]) -> None:
        if self.depth > 20:
            raise Unreadable("helpers that call each other without end")
        values: dict[str, Any] = {}
        parameters = method.parameters()
        for parameter, argument in zip(parameters, nodes_in(node, "arguments"), strict=False):
            try:
                values[parameter] = self.expressions.value(file, argument, names)
            except Unreadable as err:
                values[parameter] = err
        self.depth += 1
        self._read_statements(method.file, method_body(method.node), dict.fromkeys(parameters) | values)
        self.depth -= 1

    def _read_extend(self, file: RubyFile, node: Node, *, extends: bool) -> None:
        for argument in nodes_in(node, "arguments"):
            constant = file.text(argument)
            module = self._find_module(constant)
            if module is not None:
                self._mix_in(*module, extends=extends)
            elif not constant.startswith("Puppet::") and extends:
                self._add_open_reason(node, f"{constant} could declare attributes")

    def _mix_in(self, file: RubyFile, module: Node, *, extends: bool) -> None:
        methods: dict[str, RubyMethod] = {}
        hooks: dict[str, RubyMethod] = {}
        for definition in method_body(module):
            name = definition.child_by_field_name("name")
            if name is not None and definition.type == "method":
                methods[file.text(name)] = RubyMethod(file, definition)
            elif name is not None and definition.type == "singleton_method":
                hooks[file.text(name)] = RubyMethod(file, definition)
        if extends:
            self.methods |= methods
        hook = hooks.get("extended" if extends else "included")
        if hook is not None and self._declares(file, hook.node):
            self._add_open_reason(module, "a module declares attributes where it is mixed in")

    def _read_ensurable(self, file: RubyFile, node: Node) -> None:
        block = node.child_by_field_name("block") if node.type == "call" else None
        if block is None:
            attribute = DeclaredAttribute("ensure", values=("present", "absent"))
        else:
            attribute = self._read_block(file, block, DeclaredAttribute("ensure"), {})
        self.body.properties["ensure"] = attribute

    def _read_attribute(self, file: RubyFile, node: Node, names: Mapping[str, Any], attributes: dict[str, DeclaredAttribute]) -> None:
        name = self._first_argument(file, node, names)
        if not isinstance(name, str):
            self._add_open_reason(node, f"an attribute whose name is not known: {name}")
            return
        arguments = node.child_by_field_name("arguments")
        options = self.expressions.pairs(file, arguments, names) if arguments is not None else {}
        for argument in nodes_in(node, "arguments"):
            if argument.type == "hash":
                options |= self.expressions.pairs(file, argument, names)
        boolean = arguments is not None and _BOOLEAN_PARENT in file.text(arguments)
        words = ("true", "false", "yes", "no") if boolean else ()
        attribute = DeclaredAttribute(name, namevar=bool(options.get("namevar")), values=words)
        block = node.child_by_field_name("block")
        if block is not None:
            attribute = self._read_block(file, block, attribute, names)
        previous = self.body.parameters.get(name) or self.body.properties.get(name)
        attributes[name] = replace(attribute, namevar=attribute.namevar or (previous is not None and previous.namevar))

    def _read_block(self, file: RubyFile, block: Node, attribute: DeclaredAttribute, names: Mapping[str, Any]) -> DeclaredAttribute:
        """Return the attribute with the additions of its block."""
        namevar, doc = attribute.namevar, attribute.doc
        values: list[str] = list(attribute.values)
        patterns: list[str] = []
        closed = True
        self.aliases = {}
        for node in method_body(block):
            if node.type not in ("call", "identifier") or node.child_by_field_name("receiver") is not None:
                continue
            name = called_name(file, node)
            if name == "isnamevar":
                namevar = True
            elif name == "defaultvalues":
                values += ["present", "absent"]
            elif name in ("newvalue", "newvalues", "aliasvalue"):
                argument_nodes = nodes_in(node, "arguments")
                try:
                    items = self.expressions.values(file, argument_nodes if name == "newvalues" else argument_nodes[:1], names)
                except Unreadable:
                    closed = False
                    continue
                if name == "aliasvalue":
                    self._read_alias(file, argument_nodes, names, values)
                    continue
                patterns += [item.plain for item in items if isinstance(item, RubyRegexp)]
                values += [_word_of(item) for item in items if not isinstance(item, RubyRegexp)]
            elif name == "desc" and self.docs:
                first = self._first_argument(file, node, names)
                doc = _dedent(first) if isinstance(first, str) else doc
        if not closed:
            values, patterns = [], []
        return DeclaredAttribute(attribute.name, namevar, doc, tuple(dict.fromkeys(values)), tuple(dict.fromkeys(patterns)))

    def _read_alias(self, file: RubyFile, argument_nodes: Sequence[Node], names: Mapping[str, Any], values: list[str]) -> None:
        """Insert the alias of `aliasvalue ALIAS, VALUE` after the value and its other aliases."""
        try:
            alias, value = (_word_of(item) for item in self.expressions.values(file, argument_nodes, names))
        except (Unreadable, ValueError):
            return
        index = values.index(value) + 1 if value in values else len(values)
        other_aliases = self.aliases.setdefault(value, [])
        values.insert(index + len(other_aliases), alias)
        other_aliases.append(alias)

    # --- the resource API ---

    def _registered_type(self, file: RubyFile, call: Node) -> DeclaredType | None:
        arguments = call.child_by_field_name("arguments")
        if arguments is None:
            return None
        pairs = dict(_nodes_of_pairs(self.expressions, file, arguments))
        for argument in arguments.named_children:
            if argument.type == "hash":
                pairs |= dict(_nodes_of_pairs(self.expressions, file, argument))
        if "name" not in pairs or self.expressions.value(file, pairs["name"], {}) != self.name:
            return None
        if "attributes" not in pairs or pairs["attributes"].type != "hash":
            raise Unreadable("its attributes are not written out")
        properties: list[DeclaredAttribute] = []
        parameters: list[DeclaredAttribute] = []
        for name, node in _nodes_of_pairs(self.expressions, file, pairs["attributes"], strict=True):
            options = dict(_nodes_of_pairs(self.expressions, file, node)) if node.type == "hash" else {}
            kind = self.expressions.value(file, options["behaviour"], {}) if "behaviour" in options else "property"
            kinds = kind if isinstance(kind, list) else [kind]
            doc = _dedent(str(self.expressions.value(file, options["desc"], {}))) if self.docs and "desc" in options else ""
            attribute = DeclaredAttribute(name, "namevar" in kinds or kind == "namevar", doc)
            (parameters if {"namevar", "parameter"} & set(kinds) else properties).append(attribute)
        patterns: tuple[TitlePattern, ...] | None = ()
        if "title_patterns" in pairs:
            patterns = named_patterns(self.expressions, file, pairs["title_patterns"])
        return DeclaredType(self.name, tuple(properties), tuple(parameters), patterns, explicit_namevars=True)


def _own_methods(file: RubyFile, block: Node) -> dict[str, RubyMethod]:
    methods: dict[str, RubyMethod] = {}
    for definition in method_body(block):
        name = definition.child_by_field_name("name")
        if name is not None and (
            definition.type == "singleton_method" or (definition.type == "method" and block.type == "singleton_class")
        ):
            methods[file.text(name)] = RubyMethod(file, definition)
        elif definition.type == "singleton_class":
            methods |= _own_methods(file, definition)
    return methods


def _block_parameters(file: RubyFile, block: Node) -> list[str]:
    return [file.text(parameter) for parameter in nodes_in(block, "parameters") if parameter.type == "identifier"]


def _nodes_of_pairs(expressions: RubyExpressions, file: RubyFile, node: Node, *, strict: bool = False) -> Iterator[tuple[str, Node]]:
    for child in node.named_children:
        if child.type == "comment":
            continue
        key, value = child.child_by_field_name("key"), child.child_by_field_name("value")
        if child.type == "pair" and key is not None and value is not None:
            yield str(expressions.value(file, key, {})), value
        elif strict:
            raise Unreadable(f"{file.text(child)[:40]!r} among its attributes")


def _word_of(value: Any) -> str:
    return {True: "true", False: "false", None: ""}[value] if value is None or isinstance(value, bool) else str(value)


def _snake_case(name: str) -> str:
    return "".join(
        f"_{char.lower()}" if char.isupper() and index and not name[index - 1].isupper() else char.lower()
        for index, char in enumerate(name)
    )


def _dedent(text: str) -> str:
    """Return a description without the indentation that it has in the file."""
    first, *rest = text.rstrip().expandtabs().split("\n")
    if first[:1].isspace() or not first:
        return textwrap.dedent("\n".join([first, *rest])).strip()
    return "\n".join([first, *textwrap.dedent("\n".join(rest)).split("\n")]).strip()

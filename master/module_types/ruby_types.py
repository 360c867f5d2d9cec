"""
Resource types declared in Ruby, read from the source without running it.

Understood are `newtype` with `newparam`, `newproperty` and `ensurable` in it, also in loops over literal lists, in branches, and in
helper methods of the same file or of modules that it requires; title patterns that are literal; the resource API's `register_type`.
Where a declaration cannot be read the type is *open*: its attributes are not checked, and nobody is told that one does not exist.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .models import DeclaredAttribute, DeclaredType, TitlePattern
from .ruby_source import Expressions, Method, RubyFile, RubyRegexp, Unreadable, is_block, method_body, named
from .ruby_titles import literal_patterns, named_patterns

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["read_ruby_type"]

MAX_FILES = 40
"""Files that one type may require, itself included."""
_DECLARING = ("newparam", "newproperty", "ensurable", "newtype", "newattr")
# What a type's body calls that declares no attribute.
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
Reader = Callable[[str], bytes | None]


def read_ruby_type(name: str, path: str, read: Reader, libs: Sequence[str] = (), *, docs: bool = False) -> DeclaredType:
    """
    The type `name` that the file at `path` declares; an open one where that cannot be told.

    Args:
        read: the content of a file, or None.
        libs: the `lib` folders in which required files are looked for.
        docs: whether to read descriptions too.
    """
    try:
        found = _Reading(name, read, libs, docs, requires=False).type(path)
        if found.open or found.title_patterns is None:
            # What is missing may stand in the files that it requires.
            found = _Reading(name, read, libs, docs, requires=True).type(path)
        return found
    except Unreadable as err:
        return DeclaredType(name, open=str(err) or "it cannot be read")
    except RecursionError:
        return DeclaredType(name, open="it is nested too deeply")


@dataclass
class _Found:
    """What a body has declared so far."""

    properties: dict[str, DeclaredAttribute] = field(default_factory=dict)
    parameters: dict[str, DeclaredAttribute] = field(default_factory=dict)
    isomorphic: bool = True
    doc: str = ""
    provided: bool = False
    open: list[str] = field(default_factory=list)


class _Reading:
    """Reads one type."""

    def __init__(self, name: str, read: Reader, libs: Sequence[str], docs: bool, *, requires: bool) -> None:
        self.name = name
        self.read = read
        self.libs = libs
        self.docs = docs
        self.requires = requires
        self.files: dict[str, RubyFile] = {}
        self.constants: dict[str, tuple[RubyFile, Node]] = {}
        self.modules: dict[str, tuple[RubyFile, Node]] = {}
        self.functions: dict[str, Method] = {}
        self.methods: dict[str, Method] = {}
        self.expressions = Expressions(self.constants, self.functions)
        self.found = _Found()
        self.aliases: dict[str, list[str]] = {}
        self.depth = 0

    def type(self, path: str) -> DeclaredType:
        file = self._load(path)
        if file is None:
            raise Unreadable("the file is not there")
        for call in file.walk():
            if call.type != "call":
                continue
            if named(file, call) == "newtype" and self._first(file, call) == self.name:
                return self._declared(file, call)
            if named(file, call) == "register_type":
                declared = self._registered(file, call)
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
        file = self.files[path] = RubyFile.parsed(path, data)
        for required, library in file.required() if self.requires else ():
            if not library:
                self._load(f"{required}.rb")
            elif not required.startswith(("puppet/type/", "puppet/provider/")) and "/" in required:
                self._library(required)
        self._index(file)
        return file

    def _library(self, required: str) -> RubyFile | None:
        own = next(iter(self.files), "").partition("/lib/")[0]
        for lib in dict.fromkeys([f"{own}/lib", *self.libs]):
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
                self.functions.setdefault(file.text(name), Method(file, node))

    def _module(self, constant: str) -> tuple[RubyFile, Node] | None:
        last = constant.rsplit("::", 1)[-1]
        if last not in self.modules and self.requires:
            self._library("/".join(_snake(each) for each in constant.split("::") if each))
        return self.modules.get(last)

    # --- newtype ---

    def _declared(self, file: RubyFile, call: Node) -> DeclaredType:
        block = call.child_by_field_name("block")
        if block is not None and is_block(block):
            self.methods |= _own_methods(file, block)
            self.functions.update(self.methods)
            self._run(file, method_body(block), {})
        found = self.found
        if found.provided and "provider" not in found.parameters:
            found.parameters["provider"] = DeclaredAttribute("provider")
        return DeclaredType(
            self.name,
            tuple(found.properties.values()),
            tuple(found.parameters.values()),
            self._title_patterns(),
            found.isomorphic,
            found.doc,
            found.open[0] if found.open else "",
        )

    def _title_patterns(self) -> tuple[TitlePattern, ...] | None:
        method = self.methods.get("title_patterns")
        if method is None:
            return ()
        statements = [each for each in method_body(method.node) if each.type != "comment"]
        try:
            given = literal_patterns(self.expressions, method.file, statements)
            return tuple((regexp.plain, names) for regexp, names in given)
        except (Unreadable, IndexError, TypeError, AttributeError):
            return None

    def _first(self, file: RubyFile, call: Node, names: Mapping[str, Any] | None = None) -> Any:
        """The first argument, or an Unreadable."""
        given = call.child_by_field_name("arguments")
        try:
            return self.expressions.values(file, given.named_children[:1], names or {})[0] if given is not None else Unreadable("no name")
        except (Unreadable, IndexError) as err:
            return Unreadable(f"line {call.start_point[0] + 1}: {err}")

    def _run(self, file: RubyFile, statements: Sequence[Node], names: Mapping[str, Any]) -> None:
        """Go through the statements of a type's body."""
        known = dict(names)
        for node in statements:
            match node.type:
                case "call" | "identifier":
                    self._call(file, node, known)
                case "assignment":
                    self._assign(file, node, known)
                case kind if kind in _BRANCHES:
                    # Whichever branch is taken: what could be declared is taken for declared.
                    self._run(file, node.named_children, known)
                case "singleton_class":
                    self.methods |= _own_methods(file, node)

    def _assign(self, file: RubyFile, node: Node, names: dict[str, Any]) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return
        name = file.text(left)
        if self._declares(file, right) and right.type == "call":
            self._call(file, right, names)
            return
        try:
            value = self.expressions.value(file, right, names)
        except Unreadable as err:
            value = err
        if name in ("@isomorphic", "self.isomorphic"):
            self.found.isomorphic = value is not False
        elif name == "@doc" and isinstance(value, str) and self.docs:
            self.found.doc = _tidy(value)
        names[name] = value

    def _declares(self, file: RubyFile, node: Node) -> bool:
        """Whether anything below could declare an attribute."""
        words = {file.text(each) for each in file.walk(node) if each.type == "identifier"}
        return not words.isdisjoint((*_DECLARING, *self.methods.keys() - {"title_patterns"}))

    def _call(self, file: RubyFile, node: Node, names: Mapping[str, Any]) -> None:
        receiver = node.child_by_field_name("receiver") if node.type == "call" else None
        name = named(file, node)
        if receiver is not None and receiver.type != "self":
            if name == "each" and self._loop(file, node, receiver, names):
                return
            if self._declares(file, node) and not file.text(receiver).startswith("Puppet::Type."):
                self._give_up(node, f"attributes are declared by {file.text(receiver)[:40]}.{name}")
            return
        if name in ("newparam", "newproperty", "newattr"):
            self._attribute(file, node, names, self.found.parameters if name == "newparam" else self.found.properties)
        elif name == "ensurable":
            self._ensurable(file, node)
        elif name in ("extend", "include"):
            self._extend(file, node, extends=name == "extend")
        elif name in self.methods:
            self._helper(self.methods[name], file, node, names)
        elif name == "desc" and self.docs:
            first = self._first(file, node, names)
            self.found.doc = _tidy(first) if isinstance(first, str) else self.found.doc
        elif name == "provide":
            self.found.provided = True
        elif name in ("isomorphic=",) or name in _HARMLESS or name in names:
            return
        elif node.type == "call":
            self._give_up(node, f"{name} could declare attributes")

    def _give_up(self, node: Node, why: str) -> None:
        self.found.open.append(f"line {node.start_point[0] + 1}: {why}")

    def _loop(self, file: RubyFile, node: Node, receiver: Node, names: Mapping[str, Any]) -> bool:
        """`LIST.each do |name| … end`; whether it was one that declares."""
        block = node.child_by_field_name("block")
        if block is None or not is_block(block) or not self._declares(file, block):
            return block is not None
        try:
            items = self.expressions.value(file, receiver, names)
            parameters = _block_parameters(file, block)
        except Unreadable as err:
            self._give_up(node, f"a loop over {err}")
            return True
        if not isinstance(items, list | dict):
            self._give_up(node, "a loop over what is no list")
            return True
        for item in items.items() if isinstance(items, dict) else items:
            values = list(item) if len(parameters) > 1 and isinstance(item, tuple | list) else [item]
            self._run(file, method_body(block), {**names, **dict(zip(parameters, values, strict=False))})
        return True

    def _helper(self, method: Method, file: RubyFile, node: Node, names: Mapping[str, Any]) -> None:
        if self.depth > 20:
            raise Unreadable("helpers that call each other without end")
        given = node.child_by_field_name("arguments") if node.type == "call" else None
        inner: dict[str, Any] = {}
        parameters = method.parameters()
        for parameter, argument in zip(parameters, given.named_children if given is not None else (), strict=False):
            try:
                inner[parameter] = self.expressions.value(file, argument, names)
            except Unreadable as err:
                inner[parameter] = err
        self.depth += 1
        self._run(method.file, method_body(method.node), dict.fromkeys(parameters) | inner)
        self.depth -= 1

    def _extend(self, file: RubyFile, node: Node, *, extends: bool) -> None:
        given = node.child_by_field_name("arguments")
        for each in given.named_children if given is not None else ():
            constant = file.text(each)
            module = self._module(constant)
            if module is not None:
                self._mix_in(*module, extends=extends)
            elif not constant.startswith("Puppet::") and extends:
                self._give_up(node, f"{constant} could declare attributes")

    def _mix_in(self, file: RubyFile, module: Node, *, extends: bool) -> None:
        methods: dict[str, Method] = {}
        hooks: dict[str, Method] = {}
        for each in method_body(module):
            name = each.child_by_field_name("name")
            if name is not None and each.type == "method":
                methods[file.text(name)] = Method(file, each)
            elif name is not None and each.type == "singleton_method":
                hooks[file.text(name)] = Method(file, each)
        if extends:
            self.methods |= methods
        hook = hooks.get("extended" if extends else "included")
        if hook is not None and self._declares(file, hook.node):
            self._give_up(module, "a module declares attributes where it is mixed in")

    def _ensurable(self, file: RubyFile, node: Node) -> None:
        block = node.child_by_field_name("block") if node.type == "call" else None
        if block is None:
            attribute = DeclaredAttribute("ensure", values=("present", "absent"))
        else:
            attribute = self._with_block(file, block, DeclaredAttribute("ensure"), {})
        self.found.properties["ensure"] = attribute

    def _attribute(self, file: RubyFile, node: Node, names: Mapping[str, Any], into: dict[str, DeclaredAttribute]) -> None:
        name = self._first(file, node, names)
        if not isinstance(name, str):
            self._give_up(node, f"an attribute whose name is not known: {name}")
            return
        given = node.child_by_field_name("arguments")
        options = self.expressions.pairs(file, given, names) if given is not None else {}
        for each in given.named_children if given is not None else ():
            if each.type == "hash":
                options |= self.expressions.pairs(file, each, names)
        boolean = given is not None and _BOOLEAN_PARENT in file.text(given)
        words = ("true", "false", "yes", "no") if boolean else ()
        attribute = DeclaredAttribute(name, namevar=bool(options.get("namevar")), values=words)
        block = node.child_by_field_name("block")
        if block is not None:
            attribute = self._with_block(file, block, attribute, names)
        before = self.found.parameters.get(name) or self.found.properties.get(name)
        into[name] = replace(attribute, namevar=attribute.namevar or (before is not None and before.namevar))

    def _with_block(self, file: RubyFile, block: Node, attribute: DeclaredAttribute, names: Mapping[str, Any]) -> DeclaredAttribute:
        """The attribute with what the block says of it."""
        namevar, doc = attribute.namevar, attribute.doc
        values: list[str] = list(attribute.values)
        patterns: list[str] = []
        closed = True
        self.aliases = {}
        for node in method_body(block):
            if node.type not in ("call", "identifier") or node.child_by_field_name("receiver") is not None:
                continue
            name = named(file, node)
            if name == "isnamevar":
                namevar = True
            elif name == "defaultvalues":
                values += ["present", "absent"]
            elif name in ("newvalue", "newvalues", "aliasvalue"):
                given = node.child_by_field_name("arguments")
                wanted = given.named_children if given is not None else []
                try:
                    read = self.expressions.values(file, wanted if name == "newvalues" else wanted[:1], names)
                except Unreadable:
                    closed = False
                    continue
                if name == "aliasvalue":
                    self._alias(file, wanted, names, values)
                    continue
                patterns += [each.plain for each in read if isinstance(each, RubyRegexp)]
                values += [_word(each) for each in read if not isinstance(each, RubyRegexp)]
            elif name == "desc" and self.docs:
                first = self._first(file, node, names)
                doc = _tidy(first) if isinstance(first, str) else doc
        if not closed:
            values, patterns = [], []
        return DeclaredAttribute(attribute.name, namevar, doc, tuple(dict.fromkeys(values)), tuple(dict.fromkeys(patterns)))

    def _alias(self, file: RubyFile, wanted: Sequence[Node], names: Mapping[str, Any], values: list[str]) -> None:
        """`aliasvalue ALIAS, VALUE`: the alias stands behind the value and its other aliases."""
        try:
            alias, of = (_word(each) for each in self.expressions.values(file, wanted, names))
        except (Unreadable, ValueError):
            return
        at = values.index(of) + 1 if of in values else len(values)
        before = self.aliases.setdefault(of, [])
        values.insert(at + len(before), alias)
        before.append(alias)

    # --- the resource API ---

    def _registered(self, file: RubyFile, call: Node) -> DeclaredType | None:
        given = call.child_by_field_name("arguments")
        if given is None:
            return None
        pairs = dict(_nodes_of_pairs(self.expressions, file, given))
        for each in given.named_children:
            if each.type == "hash":
                pairs |= dict(_nodes_of_pairs(self.expressions, file, each))
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
            doc = _tidy(str(self.expressions.value(file, options["desc"], {}))) if self.docs and "desc" in options else ""
            attribute = DeclaredAttribute(name, "namevar" in kinds or kind == "namevar", doc)
            (parameters if {"namevar", "parameter"} & set(kinds) else properties).append(attribute)
        patterns: tuple[TitlePattern, ...] | None = ()
        if "title_patterns" in pairs:
            patterns = named_patterns(self.expressions, file, pairs["title_patterns"])
        return DeclaredType(self.name, tuple(properties), tuple(parameters), patterns, flagged=True)


def _own_methods(file: RubyFile, block: Node) -> dict[str, Method]:
    found: dict[str, Method] = {}
    for each in method_body(block):
        name = each.child_by_field_name("name")
        if name is not None and (each.type == "singleton_method" or (each.type == "method" and block.type == "singleton_class")):
            found[file.text(name)] = Method(file, each)
        elif each.type == "singleton_class":
            found |= _own_methods(file, each)
    return found


def _block_parameters(file: RubyFile, block: Node) -> list[str]:
    given = block.child_by_field_name("parameters")
    return [file.text(each) for each in given.named_children if each.type == "identifier"] if given is not None else []


def _nodes_of_pairs(expressions: Expressions, file: RubyFile, node: Node, *, strict: bool = False) -> Iterator[tuple[str, Node]]:
    for each in node.named_children:
        if each.type == "comment":
            continue
        key, value = each.child_by_field_name("key"), each.child_by_field_name("value")
        if each.type == "pair" and key is not None and value is not None:
            yield str(expressions.value(file, key, {})), value
        elif strict:
            raise Unreadable(f"{file.text(each)[:40]!r} among its attributes")


def _word(value: Any) -> str:
    return {True: "true", False: "false", None: ""}[value] if value is None or isinstance(value, bool) else str(value)


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() and at and not name[at - 1].isupper() else c.lower() for at, c in enumerate(name))


def _tidy(text: str) -> str:
    """A description without the indentation that its place in the file gave it."""
    first, *rest = text.rstrip().expandtabs().split("\n")
    if first[:1].isspace() or not first:
        return textwrap.dedent("\n".join([first, *rest])).strip()
    return "\n".join([first, *textwrap.dedent("\n".join(rest)).split("\n")]).strip()

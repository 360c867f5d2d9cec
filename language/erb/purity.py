"""
Decide whether Ruby code can read anything other than its inputs: its arguments, variables of the scope, functions of the language.

Everything that occurs in the code has to be on an allow-list: constructs, methods by their names whatever the receiver is, and constants
with their methods. Code that reads nothing else gives the same result the next time, though only Ruby can run it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from . import methods
from .errors import Refusal
from .grammar import syntax_tree
from .reading.scanner import OUTPUT, TEXT, TemplateProgram, scan

if TYPE_CHECKING:
    from tree_sitter import Node

_CONSTRUCT_WORDS = (
    "argument_list array bare_string bare_symbol begin binary block block_argument block_body block_parameters "
    "body_statement break call case chained_string comment conditional delimited_symbol destructured_left_assignment "
    "destructured_parameter do do_block element_reference else elsif empty_statement ensure escape_sequence exceptions false float "
    "for hash hash_key_symbol hash_splat_argument hash_splat_parameter heredoc_beginning heredoc_body heredoc_content heredoc_end "
    "if if_modifier in integer interpolation keyword_parameter left_assignment_list method method_parameters next nil operator "
    "optional_parameter pair parenthesized_statements pattern program range redo regex rescue rescue_modifier rest_assignment "
    "retry return right_assignment_list simple_symbol splat_argument splat_parameter string string_array string_content "
    "symbol_array then true unary unless unless_modifier until until_modifier when while while_modifier"
)

_METHOD_WORDS = (
    "assoc at backtrace between? bytes bytesize call capitalize! casecmp casecmp? ceil chomp! chop! clamp clear clone "
    "collect_concat combination crypt cycle deep_merge default delete! delete_at delete_if denominator digits "
    "divmod downcase! drop_while each_char each_cons each_entry each_line each_slice each_byte entries even? except exclude_end? "
    "fdiv fetch_values fill findresource filter! filter_map finite? flatten! floor freeze frozen? grep grep_v group_by gsub! hex infinite? "
    "insert instance_of? intersect? intersection is_a? itself join keep_if keep kind_of? lcm gcd ljust lstrip! mask match? max_by "
    "min_by minmax minmax_by modulo named_captures names captures negative? next next! none? oct odd? one? ord partition "
    "permutation pop positive? post_match pre_match pred prefix prepend product pack rassoc reject! remainder replace respond_to? reverse! "
    "reverse_each rindex rotate rpartition rstrip! scrub select! shift slice slice! squeeze squeeze! step strip! sub! "
    "succ swapcase! symmetric_difference take_while tally then tr! tr_s transform_keys transform_keys! transform_values "
    "transform_values! truncate union unicode_normalize uniq! upcase! upto downto valid_encoding? with_index with_object "
    "yield_self zero? zip add add? subset? superset? disjoint? difference ipv4? ipv6? to_range to_set to_yaml to_str to_ary "
    "to_hash to_r to_c unwrap scheme host port path query fragment userinfo lookupvar call_function "
    "cache cache_all cache_has_key cached_entries cached_file_data cached_value explain interpolate message not_found resource "
    "call_function_with_scope lookupdefaults setvar has_variable? include? exist? exists? ! != !~ =~ == === < <= > >= <=> + - * / "
    "% ** & | ^ ~ << >> ! -@ +@ [] []="
)

_PLAIN_WORDS = (
    "Array Float Hash Integer String Rational Complex findresource setvar format sprintf raise fail has_variable? lookupvar call_function "
    "lookupdefaults call_function_with_scope closure_scope scope _ debug info notice warning err alert emerg crit block_given? "
    "catch throw loop private protected public"
)

_TEMPLATE_CALLS = frozenset(("all_tags", "classes", "tags"))
"""Methods that templates have besides."""
_KERNEL_WORDS = (
    "abort at_exit autoload binding caller caller_locations eval exec exit fork gets global_variables load local_variables method "
    "open p pp print printf proc putc puts rand readline readlines require require_relative select send set_trace_func sleep spawn "
    "srand syscall system test trap warn display hash instance_eval object_id singleton_class methods"
)
_CONSTRUCTS = frozenset(_CONSTRUCT_WORDS.split())
_METHODS = frozenset(methods.METHODS) | frozenset(methods.BLOCK_METHODS) | frozenset(_METHOD_WORDS.split())
"""Methods of Ruby's core and of Puppet's scope that read nothing but their receiver and arguments, in any class that a value may have."""
_PLAIN_CALLS = frozenset(_PLAIN_WORDS.split())
"""Methods without a receiver."""
_CONSTANT_METHODS: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in {
        "Array": "new []",
        "Base64": "encode64 strict_encode64 urlsafe_encode64 decode64 strict_decode64 urlsafe_decode64",
        "CGI": "escape unescape escapeHTML unescapeHTML",
        "ERB::Util": "url_encode u html_escape h",
        "File": "join basename dirname extname exist? exists? directory? read",
        "Float": "",
        "Gem::Version": "new",
        "Hash": "new []",
        "IPAddr": "new const_defined?",
        "Integer": "sqrt",
        "JSON": "parse generate pretty_generate",
        "Math": "sqrt log log2 log10 hypot",
        "Puppet": "[] debug info notice warning err alert emerg crit",
        "Puppet::Module": "find",
        "Puppet::Pops::Lookup::HieraConfig": "symkeys_to_string",
        "Puppet::Pops::Types::PSensitiveType::Sensitive": "new",
        "Puppet::Util::Package": "versioncmp",
        "Regexp": "new escape quote union",
        "Set": "new []",
        "Shellwords": "escape join split shellescape shelljoin shellsplit",
        "String": "new",
        "URI::Generic": "build",
        "URI": "parse encode_www_form_component decode_www_form_component encode_www_form",
        "YAML": "dump load safe_load",
        **{f"Digest::{algorithm}": "hexdigest digest base64digest" for algorithm in ("MD5", "SHA1", "SHA256", "SHA384", "SHA512")},
    }.items()
}
_ERRORS = frozenset(
    (
        "ArgumentError", "IPAddr::AddressFamilyError", "IPAddr::Error", "IPAddr::InvalidAddressError", "IPAddr::InvalidPrefixError",
        "IndexError", "JSON::ParserError", "KeyError", "NameError", "NoMethodError", "Puppet::DataBinding::LookupError", "Puppet::DevError",
        "Puppet::Error", "Puppet::ParseError", "RuntimeError", "SocketError", "StandardError", "TypeError", "URI::InvalidURIError",
        "YAML::SyntaxError",
    )
)  # fmt: skip
_CONSTANTS = (
    methods.CLASSES
    | _ERRORS
    | frozenset(("Puppet::Functions::InternalFunction", "JSON", "BasicObject", "Comparable", "Enumerable", "Proc", "Rational"))
    | frozenset(("Float::INFINITY", "Float::NAN", "Regexp::IGNORECASE", "Regexp::MULTILINE", "Regexp::EXTENDED"))
    | frozenset(_CONSTANT_METHODS)
) - {"BasicObject", "CGI", "File", "IPAddr", "Puppet"}
"""Constants that may be values of variables: whatever listed method is called on one reads nothing, which `File.exist?` would."""
_REQUIRED = frozenset(
    ("base64", "cgi", "digest", "digest/md5", "digest/sha1", "digest/sha2", "erb", "ipaddr", "json", "set", "shellwords", "uri", "yaml")
)
_REPORTING = frozenset(("raise", "fail", "debug", "info", "notice", "warning", "err", "alert", "emerg", "crit"))
_KERNEL = frozenset(_KERNEL_WORDS.split())
"""Methods that any code may call without a receiver: a variable of such a name is not told from a call of it."""
_BY_NAME = frozenset(("inject", "reduce"))
"""Methods whose last argument names a method, unless there is a block."""


class Impurity(NamedTuple):
    """The part of some code that may give another result the next time, and its line."""

    reason: str
    line: int


def template_impurity(template: str) -> Impurity | None:
    """Return the first thing in a template that may read something else; None when nothing may."""
    try:
        program = scan(template)
    except Refusal as refusal:
        return Impurity(refusal.reason, template.count("\n", 0, refusal.at) + 1)
    return _Search(program, template, is_template=True).first()


def function_impurity(text: str) -> Impurity | None:
    """Return the first thing in the file of a function that may read something else; None when nothing may."""
    try:
        octets = text.encode()
    except UnicodeEncodeError:
        return Impurity("text that is not UTF-8", 1)
    return _Search(TemplateProgram(octets, [], [(0, 0, text)]), text, is_template=False).first()


class _Search:
    """Goes through the tree of one program."""

    def __init__(self, program: TemplateProgram, text: str, *, is_template: bool) -> None:
        self.program = program
        self.source = text
        self.is_template = is_template
        self.root = syntax_tree(program.octets)
        self.variables: set[str] = set()
        self.own_methods: set[str] = set()

    def first(self) -> Impurity | None:
        if self.root.has_error:
            return Impurity("what the grammar of Ruby does not know", 1)
        nodes = list(_walk(self.root))
        for node in nodes:
            self._note_names(node)
        for node in sorted(nodes, key=lambda node: (node.start_byte, node.end_byte)):  # a receiver before the call
            reason = self._reason(node)
            if reason is not None:
                at = self.program.offset(node.start_byte)
                return Impurity(reason or self._shown(node), self.source.count("\n", 0, at) + 1)
        return None

    def _text(self, node: Node | None) -> str:
        return "" if node is None else self.program.octets[node.start_byte : node.end_byte].decode()

    def _shown(self, node: Node) -> str:
        return (self._text(node).splitlines() or [node.type])[0][:60]

    def _note_names(self, node: Node) -> None:
        """Note the variables and methods that the code defines."""
        if node.type in ("assignment", "operator_assignment"):
            left = node.child_by_field_name("left")
            names = [left] if left is not None else []
        elif node.type in (
            "exception_variable",
            "block_parameters",
            "method_parameters",
            "left_assignment_list",
            "for",
            "destructured_parameter",
        ):
            names = list(node.named_children)
        elif node.type in ("optional_parameter", "keyword_parameter", "splat_parameter", "hash_splat_parameter", "rest_assignment"):
            names = [child for child in node.named_children if child.type == "identifier"][:1]
        else:
            if node.type == "method":
                self.own_methods.add(self._text(node.child_by_field_name("name")))
            return
        self.variables.update(self._text(name) for name in names if name.type == "identifier")

    def _reason(self, node: Node) -> str | None:
        """Return why a node is not on the list; '' for its own text, None when it is."""
        kind = node.type
        if kind == "identifier":
            return self._of_identifier(node)
        if kind == "call":
            return self._of_call(node)
        if kind in ("constant", "scope_resolution"):
            return self._of_constant(node)
        if kind in ("assignment", "operator_assignment"):
            return self._of_assignment(node)
        if kind == "instance_variable":
            return None if self.is_template else ""  # of a function it may live longer than the call
        if kind == "global_variable":
            return None if self._text(node)[1:].isdecimal() else ""
        if kind == "self":
            parent = node.parent
            return None if parent is not None and parent.type == "call" and parent.child_by_field_name("receiver") == node else "self"
        if kind in ("binary", "unary"):
            operator = self._text(node.child_by_field_name("operator"))
            return None if operator in _METHODS or operator in ("and", "or", "not", "&&", "||", "-", "+", "defined?") else ""
        if kind == "block_argument":
            inner = node.named_children
            return None if len(inner) == 1 and inner[0].type == "simple_symbol" and self._text(inner[0])[1:] in _METHODS else ""
        if kind == "element_reference":
            receiver, *arguments = node.named_children
            if receiver.type in ("constant", "scope_resolution") and "[]" not in _CONSTANT_METHODS.get(self._text(receiver), ()):
                return ""
            return None if not any(argument.type == "block_argument" for argument in arguments) else ""
        if kind == "heredoc_beginning":
            return None if "`" not in self._text(node) else ""
        if kind == "regex":
            return None if "o" not in self._text(node.children[-1]) else ""  # its expressions are evaluated but once
        if kind == "method":
            return None if self._text(node.child_by_field_name("name")) not in _KERNEL else ""
        if kind == "exception_variable":
            return None if self._is_only_reported(node) else ""
        if kind == "module":
            return None if self._text(node.child_by_field_name("name")) == "Puppet::Parser::Functions" and not self.is_template else ""
        return None if kind in _CONSTRUCTS else ""

    def _of_identifier(self, node: Node) -> str | None:
        parent, name = node.parent, self._text(node)
        if parent is not None and (
            (parent.type in ("call", "method") and node in (parent.child_by_field_name("method"), parent.child_by_field_name("name")))
            or parent.type in ("exception_variable", "keyword_parameter", "optional_parameter", "hash_splat_parameter", "splat_parameter")
        ):
            return None  # judged with its call
        if name in self.variables:
            return None if name not in _KERNEL or self._is_parameter(node, name) or self._is_assigned(node, name) else ""
        listed = _TEMPLATE_CALLS if self.is_template else ("scope_param",)
        return None if name in self.own_methods or name in _PLAIN_CALLS or name in listed else ""

    def _is_parameter(self, node: Node, name: str) -> bool:
        """Return whether a name is that of a parameter of a block or method that the node is in."""
        current: Node | None = node
        while current is not None:
            parameters = current.child_by_field_name("parameters") if current.type in ("block", "do_block", "method") else None
            if parameters is not None and any(self._text(child) == name for child in _walk(parameters) if child.type == "identifier"):
                return True
            current = current.parent if current.type != "method" else None
        return False

    def _is_assigned(self, node: Node, name: str) -> bool:
        """Return whether a name is that of a variable of the same method that a statement before has assigned, or that this one assigns."""
        current: Node | None = node
        while current is not None and current.type != "method":
            statement: Node | None = current
            while statement is not None:
                left = statement.child_by_field_name("left") if statement.type == "assignment" else None
                targets = [] if left is None else left.named_children if left.type == "left_assignment_list" else [left]
                if any(self._text(target) == name and (statement != current or target == node) for target in targets):
                    return True
                statement = statement.prev_named_sibling
            current = current.parent
        return False

    def _is_only_reported(self, variable: Node) -> bool:
        """Return whether an error's variable is read for another error or the log only: its text may have an object's address."""
        name = self._text(variable.named_children[0])
        return all(
            self._is_reported(node)
            for node in _walk(self.root)
            if node.type == "identifier" and self._text(node) == name and (node.parent is None or node.parent.type != "exception_variable")
        )

    def _is_reported(self, node: Node) -> bool:
        current: Node | None = node
        while current is not None and current.type != "method":
            if current.type == "call" and self._text(current.child_by_field_name("method")) in _REPORTING:
                return self._text(current.child_by_field_name("receiver")) in ("", "Puppet")
            current = current.parent
        return False

    def _of_constant(self, node: Node) -> str | None:
        parent = node.parent
        if parent is not None and parent.type in ("scope_resolution", "exceptions"):
            return None  # judged as a whole; or an error's class
        if (
            parent is not None
            and parent.type in ("call", "element_reference", "module")
            and node
            in (
                parent.child_by_field_name("receiver"),
                parent.child_by_field_name("object"),
                parent.child_by_field_name("method"),
                parent.child_by_field_name("name"),
            )
        ):
            return None
        name = self._text(node).removeprefix("::")
        if name == "RUBY_VERSION":
            return None  # the environment is loaded anew for another Ruby
        return None if name in _CONSTANTS else ""

    def _of_assignment(self, node: Node) -> str | None:
        left = node.child_by_field_name("left")
        targets = [left] if left is None or left.type != "left_assignment_list" else list(left.named_children)
        for target in targets:
            if target is None or target.type in ("constant", "scope_resolution", "call", "class_variable", "global_variable"):
                return ""
        if not self.is_template and not self._is_inside_code(node):
            return ""  # it may live longer than a call
        operator = self._text(node.child_by_field_name("operator")).removesuffix("=") if node.type == "operator_assignment" else "="
        return None if operator in ("=", "||", "&&") or operator in _METHODS else ""

    def _is_inside_code(self, node: Node) -> bool:
        """Return whether a node is inside of a method, or of the block of a function of the 3.x API."""
        current = node.parent
        while current is not None:
            if current.type == "method":
                return True
            if current.type == "call" and self._text(current.child_by_field_name("method")) == "newfunction":
                return True
            current = current.parent
        return False

    def _of_call(self, node: Node) -> str | None:
        receiver, method = node.child_by_field_name("receiver"), node.child_by_field_name("method")
        if method is None:
            return ""
        name = self._text(method)
        if name in _BY_NAME and not self._names_listed_method(node):
            return ""
        if receiver is None:
            return self._of_plain_call(node, name)
        if receiver.type in ("constant", "scope_resolution"):
            constant = self._text(receiver).removeprefix("::")
            if not self.is_template and (constant, name) in (
                ("Puppet::Functions", "create_function"),
                ("Puppet::Parser::Functions", "newfunction"),
            ):
                return None
            return None if name in _CONSTANT_METHODS.get(constant, ()) else f"{constant}.{name}"
        if name in _METHODS or name in self.own_methods or name.startswith("function_"):
            return None
        return f"the method {name}"

    def _names_listed_method(self, node: Node) -> bool:
        """Return whether a call has a block, or its last argument is the name of a listed method."""
        part = node.child_by_field_name("arguments")
        arguments = [] if part is None else [child for child in part.named_children if child.type != "comment"]
        if not arguments or node.child_by_field_name("block") is not None or arguments[-1].type == "block_argument":
            return True
        return arguments[-1].type == "simple_symbol" and self._text(arguments[-1])[1:] in _METHODS

    def _of_plain_call(self, node: Node, name: str) -> str | None:
        if name in _PLAIN_CALLS or name in self.own_methods or name.startswith("function_") or name in (TEXT, OUTPUT):
            return None
        if name == "require":
            arguments = node.child_by_field_name("arguments")
            library = self._text(arguments).strip("()").strip().strip("'\"")
            return None if library in _REQUIRED else f"require '{library}'"
        if self.is_template:
            return f"the method {name}"
        declaring = ("newfunction", "dispatch", "argument_mismatch", "local_types", "type", "return_type", "scope_param")
        if name in declaring or name.endswith("param"):
            return None
        return f"the method {name}"


def _walk(node: Node) -> Iterator[Node]:
    """Yield all named nodes, in the order of the text."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending += reversed(current.named_children)

"""The definitions of an environment: those of its main manifests, and those of modules, which are found by name when first used."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from types import ModuleType
from typing import Any

from shared.errors import ConfigError, EvaluationError, Location, ParseError, PuppetError
from shared.regexps import Match, Regexp

from ..catalog.definitions import Body, Define, Definition, HostClass, NodeBlock
from ..codegen.codecache import CodeCache
from ..codegen.units import Unit
from ..errors.locations import FINAL
from ..functions import Function
from ..functions.api import collect
from ..functions.catalog_context import CatalogContext
from ..functions.stdlib import Library
from ..host import CompilerHost
from ..syntax.checker import Diagnostic, namespace_of
from ..syntax.source import Source
from ..types.builtin import BUILTIN_TYPES
from ..types.kinds.objects import ObjectType
from ..types.named.aliases import AliasType
from ..types.named.type_sets import TypeSetType
from ..types.notation.access import IllegalAlias, declared_type
from ..types.notation.parse import parse_type
from ..values.core import PuppetType
from .erb_templates import ErbTemplates
from .file_reader import DiagnosticLog, FileReader
from .loaded_files import AliasCode, FileDefinitions, Template, check_metaparameters, definitions_of
from .ruby_functions import BundledFunction, RubyFunctions

_NAME = re.compile(r"[a-z]\w*(?:::[a-z]\w*)*", re.ASCII)


def is_loadable(name: str) -> bool:
    """Return whether a file is looked for that may define a class, defined type, function or type of that lower-case name."""
    return _NAME.fullmatch(name) is not None


def manifest_files(name: str) -> list[tuple[str, str]]:
    """
    Return the module and path of each manifest that may define a class or defined type, in the order in which they are read: the
    module's init comes first, then `m::a::b` may be in m/a/b or m/a. Source: Puppet 7.23 and 8.10 on such modules.
    """
    module, *segments = name.split("::")
    paths = ["init", *("/".join(segments[:count]) for count in range(len(segments), 0, -1))]
    return [(module, f"manifests/{path}.pp") for path in paths]


def function_files(name: str) -> tuple[str | None, str, str]:
    """
    Return the files in which a function in the language is looked for: its path in the environment, if there can be one; its module, and
    its path in that.
    """
    segments = name.split("::")
    own = f"functions/{'/'.join(segments)}.pp" if len(segments) == 1 or segments[0] == "environment" else None
    return own, segments[0], f"functions/{'/'.join(segments[1:]) or 'init'}.pp"


class Loader:
    """
    The definitions of one environment. It is valid until a file of the environment changes.

    Args:
        runtime: the functions that generated code calls, by name.
        log: gets the warnings of the files that are read.
    Attributes:
        type_names: names that were looked up as types, in lower case. Definitions cache the types that they have looked up.
    """

    def __init__(
        self, host: CompilerHost, runtime: Mapping[str, Any], cache: CodeCache, *, log: DiagnosticLog, builtins: Mapping[str, Function]
    ) -> None:
        self.host = host
        self.reader = FileReader(host, runtime, cache, log)
        self.log = log
        self.builtins = builtins
        self.library = Library(host)
        self.ruby_functions = RubyFunctions(host, cache)
        self.classes: dict[str, HostClass] = {}
        self.defines: dict[str, Define] = {}
        self.nodes: list[NodeBlock] = []
        self.node_names: dict[str, NodeBlock] = {}
        self.functions: dict[str, Function] = dict(builtins)
        self.aliases: dict[str, tuple[str, AliasCode]] = {}
        self.members: dict[str, tuple[str, AliasCode]] = {}  # the types of type sets
        self.types: dict[str, PuppetType] = {}
        self.mains: list[Body] = []
        self.templates: dict[str, tuple[Template, Unit]] = {}
        self.erb_templates = ErbTemplates(cache)
        self.places: dict[tuple[str, str], Location] = {}
        self.type_names: set[str] = set()
        self.unchecked: list[Definition] = []  # their parameters' types were not evaluated yet
        self._tried: set[tuple[str, str]] = set()
        self._missing: set[tuple[str, str]] = set()
        self._loaded = False
        self._is_checking = False

    # --- files ---

    def load_main(self) -> Sequence[Body]:
        """
        Return the code of the main manifests, in order.

        Raises:
            ParseError: prefixed with `Could not parse for environment …`; nothing is defined then, as before.
        """
        if self._loaded:
            return self.mains
        try:
            for source in self.host.manifests():
                self.mains.extend(self._load_file(source, None, "").main)
        except ParseError as error:
            self._clear()
            raise self._parse_failure(error) from error
        except BaseException:
            self._clear()
            raise
        self._loaded = True
        return self.mains

    def _clear(self) -> None:
        self.functions = dict(self.builtins)
        for table in (self.classes, self.defines, self.node_names, self.aliases, self.members, self.types, self.places):
            table.clear()
        self.nodes.clear()
        self.unchecked.clear()
        self.mains.clear()
        self.ruby_functions.further.clear()
        self._tried.clear()
        self._missing.clear()

    def _parse_failure(self, error: ParseError) -> ParseError:
        message = f"Could not parse for environment {self.host.environment}: {error.message}"
        return ParseError(message, where=error.where or FINAL, hint=error.hint)

    def _load_file(self, source: Source, namespace: str | None, module: str) -> FileDefinitions:
        """Read a file and register all that it defines; when it is refused, nothing."""
        definitions = definitions_of(self.reader.read(source, namespace), module)
        self._add(definitions)
        return definitions

    # --- registration ---

    def _add(self, definitions: FileDefinitions) -> None:
        self._check_names(definitions)
        classes = {host_class.name: host_class for host_class in definitions.classes}
        for host_class in definitions.classes:
            check_metaparameters(host_class, self._warn)
        nodes: dict[str, NodeBlock] = {}
        for node in definitions.nodes:
            existing = self.node_names.get(node.name) or nodes.get(node.name)
            if existing is not None:
                raise EvaluationError(f"Node '{node.name}' is already defined {existing.place}; cannot redefine", where=node.place)
            nodes[node.name] = node
        places = self._new_places(definitions)
        for define in definitions.defines:
            check_metaparameters(define, self._warn)
        self.unchecked.extend([*definitions.classes, *definitions.defines])
        self.classes.update(classes)
        self.node_names.update(nodes)
        self.nodes.extend(definitions.nodes)
        self.places.update(places)
        self.defines.update({define.name: define for define in definitions.defines})
        self.functions.update({function.name.lower(): function for function in definitions.functions})
        self.aliases.update({name.lower(): (name, value) for name, value in definitions.aliases})
        members = {name.lower(): (name, value) for name, value in definitions.members}
        self.members.update(members)
        if definitions.module:  # those of a set that no module has are not found by name
            self.aliases.update({name: member for name, member in members.items() if name not in self.aliases})

    def _check_names(self, definitions: FileDefinitions) -> None:
        """Refuse a class that is there already, and a class and a defined type of one name."""
        classes, defines = dict(self.classes), dict(self.defines)
        for entry in sorted([*definitions.classes, *definitions.defines], key=lambda entry: entry.place.line or 0):
            known_class, known_define = classes.get(entry.name), defines.get(entry.name)
            if isinstance(entry, HostClass):
                if known_class is not None:
                    raise EvaluationError(
                        f"Class '{entry.name}' is already defined {known_class.place}; cannot redefine", where=entry.place
                    )
                if known_define is not None:
                    message = f"Definition '{entry.name}' is already defined {known_define.place}; cannot be redefined as a class"
                    raise EvaluationError(message, where=entry.place)
                classes[entry.name] = entry
            elif isinstance(entry, Define):
                if known_class is not None:
                    message = f"'{entry.name}' is already defined {known_class.place} as a class; cannot redefine as a definition"
                    raise EvaluationError(message, where=entry.place)
                defines[entry.name] = entry

    def check_parameter_types(self, scope: CatalogContext) -> None:
        """
        Evaluate the types of the parameters of all definitions that were read since; a type that does not exist is an error of the
        file, whether its definition is declared or not.

        Raises:
            EvaluationError: located at the type; the next call tries again what is in main manifests, and it forgets what modules have.
        """
        if self._is_checking:
            return
        self._is_checking = True
        try:
            while self.unchecked:  # a type may load further files
                for parameter in self.unchecked[0].parameters:
                    parameter.type(scope)
                self.unchecked.pop(0).is_checked = True
        except PuppetError:
            self.unchecked = [definition for definition in self.unchecked if not definition.module]
            raise
        finally:
            self._is_checking = False

    def _new_places(self, definitions: FileDefinitions) -> dict[tuple[str, str], Location]:
        """Return where defines, functions and aliases of a file are defined; raise EvaluationError when one is defined already."""
        new_places: dict[tuple[str, str], Location] = {}
        for kind, name, place in definitions.places:
            if kind == "type":
                self._refuse_taken_type(name)
            key = ("type" if kind == "define" else kind, name)
            earlier = self.places.get(key) or new_places.get(key)
            if earlier is not None:
                raise EvaluationError(
                    f"Attempt to redefine entity 'http://puppet.com/2016.1/runtime/{key[0]}/{name.lower()}'. "
                    f"Originally set at file://{earlier.file}?line={earlier.line}&pos={earlier.column}."
                )
            new_places[key] = place
        return new_places

    def _warn(self, message: str) -> None:
        self.log("warning", Diagnostic("warning", message, FINAL))

    def _refuse_taken_type(self, name: str) -> None:
        """Raise EvaluationError if an alias has the name of a builtin type."""
        lower = name.lower()
        if lower in BUILTIN_TYPES:
            origin = "Originally set by Puppet-Type-System/Static-Loader."
        elif self.host.types.find(lower) is not None or lower in ("node", "class"):
            origin = "Set at unknown location"
        else:
            return
        raise EvaluationError(f"Attempt to redefine entity 'http://puppet.com/2016.1/runtime/type/{lower}'. {origin}", where=FINAL)

    # --- by name ---

    def find_class(self, name: str) -> HostClass | None:
        """Return the class of that (lower-case, absolute) name, autoloaded if need be; with its parents."""
        host_class = self.load_class(name)
        if host_class is not None and host_class.parent is None and host_class.parent_name:
            host_class.parent = self._parent(host_class)
        return host_class

    def load_class(self, name: str) -> HostClass | None:
        """Return the class of that (lower-case, absolute) name, autoloaded if need be; its parents may be missing."""
        host_class = self.classes.get(name)
        if host_class is None:
            self._autoload(name)
            host_class = self.classes.get(name)
        return host_class

    def _parent(self, child: HostClass) -> HostClass:
        assert child.parent_name is not None
        parent = self.find_class(child.parent_name) if child.parent_name != child.name else None
        if parent is None:
            raise EvaluationError(
                f"Could not find parent resource type '::{child.parent_name}' of type hostclass in {self.host.environment}",
                where=child.place,
            )
        return parent

    def find_define(self, name: str) -> Define | None:
        define = self.defines.get(name)
        if define is None:
            self._autoload(name)
            define = self.defines.get(name)
        return define

    def _autoload(self, name: str) -> None:
        """Read the manifests that may define `name`, until one behind the module's init defines it."""
        if ("manifests", name) in self._missing or not is_loadable(name):
            return
        for number, (module, path) in enumerate(manifest_files(name)):
            self._load_module_file(module, path)
            if number and (name in self.classes or name in self.defines):
                return
        self._missing.add(("manifests", name))

    def _load_module_file(self, module: str, path: str) -> None:
        if (module, path) in self._tried:
            return
        source = self.host.module_file(module, path)
        # Noted before it runs, for it may ask for what it defines itself; but a file that is refused is refused again.
        self._tried.add((module, path))
        if source is None:
            return
        try:
            self._load_file(source, namespace_of(PurePosixPath(module, path)), module)
        except BaseException:
            self._tried.discard((module, path))
            raise

    def find_function(self, name: str) -> Function | None:
        """Return the function of that name: builtin, of the environment or a module, else bundled."""
        name = name.removeprefix("::")
        function = self.functions.get(name)
        if function is None and (("functions", name) not in self._missing or name in self.ruby_functions.further):
            self._load_function(name)
            function = self.functions.get(name) or self.library.functions.get(name) or self.ruby_functions.further_function(name)
            if function is not None:
                self.functions[name] = function
            else:
                self._missing.add(("functions", name))
        return function

    def _load_function(self, name: str) -> None:
        if not is_loadable(name):
            return
        own, module, path = function_files(name)
        source = self.host.environment_file(own) if own is not None else None
        if source is not None:
            self._load_file(source, name, "")
            return
        self._load_module_file(module, path)
        if name not in self.functions:
            self._load_extension(name)

    def _load_extension(self, name: str) -> None:
        """Load a function that a module has in Python, or in Ruby, where a bundled one of that name counts first."""
        source = self.host.function_extension(name)
        if source is None:
            return
        if not (source.file or "").endswith(".py"):
            bundled = self.library.functions.get(name)
            own = partial(self.ruby_functions.function, name, source)
            self.functions[name] = own() if bundled is None else BundledFunction(bundled, own)
            return
        module = ModuleType(f"puppet_function_{name.replace('::', '_')}")
        try:
            exec(compile(source.text, source.file or "", "exec", dont_inherit=True), module.__dict__)  # noqa: S102 -- a module's own code
        except Exception as error:
            raise ConfigError(f"Could not load {source.file}: {type(error).__name__}: {error}") from error
        functions = collect([module])
        if name not in functions:
            raise ConfigError(f"{source.file} does not define the function '{name}'", hint=f'Declare it with @function("{name}", …).')
        if functions[name].pure is None:
            functions[name].pure = False  # nobody knows what it reads
        self.functions[name] = functions[name]

    def find_alias(self, name: str, scope: CatalogContext) -> PuppetType | None:
        """Return the type alias of that name in any case, its definition resolved."""
        lower = name.lower()
        type_ = self.types.get(lower)
        if type_ is not None:
            return type_
        if lower not in self.aliases and ("types", lower) not in self._missing:
            self._load_alias(lower)
        declaration = self.aliases.get(lower)
        if declaration is None:
            declaration = self._bundled_alias(lower)
        if declaration is None:
            self._missing.add(("types", lower))
            return None
        if lower in self.members:  # with its set, which may be wrong
            self.find_alias(lower.rpartition("::")[0], scope)
            type_ = self.types.get(lower)
            if type_ is not None:
                return type_
        return self._define_type(lower, declaration, scope)

    def _define_type(self, lower: str, declaration: tuple[str, AliasCode], scope: CatalogContext) -> PuppetType:
        name, make_type = declaration
        alias = AliasType(name)
        self.types[lower] = alias
        try:
            definition = declared_type(name, make_type(scope))
            alias.define(definition)
        except BaseException as error:
            del self.types[lower]
            if isinstance(error, EvaluationError):
                # The place is where the outermost alias is used, not the definition, nor the alias that names this one.
                raise IllegalAlias(error.message, hint=error.hint) from None
            raise
        if isinstance(definition, ObjectType) and definition.name == name:
            self.types[lower] = definition
            return definition
        if isinstance(definition, TypeSetType):
            self._resolve(lower, definition, scope)
            return definition
        return alias

    def _resolve(self, lower: str, type_set: TypeSetType, scope: CatalogContext) -> None:
        """Find the types of a set, which is registered only when all of them are found."""

        def member(name: str) -> PuppetType | None:
            key = name.lower()
            declaration = self.members.get(key)
            return self.types.get(key) or (self._define_type(key, declaration, scope) if declaration is not None else None)

        before = set(self.types)
        self.types[lower] = type_set
        try:
            type_set.resolve(scope.compilation.definitions.find_type, member)
        except BaseException:
            for name in [lower, *(set(self.types) - before)]:
                self.types.pop(name, None)
            raise

    def _bundled_alias(self, lower: str) -> tuple[str, AliasCode] | None:
        bundled = self.library.type_declaration(lower)
        if bundled is None:
            return None
        name, definition = bundled
        return name, lambda scope: parse_type(definition, scope.compilation.definitions)

    def _load_alias(self, lower: str) -> None:
        segments = lower.split("::")
        if not is_loadable(lower):
            return
        path = "/".join(segments[1:]) if len(segments) > 1 else "init_typeset"
        if (segments[0], f"types/{path}.pp") in self._tried:
            self._load_set(segments)
            return
        before = set(self.aliases)
        if len(segments) == 1:
            source = self.host.environment_file(f"types/{lower}.pp")
            if source is not None and ("", lower) not in self._tried:
                self._tried.add(("", lower))
                self._load_file(source, lower, "")
                return
        self._load_module_file(segments[0], f"types/{path}.pp")
        if lower not in self.aliases and len(self.aliases) > len(before):
            actual = next(self.aliases[name][0] for name in self.aliases if name not in before)
            file = self.host.module_file(segments[0], f"types/{path}.pp")
            path_text = file.file if file else ""
            raise EvaluationError(
                f"The code loaded from {path_text} produced type with the wrong name, expected '{lower}', actual '{actual}'"
            )
        if len(segments) == 1:
            self._check_own_set(lower)
        elif lower not in self.aliases:
            self._load_set(segments)

    def _load_set(self, segments: Sequence[str]) -> None:
        """Read the type set that may have a type of that name: `m::a::b` may be of `m::a`, or `m::b` of the module's own, `m`."""
        if len(segments) > 1:
            owner = "::".join(segments[:-1])
            if owner not in self.aliases and ("types", owner) not in self._missing:
                self._load_alias(owner)

    def _check_own_set(self, module: str) -> None:
        """Raise EvaluationError if the file of a module's type set also defines other types."""
        file = self.host.module_file(module, "types/init_typeset.pp")
        if file is None or module not in self.aliases:
            return
        if [name for (kind, name), place in self.places.items() if kind == "type" and place.file == file.file and name.lower() != module]:
            raise EvaluationError(
                f"The code loaded from {file.file} must contain only the type '{module}' - it has additional definitions."
            )

    # --- nodes ---

    def find_node(self, names: Sequence[str]) -> tuple[NodeBlock, Match | None] | None:
        """Return the node block for the first of `names` that has one, and the match of its expression. Source: language reference 5.3."""
        for name in names:
            exact = self.node_names.get(name.lower())
            if exact is not None and isinstance(exact.match, str) and exact.name != "default":
                return exact, None
            for node in self.nodes:
                if isinstance(node.match, Regexp):
                    match = node.match.search(name.lower())
                    if match is not None:
                        return node, match
        default = self.node_names.get("default")
        return (default, None) if default is not None else None

    # --- templates ---

    def template(self, source: Source, namespace: str = "") -> Template:
        """
        Return the EPP template `source`.

        Raises:
            ParseError: the template has an error; the message has its place.
        """
        key = f"{source.file}\0{source.text}"
        if key in self.templates:
            template, unit = self.templates[key]
            self.reader.repeat_warnings(unit, source)
            return template
        file = self.reader.read(source, None, epp=True)
        self._add(definitions := definitions_of(file, namespace))
        assert definitions.template is not None
        self.templates[key] = definitions.template, file.unit
        return definitions.template

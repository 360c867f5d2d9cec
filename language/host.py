"""The interface between the compiler and its host: an environment's files and data, and a node. The compiler itself reads nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from shared.regexps import Regexp

from .syntax.source import Source
from .values.core import InstanceMethods, Types, Value


class NotFoundInData(Exception):
    """`CompilerHost.lookup` has no value for the key."""


@dataclass(frozen=True, slots=True)
class NativeType:
    """A resource type that is implemented outside of the language, as far as compiling needs to know it."""

    name: str  # lower case
    attributes: frozenset[str]  # parameters and properties, without metaparameters
    namevars: tuple[str, ...] = ("name",)
    isomorphic: bool = True  # two titles with equal namevars collide
    trim_slashes: bool = False  # the title's trailing slashes do not belong to the namevar
    title_patterns: tuple[tuple[Regexp, tuple[str, ...]], ...] = ()  # how a title is taken apart; none: it is the first namevar


class AnyAttribute(frozenset[str]):
    """The attributes of a type that are not known here: every name is one."""

    def __contains__(self, name: object) -> bool:
        return True


class NativeTypeLookup(Protocol):
    """The resource types of an environment."""

    def find(self, name: str) -> NativeType | None:
        """Return the type of a lower-case name, or None."""


@dataclass(frozen=True, slots=True)
class ExportedResource:
    """
    A resource that another node exported.

    Attributes:
        sealed: Parameters that are stored sealed; '' for one whose value is not stored at all. Whoever collects them gets them opened.
    """

    type: str
    title: str
    parameters: Mapping[str, Value]
    certname: str = ""
    sealed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeInput:
    """
    A node to compile for.

    Attributes:
        parameters: top scope variables: facts with the ENC's parameters merged over them.
        classes: what the ENC assigns: `{class: parameters or None}`.
        trusted: `$trusted`.
        server_facts: `$server_facts`.
    """

    certname: str
    environment: str = "production"
    facts: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    classes: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    trusted: Mapping[str, Any] = field(default_factory=dict)
    server_facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def for_node(
        cls,
        certname: str,
        environment: str,
        *,
        facts: Mapping[str, Any],
        parameters: Mapping[str, Any],
        classes: Mapping[str, Mapping[str, Any] | None],
        trusted: Mapping[str, Any],
        server_facts: Mapping[str, Any],
    ) -> NodeInput:
        """
        Return the input of a compilation.

        Args:
            parameters: top scope variables, the facts among them; those of `server_facts` are added.
            server_facts: what the master says of itself; `$server_facts` has the environment's name besides.
        """
        return cls(
            certname,
            environment,
            facts=facts,
            parameters={**parameters, **server_facts},
            classes=classes,
            trusted=trusted,
            server_facts={**server_facts, "environment": environment},
        )


class DataContext(Protocol):
    """
    The services of a compilation and its scope for a lookup.

    Attributes:
        scope: backend functions are called in it.
        types: resolves the names of types in the signatures of backend functions.
        session: what the host keeps for this compilation.
    """

    @property
    def scope(self) -> Any: ...

    @property
    def types(self) -> Types: ...

    @property
    def session(self) -> dict[str, Any]: ...

    def variable(self, name: str) -> Value:
        """Return the value of a variable, None when it is not set, which is reported as `strict` requires."""

    def peek(self, name: str) -> Value:
        """Return the value of a variable, None when it is not set, which is not reported."""

    def fact(self, name: str) -> Value:
        """Return the value of a fact, None when there is none."""

    def caller(self, name: str) -> Value:
        """Return the value of `calling_class`, `calling_class_path` or `calling_module`, the variables of version 3."""

    def convert(self, key: str, value: Value, conversion: Value) -> Value:
        """Return the value of a key converted by its lookup option `convert_to`: a type, or an array of it and further arguments."""

    def warn(self, message: str) -> None:
        """Log a warning about the data; the catalog is not cached."""

    def warn_once(self, kind: str, key: str, message: str, file: str) -> None:
        """Log a warning once for each key."""

    def function(self, name: str) -> Any:
        """Return a function of the language by its name; None when there is none."""


@dataclass(frozen=True, slots=True)
class LookupArguments:
    """
    The arguments of a lookup function other than key and merge.

    Attributes:
        overrides: values that hide variables and keys.
        defaults: values for variables and keys that have none.
        hiera_call: one of the old hiera functions asks.
        extra_paths: the levels that it puts before all others.
        explainer: records every step; None: nobody does.
    """

    overrides: Mapping[str, Value] = field(default_factory=dict)
    defaults: Mapping[str, Value] = field(default_factory=dict)
    hiera_call: bool = False
    extra_paths: Sequence[str] = ()
    explainer: Any = None


NO_ARGUMENTS = LookupArguments()


class LookupMethods(InstanceMethods):
    """
    The methods of a `Puppet::LookupContext`; backend functions in Python use them.

    Attributes:
        module_name: the module whose data are looked up; None for the site's.
        ruby_cache: what the back end caches, for a back end in Ruby, which keeps it itself; None for others.
    """

    __slots__ = ()
    environment_name: str
    module_name: str | None
    ruby_cache: object

    def not_found(self) -> Value:
        """End the function by raising NotFoundInData: there is no value for the key."""
        raise NotImplementedError

    def interpolate(self, value: Value) -> Value:
        """Return `value` with the expressions in it replaced."""
        raise NotImplementedError

    def explain(self, text: Callable[[], object] | None) -> None:
        """Add the text that `text` returns to the explanation; it is not called without an explanation."""
        raise NotImplementedError

    def cache(self, key: Value, value: Value) -> Value:
        """Cache a value under a key and return it."""
        raise NotImplementedError

    def cached_value(self, key: Value) -> Value:
        """Return the cached value of a key, or undef."""
        raise NotImplementedError

    def cached_file_data(self, path: str, block: Callable[[str], Value] | None = None) -> Value:
        """Return the content of a file, or the block's result for it; both are cached until the file changes."""
        raise NotImplementedError

    def file_text(self, path: str) -> tuple[str, str]:
        """Return the content of a file, after a digest of it."""
        raise NotImplementedError

    def read_data(self, function: str, path: str) -> dict[Any, Value]:
        """Return the content of a data file, as the function yaml_data, json_data or hocon_data reads it."""
        raise NotImplementedError

    def decrypt_value(self, key: str, options: Mapping[str, Value]) -> Value:
        """Return a decrypted value of the YAML file at `options["path"]`; NotFoundInData when it does not have the key."""
        raise NotImplementedError


class RubyRuntime(Protocol):
    """The interface for modules' code in Ruby: ERB templates and functions."""

    def erb(
        self,
        scope: Any,
        text: str,
        name: str | None,
        file: str | None,
        answers: Sequence[Any] = (),
        impurity: tuple[str, int] | None = None,
    ) -> str:
        """
        Return the text of a template, as `scope` sees it; without `name` it was given as text.

        Args:
            answers: what the first functions that the template calls return; they have been called already.
            impurity: what it may read besides what it is given, and the line; None: nothing.
        """

    def has_set(self, value: Any) -> bool:
        """Return whether a value of a variable was set by Ruby, which has an object of its own for it."""

    def function(self, name: str, source: Source, impurity: tuple[str, int] | None = None) -> Any:
        """
        Return the Function of that name that a file defines, which runs in Ruby.

        Args:
            impurity: what it may read besides what it is given, and the line; None: nothing.
        """


class CompilerHost(Protocol):
    """
    One environment as the compiler sees it. What it answers may not change while a catalog is compiled.

    Paths that are relative are relative to the module's root.
    """

    @property
    def environment(self) -> str:
        """Its name."""

    @property
    def types(self) -> NativeTypeLookup: ...

    def manifests(self) -> Sequence[Source]:
        """Return the main manifests, in order."""

    def module_file(self, module: str, path: str) -> Source | None:
        """Return a text file of a module, e.g. `('apache', 'manifests/init.pp')`; None when there is none."""

    def function_extension(self, name: str) -> Source | None:
        """Return the file of a module that defines a function outside of the language: in Python (`.py`), else in Ruby (`.rb`)."""

    def environment_file(self, path: str) -> Source | None:
        """Return a text file of the environment itself, e.g. `functions/f.pp`."""

    def module_root(self, name: str) -> str | None:
        """Return the folder of a module."""

    def find_file(self, reference: str, kind: str) -> str | None:
        """Return the path of `module/path` below the module's `kind` folder (`files`, `templates`), or of an absolute path."""

    def matching_paths(self, pattern: str) -> Sequence[str]:
        """Return the files and folders of the compiling host that an absolute pattern matches, as Ruby's `Dir.glob` does."""

    def read_file(self, path: str) -> bytes:
        """Return the content of a file that `find_file` found."""

    def execute(self, command: Sequence[str]) -> str:
        """Return the output of a program on the compiling host; raise EvaluationError when it fails."""

    def is_executed_again(self, command: Sequence[str], output: str | None) -> bool:
        """
        Return whether a program that `execute` has run is run again, and has the same output, before the catalog is used again.

        Args:
            output: None when nobody uses it: then the program only has to succeed.
        """

    @property
    def ruby(self) -> RubyRuntime | None:
        """The evaluator of modules' code in Ruby; None without one."""

    def lookup(self, key: str, context: DataContext, merge: Any = None, arguments: LookupArguments = NO_ARGUMENTS) -> Value:
        """Return a value of the site's data; raise NotFoundInData when there is none. `merge` None: as set in the data."""

    def lookup_context(self, context: DataContext, module: str | None) -> LookupMethods:
        """Return the implementation of a `Puppet::LookupContext` that a manifest made itself."""

    def setting(self, name: str) -> Any:
        """Return a setting of the master; None when it has none of that name."""

    def settings(self) -> Mapping[str, Any]:
        """Return all settings, for `$settings::…`."""

    def exported(self, type_name: str, query: Value, node: NodeInput) -> Sequence[ExportedResource]:
        """
        Return the resources of a type that other nodes export; none without storeconfigs. The host records the question, and that of
        `query_puppetdb`, with what the catalog depends on.

        Args:
            query: The collector's expression as a PuppetDB's syntax tree; None: all of them.
        """

    def query_puppetdb(self, query: Value) -> Value:
        """Return a PuppetDB's answer to a query in PQL (text) or as a syntax tree; raise EvaluationError when there is none."""

    def now(self) -> int:
        """Return the time, in nanoseconds since 1970."""

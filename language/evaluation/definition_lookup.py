"""Look-ups by name in one compilation: classes, defines, functions and types."""

from __future__ import annotations

from collections.abc import Callable

from shared.errors import EvaluationError, Unsupported
from shared.suggestions import did_you_mean

from ..catalog.definitions import Define, Definition, HostClass
from ..catalog.resources import capitalized_type
from ..errors.issues import LanguageError
from ..functions import Function
from ..functions.catalog_context import CatalogContext
from ..host import CompilerHost
from ..loading.loader import Loader
from ..log import CompilationLog
from ..types.builtin import BUILTIN_TYPES
from ..types.kinds.objects import ANNOTATION
from ..types.kinds.references import ResourceEntryType
from ..values.core import Deferred, PuppetType
from ..values.text import inspect


class DefinitionLookup:
    """
    The definitions of an environment as one compilation sees them; the loader reads the files that it has not read yet.

    Attributes:
        top: the scope in which the types of definitions are evaluated.
        settings: the class `settings`, which every catalog has; manifests may include it like any other class.
        names: names of classes and defined types that were looked up, with or without success.
        function_names: the same of functions, as they were written.
    """

    def __init__(
        self, host: CompilerHost, loader: Loader, top: CatalogContext, log: CompilationLog, names: set[str], function_names: set[str]
    ) -> None:
        self.host = host
        self.loader = loader
        self.top = top
        self.log = log
        self.settings = HostClass("settings", (), None)
        self.names = names
        self.function_names = function_names

    def find_class(self, name: str) -> HostClass | None:
        """Return the class of that name, in any case and with or without `::` in front; None when there is none."""
        return self._class(name, self.loader.find_class)

    def has_class(self, name: str) -> bool:
        """Return whether there is a class of that name; its parents need not exist."""
        return self._class(name, self.loader.load_class) is not None

    def _class(self, name: str, find: Callable[[str], HostClass | None]) -> HostClass | None:
        plain = name.removeprefix("::").lower()
        self.names.add(plain)
        host_class = find(plain)
        self.check_parameter_types(host_class)
        return host_class or (self.settings if plain == self.settings.name else None)

    def class_for(self, name: str, certname: str) -> HostClass:
        """Return the class of that name; raise EvaluationError, with the node's name in it, when there is none."""
        host_class = self.find_class(name)
        if host_class is None:
            plain = name.removeprefix("::").lower()
            module = plain.partition("::")[0]
            place = (
                "Its module has no such class" if self.host.module_root(module) else f"No folder of the modulepath has a module {module}"
            )
            hint = did_you_mean(plain, self.loader.classes, otherwise=f"{place}; puppet config print modulepath shows these folders.")
            raise EvaluationError(f"Could not find class {name} for {certname}", hint=hint)
        return host_class

    def find_define(self, name: str) -> Define | None:
        """Return the defined type of that lower-case name; None when there is none."""
        self.names.add(name)
        define = self.loader.find_define(name)
        self.check_parameter_types(define)
        return define

    def check_parameter_types(self, found: Definition | None = None) -> None:
        """Evaluate the types of the parameters in the files that were read since; raise EvaluationError for one that does not exist."""
        if found is not None and not found.is_checked and found not in self.loader.unchecked:
            self.loader.unchecked.append(found)  # this failed for another node
        if self.loader.unchecked:
            self.loader.check_parameter_types(self.top)

    def find_function(self, name: str) -> Function | None:
        """Return the function of that name; None when there is none."""
        self.function_names.add(name)
        return self.loader.find_function(name)

    def function(self, name: str) -> Function:
        """Return the function of that name; raise LanguageError when there is none."""
        self.function_names.add(name)
        function = self.loader.functions.get(name) or self.loader.find_function(name)
        if function is None:
            known_names = [*self.loader.functions, *self.loader.library.functions]
            raise LanguageError(f"Unknown function: '{name}'.", hint=did_you_mean(name, known_names, form="'{}'"))
        return function

    def find_type(self, name: str) -> PuppetType | None:
        """Return the built-in type, the resource type or the alias of that name. Source: language reference 16."""
        name = name.removeprefix("::")
        lower = name.lower()
        builtin = BUILTIN_TYPES.get(lower)
        if builtin is not None and (builtin is not ANNOTATION or self.find_define(lower) is None):  # that name is free for defines
            return builtin
        self.loader.type_names.add(lower)
        if "::" not in lower and self.host.types.find(lower) is not None:
            return ResourceEntryType(name)
        if lower not in self.loader.aliases and self.find_define(lower) is not None:
            return ResourceEntryType(capitalized_type(lower))
        return self.loader.find_alias(name, self.top)

    def deferred_type(self, value: Deferred) -> PuppetType | None:
        """
        Return the declared return type of a Deferred's function; None when it declares none, or only the agent can run it.

        Raises:
            EvaluationError: there is no such function, or it takes no such arguments.
        """
        try:
            function = self.function(value.name)
        except Unsupported:
            return None  # the agent may well have it
        for signature in function.signatures(self):
            if signature.accepts(value.arguments or []):
                if signature.returns is None:
                    warning = f"Deferred function {value.name} has no return_type, unable to guarantee value type during compilation."
                    self.log.warn_once("deprecations", warning, warning)
                return signature.returns
        raise EvaluationError(f"No matching arity found for {value.name} with arguments {inspect(value.arguments or [])}")

"""The context of Puppet's own functions, which work on the catalog, files and data, in addition to the context of all functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..catalog.compilation_view import CompilationView
from ..catalog.definitions import Definition
from ..catalog.resources import DeclaredResource
from ..host import NO_ARGUMENTS, LookupArguments, LookupMethods
from ..values.core import Value
from .api import Context


class CatalogContext(Context, Protocol):
    """The scope that calls a function, as the functions that work on the catalog see it."""

    @property
    def compilation(self) -> CompilationView: ...

    @property
    def resource(self) -> DeclaredResource | None:
        """The class, define or node whose body calls the function; None at top scope before there is one."""

    @property
    def source(self) -> Definition | None:
        """The definition whose body calls the function."""

    def exists(self, name: str) -> bool:
        """Return whether a variable of any form of name, without `$`, is set."""

    def global_scope(self) -> CatalogContext:
        """Return top scope."""

    def include(self, names: Sequence[str]) -> list[DeclaredResource]:
        """Declare and evaluate the classes of these absolute names that are not declared yet; return the resources of all."""

    def create_resources(
        self,
        type_name: str,
        titles: Sequence[str],
        values: dict[str, Value],
        *,
        form: int = 0,
        file: str | None = None,
        line: int | None = None,
        number: float | None = None,
    ) -> list[Value]:
        """
        Declare one resource per title; return references to them.

        Args:
            form: 0, 1 (virtual) or 2 (exported).
            number: the title, if it was one.
        """

    def realize(self, references: list[tuple[str, str]]) -> None:
        """Make the virtual resources of these types and titles real, now or when they are declared."""

    def look_up(self, key: str, merge: Value = None, arguments: LookupArguments = NO_ARGUMENTS) -> Value:
        """Return the value of a key in the site's data; raise NotFoundInData when there is none."""

    def lookup_context(self, module: str | None) -> LookupMethods:
        """Return the implementation of a `Puppet::LookupContext` that a manifest made itself."""

    def render_epp(self, function: str, text: str, file: str, parameters: Mapping[str, Value] | None, *, outside: CatalogContext) -> Value:
        """Return the text of a template, for `function`; it sees the variables of the scope `outside`."""

    def render_erb(self, text: str, name: str | None = None, file: str | None = None) -> str:
        """Return the text of an ERB template; without `name` and `file` it was given as text."""

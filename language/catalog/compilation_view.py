"""The interface of a compilation for collectors, overrides, functions and loaded code."""

from __future__ import annotations

from typing import Protocol

from shared.errors import Location

from ..host import CompilerHost, NodeInput
from ..log import CompilationLog
from ..values.core import PuppetType, Reporter
from .builder import CatalogBuilder
from .definitions import Define, HostClass
from .resources import Override, ResourceScope


class DefinitionsView(Protocol):
    """The definitions of an environment, as seen by the packages below `evaluation`."""

    def find_class(self, name: str) -> HostClass | None:
        """Return the class of that name; None when there is none."""

    def has_class(self, name: str) -> bool:
        """Return whether there is a class of that name; its parents need not exist."""

    def find_define(self, name: str) -> Define | None:
        """Return the defined type of that lower-case name; None when there is none."""

    def find_type(self, name: str) -> PuppetType | None:
        """Return the built-in type, the resource type or the alias of that name; None when there is none."""


class CompilationView(Protocol):
    """One compilation, as seen by the packages below `evaluation`."""

    @property
    def host(self) -> CompilerHost: ...

    @property
    def node(self) -> NodeInput: ...

    @property
    def catalog(self) -> CatalogBuilder: ...

    @property
    def top(self) -> ResourceScope: ...

    @property
    def reporter(self) -> Reporter: ...

    @property
    def storeconfigs(self) -> bool:
        """True if the setting `storeconfigs` allows resources to be exported and collected."""

    @property
    def log(self) -> CompilationLog: ...

    @property
    def uses_output(self) -> bool:
        """True if somebody uses the output of a program that is started now."""

    @property
    def definitions(self) -> DefinitionsView: ...

    def template_file(self, name: str) -> tuple[str, str] | None:
        """Return the text and the path of a template, `module/file` or a path; None when there is none."""

    def add_override(self, override: Override) -> None:
        """Apply an override now, or store it until its resource is declared."""

    def mark_uncacheable(self, reason: str, where: Location | None = None) -> None:
        """Keep the catalog out of the cache of catalogs."""

"""What is declared of a resource type: the same, whichever file it was read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared.regexps import Regexp

from ..compiler.host import AnyAttribute, NativeType

__all__ = ["DeclaredAttribute", "DeclaredType", "TitlePattern"]

TitlePattern = tuple[str, tuple[str, ...]]
"""A regular expression in Ruby's flavour, and the attributes that its groups are."""
WHOLE_TITLE = "(?m-ix:(.*))"


@dataclass(frozen=True, slots=True)
class DeclaredAttribute:
    """A parameter or a property. `values`: the words it takes, `patterns`: the expressions; neither: it takes anything."""

    name: str
    namevar: bool = False
    doc: str = ""
    values: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """
    A resource type.

    Attributes:
        title_patterns: None: they could not be read.
        open: why its attributes are not all known, so that every name is taken for one; '' when they are.
    """

    name: str
    properties: tuple[DeclaredAttribute, ...] = ()
    parameters: tuple[DeclaredAttribute, ...] = ()
    title_patterns: tuple[TitlePattern, ...] | None = ()
    isomorphic: bool = True
    doc: str = ""
    open: str = ""
    flagged: bool = False  # namevars are those that say so, properties too, and `name` is nothing special

    @property
    def namevars(self) -> tuple[str, ...]:
        """The attributes that make a resource the one it is, in the order of their declaration."""
        if self.flagged:
            return tuple(each.name for each in (*self.properties, *self.parameters) if each.namevar)
        return tuple(each.name for each in self.parameters if each.namevar or each.name == "name")

    def patterns(self) -> tuple[TitlePattern, ...] | None:
        """How a title is taken apart; None when that is not known."""
        if self.title_patterns:
            return self.title_patterns
        if self.title_patterns is None or len(self.namevars) > 1:
            return None
        return ((WHOLE_TITLE, self.namevars),) if self.namevars else ()

    def known(self) -> NativeType:
        """What the compiler needs of it."""
        names = {each.name for each in (*self.properties, *self.parameters)}
        attributes = AnyAttribute() if self.open else frozenset(names | {"provider"})
        patterns = self.patterns()
        # Of a type whose titles cannot be read, no two resources are said to be the same.
        isomorphic = self.isomorphic and not self.open and patterns is not None
        return NativeType(self.name, attributes, self.namevars or ("name",), isomorphic, title_patterns=tuple(_compiled(patterns or ())))


def _compiled(patterns: tuple[TitlePattern, ...]) -> list[tuple[Any, tuple[str, ...]]]:
    return [(Regexp(source), names) for source, names in patterns if source != WHOLE_TITLE]

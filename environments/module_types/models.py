"""The declaration of a resource type, independent of the kind of file that it was read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from language.host import AnyAttribute, NativeType
from shared.regexps import Regexp

TitlePattern = tuple[str, tuple[str, ...]]
"""A regular expression in Ruby's syntax, and the attributes that its groups set."""
WHOLE_TITLE = "(?m-ix:(.*))"


@dataclass(frozen=True, slots=True)
class DeclaredAttribute:
    """
    A parameter or a property.

    Attributes:
        values: the words that it accepts.
        patterns: the regular expressions of accepted values; without values and patterns it accepts anything.
    """

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
        title_patterns: None when they could not be read.
        open: why not all attributes are known, so that every name is accepted; '' when they are.
        explicit_namevars: only attributes marked so are namevars, properties too, and the name `name` means nothing special.
    """

    name: str
    properties: tuple[DeclaredAttribute, ...] = ()
    parameters: tuple[DeclaredAttribute, ...] = ()
    title_patterns: tuple[TitlePattern, ...] | None = ()
    isomorphic: bool = True
    doc: str = ""
    open: str = ""
    explicit_namevars: bool = False

    @property
    def namevars(self) -> tuple[str, ...]:
        """The attributes that identify a resource, in the order of their declaration."""
        if self.explicit_namevars:
            return tuple(attribute.name for attribute in (*self.properties, *self.parameters) if attribute.namevar)
        return tuple(attribute.name for attribute in self.parameters if attribute.namevar or attribute.name == "name")

    def patterns(self) -> tuple[TitlePattern, ...] | None:
        """Return the patterns that split a title into namevars; None when they are unknown."""
        if self.title_patterns:
            return self.title_patterns
        if self.title_patterns is None or len(self.namevars) > 1:
            return None
        return ((WHOLE_TITLE, self.namevars),) if self.namevars else ()

    def to_native_type(self) -> NativeType:
        """Return the type as the compiler needs it."""
        names = {attribute.name for attribute in (*self.properties, *self.parameters)}
        attributes = AnyAttribute() if self.open else frozenset(names | {"provider"})
        patterns = self.patterns()
        # When the title patterns are unknown, no two resources are reported as the same.
        isomorphic = self.isomorphic and not self.open and patterns is not None
        return NativeType(
            self.name, attributes, self.namevars or ("name",), isomorphic, title_patterns=tuple(_compile_patterns(patterns or ()))
        )


def _compile_patterns(patterns: tuple[TitlePattern, ...]) -> list[tuple[Any, tuple[str, ...]]]:
    return [(Regexp(source), names) for source, names in patterns if source != WHOLE_TITLE]

"""The scopes of one compilation that are found again: top scope, the node's, and those of classes."""

from __future__ import annotations

from shared.regexps import Match

from ...values.core import MISSING, MaybeValue
from .scope import Scope


class ScopeTable:
    """
    The scopes of one compilation.

    Attributes:
        node: the scope of the node block; None before there is one.
        node_match: the match of the node block's regular expression; None when it has none.
        by_class: the scopes of the classes that were evaluated, by lower-case name; that of the class without a name is top scope.
        has_defaults: some scope has resource defaults.
        setting_names: names of settings that were read as `$settings::name`, also in vain.
    """

    def __init__(self, top: Scope, setting_names: set[str]) -> None:
        self.top = top
        self.setting_names = setting_names
        self.node: Scope | None = None
        self.node_match: Match | None = None
        self.by_class: dict[str, Scope] = {}
        self.has_defaults = False

    def qualified(self, class_name: str, name: str) -> MaybeValue:
        """Return a variable of an evaluated class, or of those it inherits from; MISSING when there is none."""
        if class_name == "settings":
            self.setting_names.add(name)
        scope = self.by_class.get(class_name)
        while scope is not None:
            value = scope.vars.get(name, MISSING)
            if value is not MISSING:
                return value
            scope = scope.next if scope.next is not None and scope.next.kind == "class" else None
        return MISSING

    def behind(self, scope: Scope | None) -> Scope:
        """Return where names are looked up after a class's or define's own scope, which `scope` declares: node scope, else top scope."""
        while scope is not None:
            if scope.kind in ("node", "top"):
                return scope
            scope = scope.next if scope.kind == "local" else scope.parent
        return self.top

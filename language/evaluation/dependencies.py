"""
The inputs that a compilation reads from its node: a node with the same values gets the same catalog.

Only what is read is remembered, because some facts change with every run, such as uptime and load, and hardly any manifest reads them.
A catalog that depends on other changing inputs is marked as uncacheable, and is compiled on every request.
"""

from __future__ import annotations

from _collections_abc import dict_items, dict_keys, dict_values
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from shared.errors import Location

from ..errors.locations import current_place
from ..host import NodeInput
from ..values.core import Value

_GIVEN = frozenset(("facts", "trusted", "server_facts", "environment"))
"""Top variables that are not among the node's parameters."""


MAX_REASONS = 8
"""Different reasons that a compilation records why its catalog would not be the same again."""
MAX_MARKS = 200
"""The most searches for the place of such a reason, each of which takes some time."""


@dataclass(frozen=True, slots=True)
class UncacheableReason:
    """Why a catalog would not be the same again, and where the code is that makes it so."""

    text: str
    where: Location | None


class NodeDependencies:
    """
    The variables and facts that one compilation has read of its node.

    Attributes:
        variables: names of top scope; including those that were not found.
        facts: names of facts that were read as `$facts['name']` and the like.
        everything: all variables, or all facts, may have been read.
        special_names: the names of variables that the language cannot write were read, but not their values.
        uncacheable_reasons: why the catalog would not be the same again, the first ones; none when it would.
        definitions: names of classes and defined types that were looked for, also in vain.
        functions: names of functions that were called or looked for, also in vain.
        settings: names of the master's settings that were read, also in vain.
    """

    __slots__ = (
        "definitions",
        "everything",
        "facts",
        "functions",
        "marks",
        "settings",
        "special_names",
        "uncacheable_reasons",
        "variables",
    )

    def __init__(self) -> None:
        self.variables: set[str] = set()
        self.facts: set[str] = set()
        self.definitions: set[str] = set()
        self.functions: set[str] = set()
        self.settings: set[str] = set()
        self.everything = False
        self.special_names = False
        self.uncacheable_reasons: list[UncacheableReason] = []
        self.marks = 0

    def note_variable(self, name: str) -> None:
        # $facts as a whole was read, so that any fact may have influenced the catalog.
        if name == "facts":
            self.everything = True
        self.variables.add(name)

    def mark_uncacheable(self, text: str, where: Location | None = None) -> None:
        """Record that the catalog would not be the same again; `where` is by default the place in a manifest that is being evaluated."""
        self.marks += 1
        # A loop may call an impure function thousands of times; one reason is enough to compile again.
        if self.marks > MAX_MARKS or len(self.uncacheable_reasons) >= MAX_REASONS:
            return
        reason = UncacheableReason(text, where or current_place())
        if reason not in self.uncacheable_reasons:
            self.uncacheable_reasons.append(reason)

    def values(self, node: NodeInput) -> str:
        """
        Return the node's values of everything that was read, together with the inputs common to all catalogs, as text.

        Two nodes with equal texts are equal to this compilation: types and the order of keys count, too.
        """
        # A text, where present values are one-element tuples: a variable that is undef is not one that is missing.
        missing = "absent"
        # Always counted, because nearly every catalog depends on them and none of them changes in each run.
        fixed = (node.certname, node.environment, node.classes, node.trusted, node.server_facts)
        if self.everything:
            # `repr` and not JSON: it distinguishes 1 from 1.0 and "1", which manifests do as well.
            return repr((fixed, node.parameters, node.facts))
        parameters = [(name, (node.parameters[name],) if name in node.parameters else missing) for name in sorted(self.variables - _GIVEN)]
        facts = [(name, (node.facts[name],) if name in node.facts else missing) for name in sorted(self.facts)]
        special = sorted(name for name in node.parameters if not name.isidentifier()) if self.special_names else ()
        return repr((fixed, parameters, facts, special))


class TopVariables(dict[str, Value]):
    """The variables of top scope, which record every read."""

    __slots__ = ("dependencies",)

    def __init__(self, dependencies: NodeDependencies) -> None:
        super().__init__()
        self.dependencies = dependencies

    def special_names(self) -> list[str]:
        """Return the names that the language cannot write, such as those of facts with a hyphen."""
        self.dependencies.special_names = True
        return [name for name in dict.keys(self) if not name.isidentifier()]

    def get(self, key: str, default: Any = None) -> Any:
        self.dependencies.note_variable(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Value:
        self.dependencies.note_variable(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.dependencies.note_variable(str(key))
        return super().__contains__(key)

    def setdefault(self, key: str, default: Any = None) -> Any:
        self.dependencies.note_variable(key)
        return super().setdefault(key, default)

    def pop(self, key: str, *default: Any) -> Any:
        self.dependencies.note_variable(key)
        return super().pop(key, *default)

    def __iter__(self) -> Iterator[str]:
        self.dependencies.everything = True
        return super().__iter__()

    def __len__(self) -> int:
        self.dependencies.everything = True
        return super().__len__()

    def keys(self) -> dict_keys[str, Value]:
        self.dependencies.everything = True
        return super().keys()

    def values(self) -> dict_values[str, Value]:
        self.dependencies.everything = True
        return super().values()

    def items(self) -> dict_items[str, Value]:
        self.dependencies.everything = True
        return super().items()

    def copy(self) -> dict[str, Value]:
        self.dependencies.everything = True
        return dict(super().items())

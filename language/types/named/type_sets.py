"""TypeSet: types under one namespace, with a version, and references to other sets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from shared.errors import EvaluationError

from ...values.core import Expansion, Guard, PuppetType, Value
from ...values.text import program
from ...values.versions import SemVer, SemVerRange
from ..kinds.objects import ObjectType
from .aliases import AliasType

_BARE: Final = (
    "TypeSet[{pcore_uri => 'http://puppet.com/2016.1/pcore', pcore_version => '1.0.0', "
    "name_authority => 'http://puppet.com/2016.1/runtime', name => 'DefaultTypeSet', version => '0.0.0'}]"
)


class TypeSetType(PuppetType):
    """
    A set of types under one namespace; without a definition, the type of all type sets.

    It is made in two steps, as its types name each other: `declare.define_type_set` reads the definition, `resolve` finds the types.
    """

    __slots__ = ("_name", "definition", "members", "version")

    def __init__(self, name: str, definition: dict[str, Value] | None = None) -> None:
        self._name = name
        self.definition = definition
        self.version: SemVer | None = None
        self.members: dict[str, PuppetType] = {}

    @property
    def name(self) -> str:
        return self._name

    def part(self, key: str) -> dict[str, Any]:
        """Return the `types` or `references` of the definition; empty when it has none."""
        part = (self.definition or {}).get(key)
        return part if isinstance(part, dict) else {}

    def resolve(self, find: Callable[[str], PuppetType | None], member: Callable[[str], PuppetType | None]) -> None:
        """
        Find the types of the set, and check the type sets that its definition refers to.

        Args:
            find: returns any type by its name.
            member: returns a type of this set by its full name.
        Raises:
            EvaluationError: a referenced set does not exist or has another version, or a member is not a type.
        """
        for reference in self.part("references").values():
            self._check_reference(reference["name"], SemVerRange.parse(reference["version_range"]), find)
        for short, full in self.part("types").items():
            type_ = member(full) if isinstance(full, str) else None
            if type_ is None:
                raise EvaluationError(
                    f"The expression <{program(full)}> is not a valid type specification.",
                    hint=f"The type {short} of {self.name} has to be written as a type.",
                )
            if isinstance(type_.definition if isinstance(type_, AliasType) else type_, TypeSetType):
                raise EvaluationError(
                    f"TypeSet '{self.name}' has a TypeSet as its type '{short}', which is not supported",
                    hint="Give each set a file of its own, and let one reference the other.",
                )
            self.members[short] = type_

    def _check_reference(self, name: str, versions: SemVerRange, find: Callable[[str], PuppetType | None]) -> None:
        mine = f"TypeSet '{self.name}' reference to TypeSet named '{name}'"
        other = find(name)
        if other is None:
            raise EvaluationError(f"{mine} cannot be resolved")
        if not isinstance(other, TypeSetType):
            raise EvaluationError(f"{mine} resolves to a {other.name}")
        if other.version is None or other.version not in versions:
            raise EvaluationError(f"{mine} resolves to an incompatible version. Expected {versions}, got {other.version}")

    def instance(self, value: Value) -> bool:
        return False

    def accepts(self, other: PuppetType, guard: Guard) -> bool:
        return isinstance(other, TypeSetType) and (self.definition is None or other.name == self.name)

    def definition_text(self) -> str:
        """Return the type set as the reference prints it."""
        if self.definition is None:
            return _BARE
        parts = [f"pcore_version => {program(self.definition['pcore_version'])}"]
        parts += ["name_authority => 'http://puppet.com/2016.1/runtime'", f"name => {program(self.name)}"]
        parts += [f"version => {program(str(self.version))}"] if self.version is not None else []
        if self.members:
            shown = [f"{short} => {self._short(short, frozenset())}" for short in self.members]
            parts.append("types => {" + ", ".join(shown) + "}")
        if "references" in self.definition:
            shown = [f"{alias} => {_reference(entry)}" for alias, entry in self.part("references").items()]
            parts.append("references => {" + ", ".join(shown) + "}")
        return "TypeSet[{" + ", ".join(parts) + "}]"

    def _short(self, short: str, inside: frozenset[str]) -> str:
        """Return a type of the set as it is written inside the set; `inside` are the names of the types that are being written."""
        type_ = self.members[short]
        if isinstance(type_, ObjectType):
            if inside:
                return short
            text = type_.definition_text().replace(f"name => {program(type_.name)}, ", "", 1)
        else:
            text = type_.definition.notation(None) if isinstance(type_, AliasType) else str(type_)
        others = {entry["name"]: alias for alias, entry in self.part("references").items()}
        names = re.compile(rf"'(?:[^'\\]|\\.)*'|\b({'|'.join([self.name, *others])})::(\w+)\b")

        def member_text(match: re.Match[str]) -> str:
            owner, member = match[1], match[2]
            if owner in others:
                return f"{others[owner]}::{member}"
            if member not in self.members:
                return match[0]
            return member if member in inside or member == short else self._short(member, inside | {short})

        return names.sub(member_text, text)

    def notation(self, expansion: Expansion = None) -> str:
        return _BARE if self.definition is None else super().notation(expansion)

    def __str__(self) -> str:
        return self.definition_text()

    def key(self) -> tuple[object, ...]:
        return (self.name,)


def _reference(entry: Mapping[str, Value]) -> str:
    return "{" + ", ".join(f"{program(name)} => {program(value)}" for name, value in entry.items()) + "}"

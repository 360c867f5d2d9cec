"""
`type Name = TypeSet[{types => {A => …}}]`: every type of the set becomes a definition of its own, `Name::A`.

Inside the set its types are known by their short names, and those of a set that it references by the alias of the reference.
Source: puppet 7.23, asked; the cases of type_sets.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final, TypeVar

from ..syntax import nodes as n
from ..types.builtin import BUILTIN_TYPES

MEMBER: Final = "member"
_SHORT_NAME: Final = re.compile(r"[A-Z]\w*", re.ASCII)
_TYPE_NODES: Final = (n.QualifiedReference, n.AccessExpression, n.HashLiteral, n.ResourceDefaultsExpression)
N = TypeVar("N", bound=n.SyntaxNode)


def with_members(program: n.Program) -> n.Program:
    """Return the file with the types of its sets as further definitions, after all others."""
    definitions: list[n.SyntaxNode] = []
    members: list[Member] = []
    has_sets = False
    for definition in program.definitions:
        entries = _entries(definition.type) if isinstance(definition, n.TypeAliasDefinition) else None
        if isinstance(definition, n.TypeAliasDefinition) and entries is not None:
            definition, own = _expand_set(definition, entries)
            members.extend(own)
            has_sets = True
        definitions.append(definition)
    return replace(program, definitions=(*definitions, *members)) if has_sets else program


class Member(n.TypeAliasDefinition):
    """A type of a set, under its full name."""

    __slots__ = ()


def _entries(type_: n.SyntaxNode) -> Mapping[str, n.HashEntry] | None:
    """Return the entries of the hash that a type set is made from, by their keys; None: it is not a set."""
    if (
        not isinstance(type_, n.AccessExpression)
        or not isinstance(type_.left, n.QualifiedReference)
        or type_.left.value.removeprefix("::") != "TypeSet"
    ):
        return None
    if len(type_.keys) != 1 or not isinstance(type_.keys[0], n.HashLiteral):
        return None
    return {_text(entry.key): entry for entry in type_.keys[0].entries}


def _text(key: n.SyntaxNode) -> str:
    return key.value if isinstance(key, n.QualifiedName | n.StringLiteral | n.QualifiedReference) else ""


def _expand_set(definition: n.TypeAliasDefinition, entries: Mapping[str, n.HashEntry]) -> tuple[n.TypeAliasDefinition, list[Member]]:
    """Return the set with names in the place of its types, and these as definitions."""
    names: dict[str, str] = {}
    members: list[Member] = []
    types, references = entries.get("types"), entries.get("references")
    own = types.value.entries if types is not None and isinstance(types.value, n.HashLiteral) else ()
    for entry in own:
        short = _text(entry.key)
        if _SHORT_NAME.fullmatch(short) and isinstance(entry.value, _TYPE_NODES):
            names[short] = f"{definition.name}::{short}"
    others = _names_of_references(references)
    entries_of_set: list[n.HashEntry] = []
    for entry in own:
        key, short = n.StringLiteral(entry.key.at, entry.key.end, _text(entry.key)), _text(entry.key)
        if short not in names:
            entries_of_set.append(replace(entry, key=key) if isinstance(entry.key, n.QualifiedReference) else entry)
            continue
        value = _with_full_names(_object(entry.value), names, others)
        members.append(Member(entry.value.at, entry.value.end, names[short], value))
        entries_of_set.append(replace(entry, key=key, value=n.StringLiteral(entry.value.at, entry.value.end, names[short])))
    return _with_types(definition, entries_of_set), members


def _object(value: n.SyntaxNode) -> n.SyntaxNode:
    """Return `{…}` and `Parent {…}` as Object types; any other node unchanged."""
    entries: tuple[n.HashEntry, ...]
    if isinstance(value, n.HashLiteral):
        entries = value.entries
    elif isinstance(value, n.ResourceDefaultsExpression):  # which is what the parser takes it for
        parent = n.HashEntry(value.at, value.end, n.StringLiteral(value.at, value.at, "parent"), value.type)
        entries = (
            *[
                n.HashEntry(attribute.at, attribute.end, n.StringLiteral(attribute.at, attribute.at, attribute.name), attribute.value)
                for attribute in value.attributes
                if isinstance(attribute, n.AttributeOperation)
            ],
            parent,
        )
    else:
        return value
    return n.AccessExpression(
        value.at, value.end, n.QualifiedReference(value.at, value.at, "Object"), (n.HashLiteral(value.at, value.end, entries),)
    )


def _names_of_references(references: n.HashEntry | None) -> dict[str, str]:
    """Return the names of the sets that are referenced, by the names that they have inside."""
    names: dict[str, str] = {}
    if references is not None and isinstance(references.value, n.HashLiteral):
        for entry in references.value.entries:
            if isinstance(entry.value, n.HashLiteral):
                names |= {_text(entry.key): _text(part.value) for part in entry.value.entries if _text(part.key) == "name"}
    return names


def _with_full_names(node: N, names: Mapping[str, str], others: Mapping[str, str]) -> N:
    """Return the expression with full names for short ones."""
    if isinstance(node, n.QualifiedReference):
        return replace(node, value=_full_name(node.value, names, others))
    changes: dict[str, Any] = {}
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, n.SyntaxNode):
            changes[field.name] = _with_full_names(value, names, others)
        elif isinstance(value, tuple) and value and isinstance(value[0], n.SyntaxNode):
            changes[field.name] = tuple([_with_full_names(part, names, others) for part in value])
    return replace(node, **changes) if changes else node


def _full_name(name: str, names: Mapping[str, str], others: Mapping[str, str]) -> str:
    if name.lower() in BUILTIN_TYPES:
        return name
    first, _, rest = name.partition("::")
    if rest and first in others:
        return f"{others[first]}::{rest}"
    return names.get(name, name)


def _with_types(definition: n.TypeAliasDefinition, types: list[n.HashEntry]) -> n.TypeAliasDefinition:
    """Return the definition of the set with `types` as its types, and keys that are texts."""
    access = definition.type
    assert isinstance(access, n.AccessExpression)
    hash_ = access.keys[0]
    assert isinstance(hash_, n.HashLiteral)
    entries: list[n.HashEntry] = []
    for entry in hash_.entries:
        value = entry.value
        if _text(entry.key) == "types" and isinstance(value, n.HashLiteral):
            value = replace(value, entries=tuple(types))
        elif _text(entry.key) == "references" and isinstance(value, n.HashLiteral):
            value = replace(
                value, entries=tuple([replace(e, key=n.StringLiteral(e.key.at, e.key.end, _text(e.key))) for e in value.entries])
            )
        entries.append(replace(entry, value=value))
    return replace(definition, type=replace(access, keys=(replace(hash_, entries=tuple(entries)),)))

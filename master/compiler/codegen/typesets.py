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

__all__ = ["MEMBER", "Member", "with_members"]

MEMBER: Final = "member"
_SHORT_NAME: Final = re.compile(r"[A-Z]\w*", re.ASCII)
_TYPE_NODES: Final = (n.TypeName, n.Access, n.Hash, n.ResourceDefaults)
N = TypeVar("N", bound=n.Node)


def with_members(program: n.Program) -> n.Program:
    """The file with the types of its sets as further definitions, behind all others."""
    definitions: list[n.Node] = []
    members: list[Member] = []
    has_sets = False
    for definition in program.definitions:
        entries = _entries(definition.type) if isinstance(definition, n.TypeAlias) else None
        if isinstance(definition, n.TypeAlias) and entries is not None:
            definition, own = _expanded(definition, entries)
            members.extend(own)
            has_sets = True
        definitions.append(definition)
    return replace(program, definitions=(*definitions, *members)) if has_sets else program


class Member(n.TypeAlias):
    """A type of a set, under its full name."""

    __slots__ = ()


def _entries(type_: n.Node) -> Mapping[str, n.Entry] | None:
    """The entries of the hash that a type set is made from, by their keys; None: it is no set."""
    if not isinstance(type_, n.Access) or not isinstance(type_.left, n.TypeName) or type_.left.value.removeprefix("::") != "TypeSet":
        return None
    if len(type_.keys) != 1 or not isinstance(type_.keys[0], n.Hash):
        return None
    return {_text(entry.key): entry for entry in type_.keys[0].entries}


def _text(key: n.Node) -> str:
    return key.value if isinstance(key, n.Name | n.String | n.TypeName) else ""


def _expanded(definition: n.TypeAlias, entries: Mapping[str, n.Entry]) -> tuple[n.TypeAlias, list[Member]]:
    """The set with names in the place of its types, and these as definitions."""
    names: dict[str, str] = {}
    members: list[Member] = []
    types, references = entries.get("types"), entries.get("references")
    own = types.value.entries if types is not None and isinstance(types.value, n.Hash) else ()
    for entry in own:
        short = _text(entry.key)
        if _SHORT_NAME.fullmatch(short) and isinstance(entry.value, _TYPE_NODES):
            names[short] = f"{definition.name}::{short}"
    others = _referenced(references)
    kept: list[n.Entry] = []
    for entry in own:
        key, short = n.String(entry.key.at, entry.key.end, _text(entry.key)), _text(entry.key)
        if short not in names:
            kept.append(replace(entry, key=key) if isinstance(entry.key, n.TypeName) else entry)
            continue
        value = _renamed(_object(entry.value), names, others)
        members.append(Member(entry.value.at, entry.value.end, names[short], value))
        kept.append(replace(entry, key=key, value=n.String(entry.value.at, entry.value.end, names[short])))
    return _rewritten(definition, kept), members


def _object(value: n.Node) -> n.Node:
    """`{…}` and `Parent {…}` as the Object types they stand for."""
    entries: tuple[n.Entry, ...]
    if isinstance(value, n.Hash):
        entries = value.entries
    elif isinstance(value, n.ResourceDefaults):  # which is what the parser takes it for
        parent = n.Entry(value.at, value.end, n.String(value.at, value.at, "parent"), value.type)
        entries = (
            *[
                n.Entry(each.at, each.end, n.String(each.at, each.at, each.name), each.value)
                for each in value.attributes
                if isinstance(each, n.Attribute)
            ],
            parent,
        )
    else:
        return value
    return n.Access(value.at, value.end, n.TypeName(value.at, value.at, "Object"), (n.Hash(value.at, value.end, entries),))


def _referenced(references: n.Entry | None) -> dict[str, str]:
    """The names of the sets that are referenced, by the names that they have inside."""
    names: dict[str, str] = {}
    if references is not None and isinstance(references.value, n.Hash):
        for entry in references.value.entries:
            if isinstance(entry.value, n.Hash):
                names |= {_text(entry.key): _text(part.value) for part in entry.value.entries if _text(part.key) == "name"}
    return names


def _renamed(node: N, names: Mapping[str, str], others: Mapping[str, str]) -> N:
    """The expression with full names for short ones."""
    if isinstance(node, n.TypeName):
        return replace(node, value=_full_name(node.value, names, others))
    changes: dict[str, Any] = {}
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, n.Node):
            changes[field.name] = _renamed(value, names, others)
        elif isinstance(value, tuple) and value and isinstance(value[0], n.Node):
            changes[field.name] = tuple([_renamed(part, names, others) for part in value])
    return replace(node, **changes) if changes else node


def _full_name(name: str, names: Mapping[str, str], others: Mapping[str, str]) -> str:
    if name.lower() in BUILTIN_TYPES:
        return name
    first, _, rest = name.partition("::")
    if rest and first in others:
        return f"{others[first]}::{rest}"
    return names.get(name, name)


def _rewritten(definition: n.TypeAlias, types: list[n.Entry]) -> n.TypeAlias:
    """The definition of the set with `types` as its types, and keys that are texts."""
    access = definition.type
    assert isinstance(access, n.Access)
    hash_ = access.keys[0]
    assert isinstance(hash_, n.Hash)
    entries: list[n.Entry] = []
    for entry in hash_.entries:
        value = entry.value
        if _text(entry.key) == "types" and isinstance(value, n.Hash):
            value = replace(value, entries=tuple(types))
        elif _text(entry.key) == "references" and isinstance(value, n.Hash):
            value = replace(value, entries=tuple([replace(e, key=n.String(e.key.at, e.key.end, _text(e.key))) for e in value.entries]))
        entries.append(replace(entry, value=value))
    return replace(definition, type=replace(access, keys=(replace(hash_, entries=tuple(entries)),)))

"""`Class[names]`, `Resource[type, titles]`, `File[titles]`: a reference, or an array of them. Source: language reference 7.1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ...errors.issues import BadOperand
from ...values.core import Value
from ...values.labels import label, uppercase_article, with_article
from ...values.puppet_type import PuppetType
from ..kinds.base import INF
from ..kinds.references import ClassType, ResourceEntryType, capitalized
from .operands import Keys, arity_error, flatten_arrays, type_text

_NAME = re.compile(r"(?:(?:::)?[a-z_]\w*)(?:::[a-z]\w*)*", re.ASCII)
_CLASSREF = re.compile(r"(?:::)?[A-Z][\w-]*(?:::[A-Z][\w-]*)*", re.ASCII)


def _titles(keys: Sequence[Value]) -> tuple[Keys, bool] | None:
    """Return the titles, and whether the result is an array of references; None when all titles are undef."""
    many = len(keys) > 1 or (bool(keys) and keys[0].__class__ is list)
    titles: Keys = [k for k in flatten_arrays(keys) if k is not None]
    return (titles, many) if titles or not keys else None


def class_reference(base: PuppetType, keys: Sequence[Value]) -> Value:
    """Return the reference `Class[name]`, or an array of references for several names."""
    assert isinstance(base, ClassType)
    if not keys:
        raise arity_error(str(base), 1, INF, 0)
    parsed = _titles(keys)
    if parsed is None:
        return [] if len(keys) > 1 or keys[0].__class__ is list else None
    titles, many = parsed
    references = []
    for index, title in enumerate(titles):
        if not isinstance(title, str):
            text = f"Illegal Class name in class reference. {uppercase_article(label(title))} cannot be used where a String is expected"
            raise BadOperand(text, index)
        name = title.lower().removeprefix("::")
        if not _NAME.fullmatch(name):
            raise BadOperand(
                f"Illegal name. The given name '{title}' does not conform to the naming rule /^((::)?[a-z_]\\w*)(::[a-z]\\w*)*$/", index
            )
        references.append(ClassType(name))
    return references if many else references[0]


def resource_reference(base: PuppetType, keys: Sequence[Value]) -> Value:
    """Return the reference of `Resource[type, title]` or `File[title]`, or an array of references for several titles."""
    assert isinstance(base, ResourceEntryType)
    if not keys:
        raise arity_error(str(base), 1, INF, 0)
    rest = list(keys)
    type_name = base.type_name
    if type_name is None:
        first = rest.pop(0)
        if isinstance(first, ResourceEntryType) and first.type_name is not None:
            type_name = first.type_name
        elif isinstance(first, str):
            type_name = capitalized(first)
        else:
            raise BadOperand(f"First argument to Resource[] must be a resource type or a String. Got {type_text(first)}.", 0)
        if not _CLASSREF.fullmatch(type_name):
            raise BadOperand(f"Illegal type reference. The given name '{type_name}' does not conform to the naming rule", 0)
        if not rest:
            return ResourceEntryType(type_name)
    return _references(base, type_name, rest, 1 if base.type_name is None else 0)


@lru_cache(maxsize=8192)
def reference(type_name: str, title: str) -> ResourceEntryType:
    """Return `Type['title']`: always the same object for the same resource, as catalogs name the same resources again and again."""
    return ResourceEntryType(type_name, title)


def _references(base: ResourceEntryType, type_name: str, keys: Keys, shift: int) -> Value:
    if len(keys) == 1 and keys[0].__class__ is str:
        return reference(type_name, keys[0])
    parsed = _titles(keys)
    if parsed is None:
        return [] if len(keys) > 1 or keys[0].__class__ is list else None
    titles, many = parsed
    references = []
    for index, title in enumerate(titles):
        if not isinstance(title, str):
            raise BadOperand(
                f"Error creating type specialization of {with_article(label(base))}, "
                f"Cannot use {type_text(title)} where a resource title String is expected",
                index + shift,
            )
        references.append(reference(type_name, title))
    return references if many else references[0]

"""`Class[names]`, `Resource[type, titles]`, `File[titles]`: a reference, or an array of them. Source: language reference 7.1."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from ...errors.issues import BadOperand
from ...values.core import PuppetType, Value
from ...values.labels import label, uppercase_article, with_article
from ..kinds.base import INF
from ..kinds.references import ClassType, ResourceEntryType, capitalized
from .operands import arity_error, flatten_arrays, type_text

_NAME = re.compile(r"(?:(?:::)?[a-z_]\w*)(?:::[a-z]\w*)*", re.ASCII)
_CLASSREF = re.compile(r"(?:::)?[A-Z][\w-]*(?:::[A-Z][\w-]*)*", re.ASCII)


def _references(keys: Sequence[Value], reference_of: Callable[[int, Value], PuppetType]) -> Value:
    """Return the reference of a title, or an array for several titles or an array; titles that are undef have none."""
    references: list[Value] = [reference_of(index, title) for index, title in enumerate(k for k in flatten_arrays(keys) if k is not None)]
    if len(keys) > 1 or keys[0].__class__ is list:
        return references
    return references[0] if references else None


def class_reference(base: PuppetType, keys: Sequence[Value]) -> Value:
    """Return the reference `Class[name]`, or an array of references for several names."""
    assert isinstance(base, ClassType)
    if not keys:
        raise arity_error(str(base), 1, INF, 0)

    def reference_of(index: int, title: Value) -> PuppetType:
        if not isinstance(title, str):
            text = f"Illegal Class name in class reference. {uppercase_article(label(title))} cannot be used where a String is expected"
            raise BadOperand(text, index)
        name = title.lower().removeprefix("::")
        if not _NAME.fullmatch(name):
            raise BadOperand(
                f"Illegal name. The given name '{title}' does not conform to the naming rule /^((::)?[a-z_]\\w*)(::[a-z]\\w*)*$/", index
            )
        return ClassType(name)

    return _references(keys, reference_of)


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
    if len(rest) == 1 and rest[0].__class__ is str:
        return reference(type_name, rest[0])

    def reference_of(index: int, title: Value) -> PuppetType:
        if not isinstance(title, str):
            raise BadOperand(
                f"Error creating type specialization of {with_article(label(base))}, "
                f"Cannot use {type_text(title)} where a resource title String is expected",
                index + (base.type_name is None),
            )
        return reference(type_name, title)

    return _references(rest, reference_of)


@lru_cache(maxsize=8192)
def reference(type_name: str, title: str) -> ResourceEntryType:
    """Return `Type['title']`: always the same object for the same resource, as catalogs name the same resources again and again."""
    return ResourceEntryType(type_name, title)

"""References to resources as attributes of resources, and functions of the 3.x API, hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import is_
from typing import Any, Final

from shared.errors import EvaluationError
from shared.regexps import Regexp
from shared.types import KNOWN, builtin_types

from ..values.core import Binary, Iterator, Value, entries, key_of
from ..values.text import inspect, inspect_object
from ..values.times import Timespan, Timestamp
from ..values.versions import SemVer, SemVerRange
from .kinds.references import ClassType, ResourceEntryType, reference_text


@lru_cache
def _namevar(type_name: str) -> str:
    """Return the attribute that a resource's title sets; `name` for types that are not Puppet's own or have several namevars."""
    declared = builtin_types().get(type_name)
    namevars: Sequence[str] = ()
    if declared is not None:
        namevars = [attribute.name for attribute in declared.declaration.attributes.values() if attribute.namevar and not attribute.meta]
    elif type_name in KNOWN:
        namevars = KNOWN[type_name].namevars
    return namevars[0] if len(namevars) == 1 else "name"


class AttributeReference(ResourceEntryType):
    """
    A reference to a resource that went through an attribute: it is shown as `File[/a]`, and selected by equality.

    Source: puppet 7.23, asked; the cases reference-in-attribute-… of generated.yaml.
    """

    __slots__ = ()
    is_selected_by_equality = True

    def __str__(self) -> str:
        return str(reference_text(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResourceEntryType) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash((ResourceEntryType, self.key()))


class AttributeClassReference(ClassType):
    """A reference to a class that went through an attribute: it is shown as `Class[Two]`."""

    __slots__ = ()
    is_selected_by_equality = True

    def __str__(self) -> str:
        return str(reference_text(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClassType) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash((ClassType, self.key()))


@inspect_object.register(AttributeReference)
def _inspect_reference(value: AttributeReference) -> str:
    """Return the reference with the attribute that its title sets."""
    if value.lower is None:
        return str(value)
    name = _namevar(value.lower)
    if value.title is None:
        return f'{value}{{:{name}=>""}}'
    title = (value.title.rstrip("/") or value.title) if value.lower == "file" else value.title
    return f"{value}{{:{name}=>{inspect(title)}}}"


@inspect_object.register(AttributeClassReference)
def _inspect_class_reference(value: AttributeClassReference) -> str:
    return f"{value}{{:name=>{inspect(str(value)[len('Class[') : -1])}}}"


def as_attribute(value: Value) -> Value:
    """Return `value` as an attribute of a resource holds it: references in it, at any depth, become those of attributes."""
    if value.__class__ is str or value is None or value.__class__ is bool:  # as most are
        return value
    return _mapped(value, _ATTRIBUTES)


def as_legacy_argument(value: Value) -> Value:
    """
    Return `value` in the form that functions of the 3.x API get: values that the API lacks become text, references as in attributes.

    Raises:
        EvaluationError: an Iterator is in it.
    """
    return _mapped(value, _LEGACY_ARGUMENTS)


def _mapped(value: Value, forms: Mapping[type, Callable[[Any], Value]]) -> Value:
    """Return `value`, or a copy of it if anything in it has another form in `forms`, the functions that convert values by class."""
    if value.__class__ is list:
        for index, item in enumerate(value):
            if item.__class__ is str:  # as most are
                continue
            new = _mapped(item, forms)
            if new is not item:
                return [*value[:index], new, *[_mapped(other, forms) for other in value[index + 1 :]]]
    elif value.__class__ is dict:
        for key in value:
            if key.__class__ is not str:
                return _mapped_with_keys(value, forms)
        changed: dict[Any, Value] = {}
        for key, item in value.items():
            if item.__class__ is not str:
                new = _mapped(item, forms)
                if new is not item:
                    changed[key] = new
        return {**value, **changed} if changed else value
    else:
        form = forms.get(value.__class__)
        return value if form is None else form(value)
    return value


def _mapped_with_keys(value: dict[Any, Value], forms: Mapping[type, Callable[[Any], Value]]) -> Value:
    old = [part for entry in entries(value) for part in entry]
    new = [_mapped(part, forms) for part in old]
    return value if all(map(is_, new, old)) else {key_of(key): item for key, item in zip(new[::2], new[1::2], strict=True)}


def _attribute_reference(value: ResourceEntryType) -> Value:
    return value if value.type_name is None else AttributeReference(value.type_name, value.title)


def _attribute_class_reference(value: ClassType) -> Value:
    return value if value.class_name is None else AttributeClassReference(value.class_name)


def _refused_iterator(value: Iterator) -> Value:
    raise EvaluationError("Use of an Iterator is not supported here")


def _limited_integer(value: int) -> Value:
    if value in _INTEGERS:
        return value
    # Ruby writes negative numbers of this kind with endless leading digits.
    side, text = ("max", f"{value:x}") if value > 0 else ("min", "..f" + f"{value & ((1 << (4 * (len(f'{value:x}') - 1))) - 1):x}")
    raise EvaluationError(f"Use of a Ruby Integer outside of Puppet Integer {side} range, got '0x{text}'")


_INTEGERS: Final = range(-(2**63), 2**63)
"""The Integers of the language; calculations and functions can produce others."""
_ATTRIBUTES: Final[Mapping[type, Callable[[Any], Value]]] = {
    ResourceEntryType: _attribute_reference,
    ClassType: _attribute_class_reference,
    Iterator: _refused_iterator,
    int: _limited_integer,
}
_LEGACY_ARGUMENTS: Final[Mapping[type, Callable[[Any], Value]]] = {
    **_ATTRIBUTES,
    Regexp: lambda regexp: regexp.delimited,
    **dict.fromkeys((SemVer, SemVerRange, Timespan, Timestamp, Binary), str),
}

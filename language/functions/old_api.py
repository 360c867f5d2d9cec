"""Values as functions of the 3.x API in Ruby get them."""

from __future__ import annotations

from shared.errors import EvaluationError

from ..callables.signatures import Closure
from ..catalog.resources import capitalized_type
from ..types.kinds.references import ClassType, ResourceEntryType
from ..values.core import DEFAULT, Iterator, PuppetType, Sensitive, Value
from ..values.text import to_s


class OldApiReference:
    """A reference to a resource as functions of the 3.x API get it."""

    __slots__ = ("text", "title", "type", "value")

    def __init__(self, value: ResourceEntryType | ClassType) -> None:
        self.value = value
        if isinstance(value, ClassType):
            self.type, self.title = "Class", capitalized_type(value.class_name or "")
        else:
            self.type, self.title = str(value.type_name), value.title or ""
        self.text = f"{self.type}[{self.title}]"


def old_api_value(value: Value, *, inner: bool = False) -> Value | OldApiReference:
    """Return an argument as functions of the 3.x API get it: a value of a newer type becomes text, undef outside of collections ''."""
    if isinstance(value, ResourceEntryType | ClassType) and str(value).endswith("]"):
        return OldApiReference(value)
    if isinstance(value, list):
        return [old_api_value(item, inner=True) for item in value]
    if isinstance(value, dict):
        return {key: old_api_value(item, inner=True) for key, item in value.items()}
    if value is None:
        return None if inner else ""
    if isinstance(value, Iterator):
        raise EvaluationError("Use of an Iterator is not supported here")
    if value is DEFAULT or isinstance(value, str | int | float | PuppetType | Sensitive | Closure):
        return value
    return to_s(value)

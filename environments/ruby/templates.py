"""Templates that Ruby renders, as this process knows them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from language.erb.runtime.session import instance_variables
from language.values.core import Value

if TYPE_CHECKING:
    from language.evaluation.compilation import Scope

_INSTANCE_VARIABLE = re.compile(r"@(\w+)")
_DYNAMIC = re.compile(r"instance_variable|binding|eval|instance_exec")
"""Words of templates that may read variables without naming them."""
_NOT_WORD = re.compile(r"\W")


class RenderedTemplate:
    """
    A template that the child knows by a number.

    Attributes:
        names: of the instance variables that it names; None when it may read any.
    """

    __slots__ = ("names", "number")

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.names = None if _DYNAMIC.search(text) else frozenset(_INSTANCE_VARIABLE.findall(text))

    def variables(self, scope: Scope) -> dict[str, Value]:
        """Return the variables of `scope` that the template needs, by the names of instance variables; without those that are undef."""
        if self.names is None:
            variables = scope.variables()
            return {_NOT_WORD.sub("_", name): value for name, value in variables.items() if value is not None and not name[:1].isdecimal()}
        return instance_variables(scope, self.names)

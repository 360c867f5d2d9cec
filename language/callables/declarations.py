"""
Signatures from text, as builtin functions and `new` declare them.

A parameter is written as the reference lists it: `Type name`, with `name?` optional, `name*` any number and `name+` at least one
more; `Type &name` (or `&name?`) is the block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..types.kinds.base import ANY, OptionalType
from ..types.named.aliases import AliasType
from ..types.notation.parse import parse_type
from ..values.core import PuppetType, Types
from .signatures import Parameter, Signature


class LocalTypes:
    """The aliases that a function declares for its own signatures, and all other types that the compilation knows."""

    def __init__(self, declared: Mapping[str, str], types: Types | None) -> None:
        self.types = types
        self.aliases = {name: AliasType(name) for name in declared}
        for name, text in declared.items():
            self.aliases[name].define(parse_type(text, self))

    def find_type(self, name: str) -> PuppetType | None:
        if name in self.aliases:
            return self.aliases[name]
        return self.types.find_type(name) if self.types is not None else None


def signature_of(
    declared: Sequence[str], returns: str | None = None, types: Types | None = None, aliases: Mapping[str, str] | None = None
) -> Signature:
    """
    Return the Signature of a declaration.

    Args:
        declared: parameters, as in this module's docstring.
        returns: the return type; None is Any.
        types: finds the types that are not built in.
        aliases: types by name, for this declaration alone.
    """
    if aliases:
        types = LocalTypes(aliases, types)
    parameters, block, block_name = [], None, "block"
    for text in declared:
        type_text, _, name = text.rpartition(" ")
        type_ = parse_type(type_text, types)
        if name.startswith("&"):
            block_name = name[1:].rstrip("?")
            block = OptionalType(type_) if name.endswith("?") else type_
        elif name.endswith("?"):
            parameters.append(Parameter.declared(name[:-1], type_, default=True))
        elif name[-1] in "*+":
            bare = None if type_ is ANY else type_
            parameters.append(Parameter(name[:-1], bare, False, True, 1 if name[-1] == "+" else 0, None))
        else:
            parameters.append(Parameter.declared(name, type_))
    return Signature(parameters, block=block, block_name=block_name, returns=parse_type(returns, types) if returns else None)

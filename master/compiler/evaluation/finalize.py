"""The end of a compilation: relationships, overrides that waited, checks, and what containers hand down."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from shared.errors import EvaluationError, PuppetError
from shared.suggestions import did_you_mean

from ..catalog.overrides import apply_override
from ..catalog.relationships import materialize
from ..catalog.resources import INHERITED, METAPARAMETERS, Resource
from ..errors.locations import FINAL
from ..values.core import Value

if TYPE_CHECKING:
    from .compilation import Compiler

__all__ = ["finish", "similar"]


def finish(compiler: Compiler) -> None:
    """
    Source: language reference 13, step 9.

    Raises:
        EvaluationError: an attribute that there is not, a relationship to what is not declared.
    """
    try:
        materialize(compiler.catalog, compiler.relationships)
    except PuppetError as error:
        error.where = error.where or FINAL
        raise
    for resource in compiler.resources:
        waiting = compiler.overrides.get((resource.type, resource.title))
        if waiting:
            for override in waiting:
                apply_override(compiler, resource, override)
            waiting.clear()
        _finish_resource(compiler, resource)
    _hand_down(compiler)
    compiler.catalog.check_aliases()


def _finish_resource(compiler: Compiler, resource: Resource) -> None:
    if resource.finished:
        return
    resource.finished = True
    resource.add_scope_tags()
    resource.unwrap_sensitive()
    if resource.native is not None:
        for name in resource.values:
            if not resource.has_parameter(name):
                raise EvaluationError(
                    f"no parameter named '{name}' {resource.place} on {resource.ref}",
                    where=resource.place,
                    hint=similar(name, METAPARAMETERS | resource.native.attributes),
                )
    elif resource.virtual and resource.definition is not None and not resource.evaluated and not resource.is_class:
        # Nobody collected it; its parameters have to be right all the same.
        resource.definition.check_unevaluated(compiler, resource)
    elif resource.origins and resource.definition is not None and resource.evaluated:
        for name in resource.origins:
            if not resource.has_parameter(name):
                raise EvaluationError(f"{resource.ref}: has no parameter named '{name}'", where=resource.place)


def _hand_down(compiler: Compiler) -> None:
    """Give contained resources the metaparameters they lack, and the tags of what contains them."""
    main = compiler.catalog.find("Class", "main")
    assert main is not None
    handed: dict[int, dict[str, Value]] = {}
    for source, target in compiler.catalog.walk(main):
        data = handed.get(id(source))
        if data is None:
            data = handed[id(source)] = _handed_down(source)
        for name, value in data.items():
            if target.values.get(name) is None:
                target.set(name, value)
        if data:
            handed[id(target)] = {**data, **_handed_down(target)}
        target.tags.update(source.tags)


def _handed_down(resource: Resource) -> dict[str, Value]:
    return {name: resource.values[name] for name in INHERITED if resource.values.get(name) is not None}


def similar(name: str, known: Iterable[str]) -> str:
    """A hint: what could have been meant."""
    return did_you_mean(name, known, form="'{}'")

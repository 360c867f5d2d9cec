"""The end of a compilation: relationships, pending overrides, checks, and the attributes that containers pass on."""

from __future__ import annotations

from shared.errors import EvaluationError, PuppetError
from shared.suggestions import did_you_mean

from ...catalog.relationships import materialize
from ...catalog.resources import INHERITED, METAPARAMETERS, DeclaredResource
from ...errors.locations import FINAL
from ...values.core import Value
from ..compilation import Compilation
from .definitions import check_unevaluated


def finish(compilation: Compilation) -> None:
    """
    Write relationships into the resources, apply the overrides that waited, check attributes, and hand metaparameters down.

    Source: language reference 13, step 9.

    Raises:
        EvaluationError: a resource has an attribute that its type lacks, or a relationship to a resource that is not declared.
    """
    try:
        materialize(compilation.catalog, compilation.pending.relationships)
    except PuppetError as error:
        error.where = error.where or FINAL
        raise
    # Overrides first: they may bring the very attributes that the checks look at.
    for resource in compilation.catalog.declared:
        compilation.pending.apply_overrides(compilation, resource)
        _finish_resource(compilation, resource)
    # After all resources are finished, since an override may still change a container's metaparameters.
    _hand_down(compilation)
    # Last: aliases may come from overrides and from containers.
    compilation.catalog.check_aliases()


def _finish_resource(compilation: Compilation, resource: DeclaredResource) -> None:
    if resource.finished:
        return
    resource.finished = True
    resource.add_scope_tags()
    resource.unwrap_sensitive()
    if resource.native is not None:
        attributes = resource.native.attributes
        # Attributes of core types are checked here and not at the declaration, as overrides and defaults may add more.
        for name in resource.values:
            if name not in attributes and not resource.has_parameter(name):
                raise EvaluationError(
                    f"no parameter named '{name}' {resource.place} on {resource.ref}",
                    where=resource.place,
                    hint=did_you_mean(name, METAPARAMETERS | resource.native.attributes, form="'{}'"),
                )
    elif resource.virtual and resource.definition is not None and not resource.evaluated and not resource.is_class:
        # Nobody collected it; its parameters have to be right all the same.
        check_unevaluated(compilation, resource.definition, resource)
    elif resource.origins and resource.definition is not None and resource.evaluated:
        for name in resource.origins:
            if not resource.has_parameter(name):
                raise EvaluationError(f"{resource.ref}: has no parameter named '{name}'", where=resource.place)


def _hand_down(compilation: Compilation) -> None:
    """Give contained resources the metaparameters that they lack, and the tags of their containers."""
    main = compilation.catalog.find("Class", "main")
    assert main is not None
    metaparameters_by_id: dict[int, dict[str, Value]] = {}
    for source, target in compilation.catalog.walk(main):
        metaparameters = metaparameters_by_id.get(id(source))
        if metaparameters is None:
            metaparameters = metaparameters_by_id[id(source)] = _inherited_metaparameters(source)
        for name, value in metaparameters.items():
            # An attribute that is set to undef counts as missing, as in the reference.
            if target.values.get(name) is None:
                target.set(name, value)
        if metaparameters:
            metaparameters_by_id[id(target)] = {**metaparameters, **_inherited_metaparameters(target)}
        # The walk visits containers before their contents, so one pass hands tags down to any depth.
        target.tags.update(source.tags)


def _inherited_metaparameters(resource: DeclaredResource) -> dict[str, Value]:
    return {name: resource.values[name] for name in INHERITED if resource.values.get(name) is not None}

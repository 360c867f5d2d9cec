"""The attributes that every type has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import BadData
from .attributes import Param, as_list, text_of
from .references import Ref

LOGLEVELS = ("debug", "info", "notice", "warning", "err", "alert", "emerg", "crit", "verbose")


def _references(value: Any) -> Iterator[Ref]:
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _references(one)
    elif isinstance(value, str):
        try:
            yield Ref.parse(value)
        except BadData as err:
            raise ValueError(err.message) from err
    else:
        raise ValueError(f"not a resource reference: {text_of(value)}")


class RelationshipParam(Param[list[Ref]]):
    """References to other resources, nested arrays flattened."""

    def accept(self, resource: Any, raw: Any) -> list[Ref]:
        return list(_references(raw))


class AuditParam(Param[list[str]]):
    """Names of attributes; `all` means every property."""

    def accept(self, resource: Any, raw: Any) -> list[str]:
        known = resource.declaration.attributes
        names = [str(name) for name in as_list(raw)]
        if names == ["all"]:
            return [p.name for p in resource.declaration.properties]
        for name in names:
            if name not in known:
                raise ValueError(f"Cannot audit {name}: not a valid attribute for {resource.ref}")
        return [name for name in names if known[name].is_property]


class Metaparams:
    """The metaparameters, in Puppet's own order; a base of every type."""

    noop = Param(bool, meta=True, doc="Only report the changes that would be made; overrides the setting noop, also with false.")
    schedule = Param(str, meta=True, doc="Name of the schedule in which this resource is managed.")
    audit = AuditParam(str, meta=True, many=True, doc="Attributes whose changes are reported, though not managed; or `all`.")
    loglevel = Param(str, meta=True, values=LOGLEVELS, default="notice", doc="Level of change messages; verbose is info.")
    alias = Param(str, meta=True, many=True, doc="Further names that references may use.")
    tag = Param(str, meta=True, many=True, doc="Further tags.")
    require = RelationshipParam(object, meta=True, many=True, doc="Resources that come before this one.")
    subscribe = RelationshipParam(object, meta=True, many=True, doc="Resources that come before this one and refresh it when they change.")
    before = RelationshipParam(object, meta=True, many=True, doc="Resources that come after this one.")
    notify = RelationshipParam(object, meta=True, many=True, doc="Resources that come after this one and are refreshed when it changes.")
    stage = Param(str, meta=True, doc="The stage that a class belongs to.")


METAPARAMETERS = tuple(name for name, each in vars(Metaparams).items() if isinstance(each, Param))
RELATIONSHIPS = frozenset(name for name in METAPARAMETERS if isinstance(vars(Metaparams)[name], RelationshipParam))

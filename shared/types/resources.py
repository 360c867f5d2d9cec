"""`resources`: removes the resources of a type that are on the system but not in the catalog. Source: resource layer reference 10.9."""

from __future__ import annotations

from typing import Any

from ..errors import ResourceError
from ..ral import Param, Type
from ..ral.attributes import text_of
from ..ral.core import CompleteCatalog
from ..ral.known import KNOWN

NEVER_PURGED = frozenset(("root", "nobody", "bin", "noaccess", "daemon", "sys"))  # users


def _system_user(value: Any) -> bool | int:
    text = text_of(value)
    return text == "true" if text in ("true", "false") else int(text)


def _uid(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError) as err:
        raise ValueError(f"Invalid value {text_of(value)}.") from err


class ResourcesMetatype(Type, name="resources", providers=False):
    """Applies to all resources of one type that are not in the catalog."""

    name = Param(str, namevar=True, doc="The type.")
    purge = Param(bool, default=False, doc="Whether to remove what is not in the catalog.")
    unless_system_user = Param(
        object, match=(r"true|false|\d+",), munge=_system_user, doc="Keep users up to this uid; true: the system's own limit."
    )
    unless_uid = Param(int, many=True, munge=_uid, doc="Keep users of these uids.")

    def check_catalog(self, catalog: CompleteCatalog) -> None:
        purged_type = catalog.types.get(self.name)
        if purged_type is None and self.name not in KNOWN:
            raise self._wrong("name", f"Could not find resource type '{self.name}'")
        if not self.purge:
            return
        properties = [p.name for p in purged_type.declaration.properties] if purged_type else KNOWN[self.name].properties
        if "ensure" not in properties:
            raise self._wrong("purge", "Purging is only supported on types that accept 'ensure'")
        if purged_type is None:
            raise self._wrong("purge", f"Resources of the type '{self.name}' cannot be purged by this agent yet")

    def _wrong(self, attribute: str, message: str) -> ResourceError:
        return ResourceError(f"Parameter {attribute} failed on {self.ref}: {message}", where=self.origin.where)

"""
The attribute names of types that are not supported: Nagios' objects, network devices, Solaris', macOS' and Windows' own.

A compiler checks manifests that use them; a resource of such a type fails with a message when it is evaluated.

Source: resource layer reference 6 to 10.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnsupportedType:
    """A type by its attributes' names; `any_attribute`: they are not listed here, every name is accepted."""

    name: str
    namevars: tuple[str, ...]
    properties: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    isomorphic: bool = True
    any_attribute: bool = False

    def has(self, attribute: str) -> bool:
        """Return whether the type has that attribute; metaparameters not counted."""
        return self.any_attribute or attribute in self.namevars or attribute in self.properties or attribute in self.parameters


def _known(name: str, namevars: str, properties: str = "", parameters: str = "", **options: bool) -> UnsupportedType:
    return UnsupportedType(name, tuple(namevars.split()), tuple(properties.split()), tuple(parameters.split()), **options)


_NAGIOS = (
    "command contact contactgroup host hostdependency hostescalation hostextinfo hostgroup service servicedependency "
    "serviceescalation serviceextinfo servicegroup timeperiod"
)

_TYPES = (
    _known("maillist", "name", "ensure", "description password webserver mailserver admin provider"),
    _known("zpool", "pool", "ensure disk mirror raidz spare log cache ashift autoexpand failmode", "raid_parity provider"),
    _known("zfs", "name", any_attribute=True),
    _known("zone", "name", any_attribute=True),
    _known("interface", "name", any_attribute=True),
    _known("router", "url", any_attribute=True),
    _known("vlan", "name", any_attribute=True),
    _known("computer", "name", any_attribute=True),
    _known("mcx", "name", any_attribute=True),
    _known("macauthorization", "name", any_attribute=True),
    _known("scheduled_task", "name", "ensure enabled command working_dir arguments user trigger compatibility", "password provider"),
    *(_known(f"nagios_{noun}", f"{noun}_name", any_attribute=True) for noun in _NAGIOS.split()),
)

KNOWN = {unsupported.name: unsupported for unsupported in _TYPES}

_CORE = "component exec file filebucket group notify package resources schedule service stage tidy user whit"
CORE = frozenset(_CORE.split())
"""The types that are part of Puppet itself since 6; all others are brought by modules."""

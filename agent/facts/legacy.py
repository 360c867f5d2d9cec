"""The flat names of older Facter versions, computed from the structured facts; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .known import Known

_ALIASES: Mapping[str, str] = {
    "architecture": "os.architecture",
    "hardwaremodel": "os.hardware",
    "osfamily": "os.family",
    "operatingsystem": "os.name",
    "operatingsystemrelease": "os.release.full",
    "operatingsystemmajrelease": "os.release.major",
    "lsbdistid": "os.distro.id",
    "lsbdistcodename": "os.distro.codename",
    "lsbdistdescription": "os.distro.description",
    "lsbdistrelease": "os.distro.release.full",
    "lsbmajdistrelease": "os.distro.release.major",
    "lsbminordistrelease": "os.distro.release.minor",
    "lsbrelease": "os.distro.specification",
    "hostname": "networking.hostname",
    "domain": "networking.domain",
    "fqdn": "networking.fqdn",
    "ipaddress": "networking.ip",
    "ipaddress6": "networking.ip6",
    "macaddress": "networking.mac",
    "netmask": "networking.netmask",
    "netmask6": "networking.netmask6",
    "network": "networking.network",
    "network6": "networking.network6",
    "scope6": "networking.scope6",
    "memoryfree": "memory.system.available",
    "memorysize": "memory.system.total",
    "swapfree": "memory.swap.available",
    "swapsize": "memory.swap.total",
    "processorcount": "processors.count",
    "physicalprocessorcount": "processors.physicalcount",
    "hardwareisa": "processors.isa",
    "uptime": "system_uptime.uptime",
    "uptime_days": "system_uptime.days",
    "uptime_hours": "system_uptime.hours",
    "uptime_seconds": "system_uptime.seconds",
    "id": "identity.user",
    "gid": "identity.group",
    "bios_release_date": "dmi.bios.release_date",
    "bios_vendor": "dmi.bios.vendor",
    "bios_version": "dmi.bios.version",
    "boardassettag": "dmi.board.asset_tag",
    "boardmanufacturer": "dmi.board.manufacturer",
    "boardproductname": "dmi.board.product",
    "boardserialnumber": "dmi.board.serial_number",
    "chassisassettag": "dmi.chassis.asset_tag",
    "chassistype": "dmi.chassis.type",
    "augeasversion": "augeas.version",
    "manufacturer": "dmi.manufacturer",
    "productname": "dmi.product.name",
    "serialnumber": "dmi.product.serial_number",
    "uuid": "dmi.product.uuid",
    "rubyplatform": "ruby.platform",
    "rubysitedir": "ruby.sitedir",
    "rubyversion": "ruby.version",
    "selinux": "os.selinux.enabled",
    "selinux_enforced": "os.selinux.enforced",
    "selinux_current_mode": "os.selinux.current_mode",
    "selinux_config_mode": "os.selinux.config_mode",
    "selinux_config_policy": "os.selinux.config_policy",
    "selinux_policyversion": "os.selinux.policy_version",
}
_PER_INTERFACE: Mapping[str, str] = {
    "ipaddress": "ip",
    "ipaddress6": "ip6",
    "macaddress": "mac",
    "mtu": "mtu",
    "netmask": "netmask",
    "netmask6": "netmask6",
    "network": "network",
    "network6": "network6",
    "scope6": "scope6",
}


def legacy_facts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flat facts for which the structured `values` hold a value. Source: facts reference 2.5."""
    known = Known(values)
    facts = {flat: value for flat, path in _ALIASES.items() if (value := known.get(path)) is not None}
    interfaces: Mapping[str, Any] = known.get("networking.interfaces") or {}
    if interfaces:
        facts["interfaces"] = ",".join(_as_word(name) for name in sorted(interfaces))
    for name, interface in interfaces.items():
        facts |= {f"{flat}_{_as_word(name)}": interface[key] for flat, key in _PER_INTERFACE.items() if key in interface}
    for flat, path in (
        ("memoryfree_mb", "memory.system.available_bytes"),
        ("memorysize_mb", "memory.system.total_bytes"),
        ("swapfree_mb", "memory.swap.available_bytes"),
        ("swapsize_mb", "memory.swap.total_bytes"),
    ):
        if (amount := known.get(path)) is not None:
            facts[flat] = amount / 2**20
    for number, model in enumerate(known.get("processors.models") or []):
        facts[f"processor{number}"] = model
    disks: Mapping[str, Any] = known.get("disks") or {}
    if disks:
        facts["blockdevices"] = ",".join(sorted(disks))
    for name, disk in disks.items():
        facts |= {
            f"blockdevice_{name}_{flat}": disk[key]
            for flat, key in (("model", "model"), ("vendor", "vendor"), ("size", "size_bytes"))
            if key in disk
        }
    for name, key in (known.get("ssh") or {}).items():
        facts |= {f"ssh{name}key": key["key"], f"sshfp_{name}": "\n".join(key["fingerprints"].values())}
    if (domains := known.get("xen.domains")) is not None:
        facts["xendomains"] = ",".join(domains)
    if interfaces:
        leased = {name: interface["dhcp"] for name, interface in interfaces.items() if "dhcp" in interface}
        facts["dhcp_servers"] = {"system": known.get("networking.dhcp"), **leased}
    return facts


def _as_word(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def facts_as_text(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the values as a 3.x agent with `stringify_facts` sends them: all text, structures in Ruby's own notation."""
    return {name: value if isinstance(value, str) else _as_text(value) for name, value in values.items()}


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ruby_inspect(value) if isinstance(value, dict | list) else str(value)


def ruby_inspect(value: Any) -> str:
    """Return `value` as Ruby's `inspect` prints it: `{"a"=>[1, nil]}`."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{ruby_inspect(k)}=>{ruby_inspect(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(ruby_inspect(item) for item in value) + "]"
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(_ESCAPES.get(c, c) for c in value).replace("#{", "\\#{") + '"'
    return str(value)


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\u0000", "\x1b": "\\e"}

"""The facts identity, path, system_uptime, timezone, virtual, is_virtual and the versions."""

from __future__ import annotations

import grp
import os
import pwd
import re
import time
from typing import Any

from .host import Host

_PHYSICAL = frozenset({"physical", "xen0", "vmware_server", "vmware_workstation", "openvzhn", "vserver_host"})
# DMI product or manufacturer -> what it means. Source: facts reference 2.4.
_PRODUCTS = (
    (r"VMware", "vmware"),
    (r"VirtualBox", "virtualbox"),
    (r"Parallels", "parallels"),
    (r"KVM", "kvm"),
    (r"Virtual Machine", "hyperv"),
    (r"RHEV Hypervisor", "rhev"),
    (r"oVirt Node", "ovirt"),
    (r"HVM domU", "xenhvm"),
    (r"Bochs", "bochs"),
    (r"OpenBSD", "vmm"),
    (r"BHYVE", "bhyve"),
)


def resolve_identity(host: Host) -> dict[str, Any]:
    """Who runs this."""
    uid, gid = os.getuid(), os.getgid()
    found: dict[str, Any] = {"uid": uid, "gid": gid, "privileged": uid == 0}
    try:
        found["user"] = pwd.getpwuid(uid).pw_name
    except KeyError:
        pass
    try:
        found["group"] = grp.getgrgid(gid).gr_name
    except KeyError:
        pass
    return {"identity": found}


def resolve_path(host: Host) -> dict[str, Any]:
    return {"path": host.environ.get("PATH", "")}


def parse_uptime(text: str) -> dict[str, Any]:
    """The fact system_uptime, from /proc/uptime: `0:07 hours`, `1 day`, `12 days`."""
    match = re.match(r"\d+", text)
    if not match:
        return {}
    seconds = int(match[0])
    hours, days = seconds // 3600, seconds // 86400
    shown = f"{days} days" if days > 1 else "1 day" if days else f"{hours}:{seconds % 3600 // 60:02d} hours"
    return {"days": days, "hours": hours, "seconds": seconds, "uptime": shown}


def resolve_uptime(host: Host) -> dict[str, Any]:
    found = parse_uptime(host.read("/proc/uptime"))
    return {"system_uptime": found} if found else {}


def resolve_timezone(host: Host) -> dict[str, Any]:
    return {"timezone": time.localtime().tm_zone}


def parse_container(cgroup: str, environment: str) -> str:
    """docker, lxc, systemd_nspawn or podman when the first process runs in one; '' outside of a container."""
    match = re.search(r"(?:^|\0)container=([^\0]*)", environment)
    if match:
        return match[1].replace("-", "_")
    if re.search(r"/docker[/-]", cgroup):
        return "docker"
    return "lxc" if re.search(r"/lxc/", cgroup) else ""


def parse_firmware(product: str, vendor: str, bios_vendor: str) -> str:
    """The hypervisor that the firmware tells of, else '' ."""
    if bios_vendor.startswith("Google"):
        return "gce"
    for pattern, name in _PRODUCTS:
        if re.search(pattern, product) or (name in ("vmware", "parallels") and re.search(pattern, vendor)):
            return name
    return "kvm" if "Amazon EC2" in bios_vendor or vendor == "QEMU" else ""


def resolve_virtual(host: Host) -> dict[str, Any]:
    """The facts virtual and is_virtual: container, firmware, Xen, then the processor's hypervisor flag."""
    found = parse_container(host.read("/proc/1/cgroup"), host.read("/proc/1/environ"))
    if not found and host.exists("/.dockerenv"):
        found = "docker"
    if not found:
        dmi = "/sys/class/dmi/id"
        found = parse_firmware(host.read(f"{dmi}/product_name"), host.read(f"{dmi}/sys_vendor").strip(), host.read(f"{dmi}/bios_vendor"))
    if not found and host.exists("/proc/xen"):
        found = "xen0" if "control_d" in host.read("/proc/xen/capabilities") else "xenu"
    if not found and re.search(r"^flags\s*:.*\bhypervisor\b", host.read("/proc/cpuinfo"), re.M):
        # The kernel runs as a guest, but nothing says whose.
        found = "kvm" if host.entries("/sys/bus/virtio/devices") else "vm_other"
    virtual = found or "physical"
    return {"virtual": virtual, "is_virtual": virtual not in _PHYSICAL}

"""The facts virtual, is_virtual, hypervisors and xen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .host import Host

_PHYSICAL = frozenset({"physical", "xen0", "vmware_server", "vmware_workstation", "openvzhn", "vserver_host"})
# DMI product → hypervisor. Source: facts reference 2.4.
_PRODUCTS = {
    "VMware": "vmware",
    "VirtualBox": "virtualbox",
    "Parallels": "parallels",
    "KVM": "kvm",
    "Virtual Machine": "hyperv",
    "RHEV Hypervisor": "rhev",
    "oVirt Node": "ovirt",
    "HVM domU": "xenhvm",
    "Bochs": "bochs",
    "OpenBSD": "vmm",
    "BHYVE": "bhyve",
}
_PCI = (
    (r"VirtualBox", "virtualbox"),
    (r"XenSource", "xenhvm"),
    (r"Microsoft Corporation Hyper-V", "hyperv"),
    (r"Class 8007: Google, Inc", "gce"),
    (r"VM[wW]are", "vmware"),
    (r"1ab8:|[Pp]arallels", "parallels"),
    (r"(?i:virtio)", "kvm"),
)


def parse_container(cgroup: str, environment: str) -> tuple[str, str]:
    """Return the kind of container (docker, lxc, systemd_nspawn, podman) that the first process runs in and its id or name, or ('', '')."""
    docker = re.search(r"docker[/-]([0-9a-f]+|.+)", cgroup)
    if docker:
        return "docker", docker[1].removesuffix(".scope")
    lxc = re.search(r":/lxc/([^/\n]+)", cgroup)
    match = re.search(r"(?:^|\0)container=([^\0]*)", environment)
    if lxc or (match and match[1] == "lxc"):
        return "lxc", lxc[1] if lxc else ""
    return (match[1].replace("-", "_"), "") if match else ("", "")


def parse_firmware(product: str, vendor: str, bios_vendor: str) -> str:
    """Return the hypervisor that the firmware names, else ''."""
    if "Google" in bios_vendor:
        return "gce"
    if "Amazon EC2" in bios_vendor:
        return "kvm"
    hypervisor = next((name for word, name in _PRODUCTS.items() if word in product), "")
    return hypervisor or ("kvm" if vendor == "QEMU" else "")


def parse_pci(text: str) -> str:
    """Return the hypervisor whose devices lspci lists, else ''."""
    return next((name for line in text.splitlines() for pattern, name in _PCI if re.search(pattern, line)), "")


def parse_virt_what(text: str) -> str:
    """Return the hypervisor that virt-what prints, in Facter's names; '' when it prints nothing."""
    lines = text.split()
    if not lines:
        return ""
    if "xen" in lines:
        for word, name in (("xen-domu", "xenu"), ("xen-hvm", "xenhvm"), ("xen-dom0", "xen0")):
            if any(word in line.lower() for line in lines):
                return name
    if "ibm_systemz" in lines[0]:
        return "zlinux"
    return next((line for line in lines if line != "redhat"), "")


def parse_openvz(status: str) -> tuple[str, str]:
    """Return openvzhn (the host) or openvzve (a container of OpenVZ) and its number, from /proc/self/status; ('', '') without OpenVZ."""
    match = re.search(r"^envID:\s+(\d+)$", status, re.M)
    return ("openvzhn" if match[1] == "0" else "openvzve", match[1]) if match else ("", "")


def parse_vserver(status: str) -> str:
    match = re.search(r"^(?:s_context|VxID):\s+(\d+)$", status, re.M)
    return ("vserver_host" if match[1] == "0" else "vserver") if match else ""


def resolve_virtual(host: Host) -> dict[str, Any]:
    """Return the facts virtual, is_virtual, hypervisors and xen. Source: facts reference 2.4."""
    dmi = {name: host.read(f"/sys/class/dmi/id/{name}").strip() for name in ("product_name", "sys_vendor", "bios_vendor")}
    container, identity = parse_container(host.read("/proc/1/cgroup"), host.read("/proc/1/environ"))
    if not container and host.exists("/.dockerenv"):
        container = "docker"
    if container == "systemd_nspawn":
        identity = host.read("/etc/machine-id").strip()
    status = host.read("/proc/self/status")
    openvz, number = parse_openvz(status) if host.entries("/proc/vz") and not host.exists("/proc/lve/list") else ("", "")
    xen = "xen0" if host.exists("/dev/xen/evtchn") else "xenu" if host.exists("/proc/xen") or host.exists("/dev/xvda1") else ""
    is_gce = not container and "Google" in dmi["bios_vendor"]
    virt_what = "" if is_gce else parse_virt_what(host.run(["virt-what"]))  # also in a container, whose host may be a guest
    hypervisor = container or ("gce" if is_gce else "") or virt_what or openvz or parse_vserver(status) or xen
    hypervisor = hypervisor or parse_firmware(dmi["product_name"], dmi["sys_vendor"], dmi["bios_vendor"])
    pci = "" if hypervisor else parse_pci(host.run(["lspci"]))
    hypervisor = hypervisor or pci
    if not hypervisor and re.search(r"^flags\s*:.*\bhypervisor\b", host.read("/proc/cpuinfo"), re.M):
        # The kernel runs as a guest of an unknown hypervisor.
        hypervisor = "kvm" if host.entries("/sys/bus/virtio/devices") else "vm_other"
    virtual = hypervisor or "physical"
    facts: dict[str, Any] = {"virtual": virtual, "is_virtual": virtual not in _PHYSICAL}
    entries = hypervisors(virtual, {virt_what, pci}, dmi)
    if container in ("docker", "lxc", "systemd_nspawn"):
        entries[container] = {"name" if container == "lxc" else "id": identity} if identity else {}
    if openvz:
        entries["openvz"] = {"id": int(number), "host": openvz == "openvzhn"}
    if "xen" in virtual:
        privileged = host.read("/proc/xen/capabilities").strip() == "control_d" or virtual == "xen0"
        entries["xen"] = {"context": "hvm" if virtual == "xenhvm" else "pv", "privileged": privileged}
    if entries:
        facts["hypervisors"] = entries
    if virtual == "xen0":
        facts["xen"] = {"domains": xen_domains(host)}
    return facts


def hypervisors(virtual: str, tools: set[str], dmi: Mapping[str, str]) -> dict[str, Any]:
    """Return the entries of the fact hypervisors that firmware and tools name. `tools`: the answers of virt-what and lspci."""
    product, vendor, bios = dmi["product_name"], dmi["sys_vendor"], dmi["bios_vendor"]
    entries: dict[str, Any] = {}
    if "Microsoft" in vendor or product == "Virtual Machine":
        entries["hyperv"] = {}
    kvm = "kvm" in tools or virtual == "kvm" or "Amazon EC2" in bios or "Google" in bios or "OpenStack" in product
    if kvm and not any(word in product for word in ("VirtualBox", "Parallels")):
        vendors = {"Google": "google", "OpenStack": "openstack", "Amazon": "amazon"}
        entries["kvm"] = next(({name: True} for word, name in vendors.items() if vendor.startswith(word)), {})
    if product == "VirtualBox" or "virtualbox" in tools:
        entries["virtualbox"] = {}
    if vendor == "VMware, Inc." or product == "VMware" or "vmware" in tools:
        entries["vmware"] = {}
    return entries


def xen_domains(host: Host) -> list[str]:
    """Return the names of the guests, as the host's own tool lists them."""
    lines = (host.run(["/usr/sbin/xl", "list"]) or host.run(["/usr/sbin/xm", "list"])).splitlines()
    return [line.split()[0] for line in lines if line.strip() and not re.search(r"Domain-0|Name", line)]

"""The facts os.* and kernel*."""

from __future__ import annotations

import re
import shlex
from typing import Any

from .host import Host

# Facter's classes of distributions: matched against ID_LIKE, else ID.
_FAMILIES = (
    ("RedHat", r"rhel|fedora|centos|scientific|redhat|oracle|ol\b|amzn|amazon|rocky|almalinux|cloudlinux|ascendos|virtuozzo"),
    ("Debian", r"debian|ubuntu|huaweios|linuxmint|devuan|kdeneon|raspbian"),
    ("Suse", r"suse|sles|sled"),
    ("Gentoo", r"gentoo"),
    ("Archlinux", r"arch|manjaro"),
    ("Mandrake", r"mandrake|mandriva|mageia"),
)
_RHEL = {"rhel", "centos", "fedora", "rocky", "almalinux", "ol", "amzn", "scientific", "cloudlinux"}


def parse_os_release(text: str) -> dict[str, str]:
    """Return the variables of an os-release file, quotes removed."""
    variables = {}
    for line in text.splitlines():
        name, separator, value = line.strip().partition("=")
        if separator and re.fullmatch(r"[A-Z0-9_]+", name):
            try:
                variables[name] = "".join(shlex.split(value)) if not any(c in value for c in " \t") else " ".join(shlex.split(value))
            except ValueError:
                variables[name] = value.strip("\"'")
    return variables


def name_of(release: dict[str, str]) -> str:
    """Return the system's name (`Debian`, `RedHat`, `Archlinux`) by the rule of the facts reference 2.2."""
    words = release.get("NAME", "").split()
    if not words:
        return release.get("ID", "").capitalize()
    if re.match(r"(red|oracle|arch|manjaro)", words[0], re.I):
        joined = "".join(words[:2])
        return joined.capitalize() if re.match(r"(arch|manjaro)", words[0], re.I) else joined
    return words[0]


def family_of(release: dict[str, str]) -> str:
    """Return the distribution class of ID_LIKE, else of ID; an unknown one is its ID, capitalised."""
    likes = release.get("ID_LIKE") or release.get("ID", "")
    for family, pattern in _FAMILIES:
        if re.search(pattern, likes, re.I):
            return family
    return release.get("ID", likes).capitalize()


def release_of(release: dict[str, str], debian_version: str, redhat_release: str) -> dict[str, str]:
    """Return full, major and minor by the rules of the facts reference 2.2; {} when there is no version."""
    identity = release.get("ID", "")
    version = release.get("VERSION_ID", "")
    if identity == "debian" and debian_version.strip():
        return _split(debian_version.strip())
    if identity in _RHEL:
        match = re.search(r"release (\d[\d.]*)", redhat_release)
        return _split(match[1] if match else version)
    if not version:
        return {}
    if identity == "ubuntu":
        return {"full": version, "major": version}
    full = version if "." in version else f"{version}.0"
    return {"full": full, "major": full.split(".")[0], "minor": full.split(".")[1]}


def _split(full: str) -> dict[str, str]:
    parts = full.split(".")
    release = {"full": full, "major": parts[0]}
    if len(parts) > 1:
        release["minor"] = parts[1].lstrip("0") or "0"
    return release


def architecture_of(hardware: str, family: str) -> str:
    if re.fullmatch(r"i[3-6]86|pentium", hardware):
        return "i386"
    return "amd64" if family == "Debian" and hardware == "x86_64" else hardware


def parse_lsb(release: dict[str, str], numbers: dict[str, str], redhat_release: str) -> dict[str, Any]:
    """Return the fact os.distro of distributions whose release file has all of it."""
    identity = name_of(release)
    if release.get("ID") in _RHEL and redhat_release:
        codename = re.search(r"\(([^)]*)\)", redhat_release)
        return {
            "id": identity,
            "release": numbers,
            "description": redhat_release.strip(),
            "codename": codename[1] if codename else "",
        }
    distro: dict[str, Any] = {"id": identity, "release": numbers}
    if codename_text := release.get("VERSION_CODENAME"):
        distro["codename"] = codename_text
    if description := release.get("PRETTY_NAME"):
        distro["description"] = description
    return distro


def parse_selinux(enforce: str, config: str, policy_version: str) -> dict[str, Any]:
    """Return the fact os.selinux from /sys/fs/selinux and /etc/selinux/config."""
    if not enforce:
        return {"enabled": False}
    settings = dict(re.findall(r"^\s*(SELINUX|SELINUXTYPE)\s*=\s*(\S+)", config, re.M))
    enforced = enforce.strip() == "1"
    return {
        "enabled": True,
        "enforced": enforced,
        "current_mode": "enforcing" if enforced else "permissive",
        "config_mode": settings.get("SELINUX", "unknown"),
        "config_policy": settings.get("SELINUXTYPE", "unknown"),
        "policy_version": policy_version.strip(),
    }


def resolve_os(host: Host) -> dict[str, Any]:
    """Return the fact os."""
    release = parse_os_release(host.read("/etc/os-release") or host.read("/usr/lib/os-release"))
    redhat = host.read("/etc/redhat-release")
    numbers = release_of(release, host.read("/etc/debian_version"), redhat)
    family = family_of(release)
    hardware = host.uname().machine
    selinux = parse_selinux(host.read("/sys/fs/selinux/enforce"), host.read("/etc/selinux/config"), host.read("/sys/fs/selinux/policyvers"))
    fact: dict[str, Any] = {
        "architecture": architecture_of(hardware, family),
        "family": family,
        "hardware": hardware,
        "name": name_of(release),
        "selinux": selinux,
    }
    if numbers:
        fact["release"] = numbers
        fact["distro"] = parse_lsb(release, numbers, redhat)
    return {"os": fact}


def parse_kernel(sysname: str, release: str) -> dict[str, str]:
    """Return the kernel's facts; kernelversion is the first three groups of digits, kernelmajversion the first two parts."""
    groups = re.findall(r"\d+", release)[:3]
    return {
        "kernel": sysname,
        "kernelrelease": release,
        "kernelversion": ".".join(groups),
        "kernelmajversion": ".".join(release.split(".")[:2]),
    }


def resolve_kernel(host: Host) -> dict[str, Any]:
    """Return the facts kernel, kernelrelease, kernelversion and kernelmajversion."""
    uname = host.uname()
    return dict(parse_kernel(uname.sysname, uname.release))

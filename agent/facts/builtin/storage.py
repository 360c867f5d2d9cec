"""The facts disks, partitions and mountpoints."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .host import Host
from .sizes import capacity, human

SECTOR = 512  # bytes, whatever the device's own blocks are
STATVFS_SECONDS = 3.0  # for all network filesystems together: a dead server must not cost the run its facts
_NETWORK = re.compile(r"nfs|cifs|smb|afs|ceph|gluster|lustre|9p|fuse\.|ncp|ocfs|gfs")

Mount = dict[str, Any]
Sizes = tuple[int, int, int]  # bytes in all, free for users, used


def parse_mounts(text: str, cmdline: str) -> list[Mount]:
    """Return the entries of /proc/self/mounts that are facts: device, filesystem, path and options. Source: facts reference 2.1."""
    mounts = []
    for line in text.splitlines():
        fields = [_unescape(field) for field in line.split(" ")]
        if len(fields) < 4:
            continue
        device, path, filesystem, options = fields[:4]
        if filesystem == "autofs" or (re.match(r"/(proc|sys)", path) and filesystem != "tmpfs"):
            continue
        if device == "/dev/root":
            root = re.search(r"(?:^|\s)root=(\S+)", cmdline)
            device = root[1] if root else device
        mounts.append({"device": device, "filesystem": filesystem, "path": path, "options": options.split(",")})
    return mounts


def _unescape(field: str) -> str:
    """Return a field with the octal escapes undone by which the kernel writes blanks, tabs, newlines and backslashes."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), field)


def mountpoint(mount: Mount, sizes: Sizes) -> dict[str, Any]:
    """Return one entry of the fact mountpoints."""
    total, available, used = sizes
    return {
        "available": human(available),
        "available_bytes": available,
        "capacity": capacity(used, used + available),
        "device": mount["device"],
        "filesystem": mount["filesystem"],
        "options": mount["options"],
        "size": human(total),
        "size_bytes": total,
        "used": human(used),
        "used_bytes": used,
    }


def sizes_of(path: str) -> Sizes:
    """Return the sizes of the filesystem at `path`; zeros when they cannot be read."""
    try:
        info = os.statvfs(path)
    except OSError:
        return (0, 0, 0)
    return (info.f_blocks * info.f_frsize, info.f_bavail * info.f_frsize, (info.f_blocks - info.f_bfree) * info.f_frsize)


def all_sizes(mounts: Sequence[Mount], ask: Callable[[str], Sizes] = sizes_of, seconds: float = STATVFS_SECONDS) -> dict[str, Sizes]:
    """Return the sizes of all mounts by path. A thread asks network filesystems; when it hangs, it is left behind and they get zeros."""
    sizes = {mount["path"]: ask(mount["path"]) for mount in mounts if not _NETWORK.match(mount["filesystem"])}
    network_paths = [mount["path"] for mount in mounts if mount["path"] not in sizes]
    if network_paths:
        answers: dict[str, Sizes] = {}
        thread = threading.Thread(target=lambda: answers.update((path, ask(path)) for path in network_paths), name="statvfs", daemon=True)
        thread.start()
        thread.join(seconds)
        sizes |= dict(answers)
    return sizes


def resolve_storage(host: Host) -> dict[str, Any]:
    """Return the facts mountpoints, disks and partitions."""
    mounts = parse_mounts(host.read("/proc/self/mounts"), host.read("/proc/cmdline"))
    sizes = all_sizes(mounts)
    facts: dict[str, Any] = {}
    if mounts:
        facts["mountpoints"] = {mount["path"]: mountpoint(mount, sizes.get(mount["path"], (0, 0, 0))) for mount in mounts}
    if disks_fact := disks(host):
        facts["disks"] = disks_fact
    if partitions_fact := partitions(host, mounts):
        facts["partitions"] = partitions_fact
    return facts


def disks(host: Host) -> dict[str, Any]:
    """Return the fact disks, from /sys/block: those that have a device behind them."""
    disks_by_name = {}
    for name in host.entries("/sys/block"):
        base = f"/sys/block/{name}"
        if not host.exists(f"{base}/device"):
            continue
        disk: dict[str, Any] = {}
        if (sectors := host.read(f"{base}/size").strip()).isdigit():
            disk |= {"size": human(int(sectors) * SECTOR), "size_bytes": int(sectors) * SECTOR}
        for label in ("model", "vendor"):
            if text := host.read(f"{base}/device/{label}").strip():
                disk[label] = text
        if rotational := host.read(f"{base}/queue/rotational").strip():
            disk["type"] = "ssd" if rotational == "0" else "hdd"
        udev = udev_of(host, base)
        serial = udev.get("ID_SERIAL_SHORT") or host.read(f"{base}/device/serial").strip()
        wwn = udev.get("ID_WWN_WITH_EXTENSION") or udev.get("ID_WWN") or ""
        disks_by_name[name] = disk | ({"serial": serial} if serial else {}) | ({"wwn": wwn} if wwn else {})
    return disks_by_name


def udev_of(host: Host, device: str) -> dict[str, str]:
    """Return udev's properties of a block device, at `device` below /sys; they are read as lsblk reads them, without a process."""
    number = host.read(f"{device}/dev").strip()
    return dict(re.findall(r"^E:([^=\n]+)=(.*)$", host.read(f"/run/udev/data/b{number}"), re.M)) if number else {}


_UDEV = {"filesystem": "FS_TYPE", "uuid": "FS_UUID", "label": "FS_LABEL", "partuuid": "PART_ENTRY_UUID", "partlabel": "PART_ENTRY_NAME"}
_BLKID = {"filesystem": "TYPE", "uuid": "UUID", "label": "LABEL", "partuuid": "PARTUUID", "partlabel": "PARTLABEL"}


def parse_blkid(text: str) -> dict[str, dict[str, str]]:
    """Return for each device the values that blkid prints, by their names."""
    lines = (line.partition(":") for line in text.splitlines())
    return {device: dict(re.findall(r'(\w+)="([^"]*)"', rest)) for device, _, rest in lines if rest}


def partitions(host: Host, mounts: Sequence[Mount]) -> dict[str, Any]:
    """Return the fact partitions: parts of disks, device mapper and loop devices that are in use."""
    partitions_by_device: dict[str, Any] = {}
    unidentified: list[str] = []
    for device, folder, more in _parts(host):
        sectors = host.read(f"{folder}/size").strip()
        size = int(sectors) * SECTOR if sectors.isdigit() else 0
        udev = udev_of(host, folder)
        known = {name: _unescape_udev(udev[f"ID_{key}"]) for name, key in _UDEV.items() if udev.get(f"ID_{key}")}
        if not known and size:
            unidentified.append(device)
        partitions_by_device[device] = {"size_bytes": size, "size": human(size), **more, **known}
    if unidentified:
        blkid_values = parse_blkid(host.run(["blkid"]))
        for device in unidentified:
            values = blkid_values.get(device, {})
            partitions_by_device[device] |= {name: values[key] for name, key in _BLKID.items() if values.get(key)}
    for mount in reversed(mounts):
        if mount["device"] in partitions_by_device:
            partitions_by_device[mount["device"]]["mount"] = mount["path"]
    return partitions_by_device


def _unescape_udev(text: str) -> str:
    return re.sub(r"\\x([0-9a-fA-F]{2})", lambda code: chr(int(code[1], 16)), text)


def _parts(host: Host) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield (device, its path below /sys, further entries of the fact) of every partition."""
    for name in host.entries("/sys/block"):
        base = f"/sys/block/{name}"
        if host.exists(f"{base}/device"):
            yield from ((f"/dev/{part}", f"{base}/{part}", {}) for part in host.entries(base) if name in part)
        elif host.exists(f"{base}/dm"):
            mapped = host.read(f"{base}/dm/name").strip()
            yield (f"/dev/mapper/{mapped}" if mapped else f"/dev/{name}", base, {})
        elif host.exists(f"{base}/loop"):
            backing = host.read(f"{base}/loop/backing_file").strip()
            yield (f"/dev/{name}", base, {"backing_file": backing} if backing else {})

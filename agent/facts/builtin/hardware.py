"""The facts memory, processors, load_averages, filesystems, fips_enabled and dmi."""

from __future__ import annotations

import re
from typing import Any

from .host import Host
from .sizes import capacity, human


def parse_memory(meminfo: str) -> dict[str, Any]:
    """Return the fact memory, from /proc/meminfo. Source: facts reference 2.1."""
    kib = {name: int(number) * 1024 for name, number in re.findall(r"^([\w()]+):\s+(\d+)", meminfo, re.M)}
    memory = {}
    total = kib.get("MemTotal", 0)
    if total:
        available = kib.get("MemAvailable", kib.get("MemFree", 0) + kib.get("Buffers", 0) + kib.get("Cached", 0))
        memory["system"] = _amounts(total, available)
    swap = kib.get("SwapTotal", 0)
    if swap:
        memory["swap"] = _amounts(swap, kib.get("SwapFree", 0))
    return memory


def _amounts(total: int, available: int) -> dict[str, Any]:
    used = total - available
    return {
        "available": human(available),
        "available_bytes": available,
        "capacity": capacity(used, total),
        "total": human(total),
        "total_bytes": total,
        "used": human(used),
        "used_bytes": used,
    }


def resolve_memory(host: Host) -> dict[str, Any]:
    memory = parse_memory(host.read("/proc/meminfo"))
    return {"memory": memory} if memory else {}


def parse_processors(cpuinfo: str) -> dict[str, Any]:
    """Return count, physicalcount, models, cores, threads and speed of the fact processors, from /proc/cpuinfo; {} when it lists none."""
    blocks = [dict(re.findall(r"^([^:\n]+?)\s*:[ \t]*(.*)$", block, re.M)) for block in re.split(r"\n\s*\n", cpuinfo.strip()) if block]
    logical = [block for block in blocks if "processor" in block]
    if not logical:
        return {}
    models = [block.get("model name") or block.get("cpu") or block.get("Processor") or "" for block in logical]
    sockets = {block["physical id"] for block in logical if "physical id" in block}
    cores = int(logical[0].get("cpu cores", 0)) if logical[0].get("cpu cores", "").isdigit() else 0
    siblings = int(logical[0].get("siblings", 0)) if logical[0].get("siblings", "").isdigit() else 0
    processors: dict[str, Any] = {
        "count": len(logical),
        "physicalcount": len(sockets) or len(logical),
        "models": [model for model in models if model],
        "isa": "unknown",
    }
    if cores:
        processors["cores"] = cores
        processors["threads"] = max(1, siblings // cores)
    speed = next((float(block["cpu MHz"]) for block in logical if re.fullmatch(r"[\d.]+", block.get("cpu MHz", ""))), 0.0)
    if speed:
        processors["speed"] = frequency(speed * 1e6)
    return processors


def frequency(hertz: float) -> str:
    """Return a frequency as Facter writes it: `2.60 GHz`."""
    for unit in ("Hz", "kHz", "MHz", "GHz"):
        if hertz < 1000 or unit == "GHz":
            return f"{hertz:.2f} {unit}"
        hertz /= 1000
    raise AssertionError("unreachable")


def resolve_processors(host: Host) -> dict[str, Any]:
    processors = parse_processors(host.read("/proc/cpuinfo"))
    if processors:
        max_frequency = host.read("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").strip()
        if max_frequency.isdigit():
            processors["speed"] = frequency(int(max_frequency) * 1000)
    return {"processors": processors} if processors else {}


def parse_load(loadavg: str) -> dict[str, float]:
    """Return the averages 1m, 5m and 15m, from /proc/loadavg."""
    numbers = loadavg.split()[:3]
    return {name: float(number) for name, number in zip(("1m", "5m", "15m"), numbers, strict=False)}


def resolve_load(host: Host) -> dict[str, Any]:
    load = parse_load(host.read("/proc/loadavg"))
    return {"load_averages": load} if load else {}


def parse_filesystems(text: str) -> str:
    """Return the sorted names in /proc/filesystems, without those that need no device and fuseblk."""
    names = (line.strip() for line in text.splitlines() if line.strip() and not line.startswith("nodev"))
    return ",".join(sorted(name for name in names if name != "fuseblk"))


def resolve_filesystems(host: Host) -> dict[str, Any]:
    text = host.read("/proc/filesystems")
    return {"filesystems": parse_filesystems(text)} if text else {}


def resolve_fips(host: Host) -> dict[str, Any]:
    return {"fips_enabled": host.read("/proc/sys/crypto/fips_enabled").strip() == "1"}


# Kinds of chassis, from 1 on. Source: SMBIOS 7.4.1.
CHASSIS = (
    "Other",
    "",
    "Desktop",
    "Low Profile Desktop",
    "Pizza Box",
    "Mini Tower",
    "Tower",
    "Portable",
    "Laptop",
    "Notebook",
    "Hand Held",
    "Docking Station",
    "All in One",
    "Sub Notebook",
    "Space-Saving",
    "Lunch Box",
    "Main System Chassis",
    "Expansion Chassis",
    "SubChassis",
    "Bus Expansion Chassis",
    "Peripheral Chassis",
    "Storage Chassis",
    "Rack Mount Chassis",
    "Sealed-Case PC",
    "Multi-system",
    "CompactPCI",
    "AdvancedTCA",
    "Blade",
    "Blade Enclosure",
    "Tablet",
    "Convertible",
    "Detachable",
)


def resolve_dmi(host: Host) -> dict[str, Any]:
    """Return the fact dmi, from /sys/class/dmi/id; only values that the firmware sets."""

    def read(name: str) -> str:
        return host.read(f"/sys/class/dmi/id/{name}").strip()

    layout: dict[str, dict[str, str]] = {
        "bios": {"release_date": "bios_date", "vendor": "bios_vendor", "version": "bios_version"},
        "board": {"asset_tag": "board_asset_tag", "manufacturer": "board_vendor", "product": "board_name", "serial_number": "board_serial"},
        "chassis": {"asset_tag": "chassis_asset_tag"},
        "product": {"name": "product_name", "serial_number": "product_serial", "uuid": "product_uuid"},
    }
    dmi: dict[str, Any] = {}
    for group, names in layout.items():
        values = {name: value for name, file in names.items() if (value := read(file))}
        if values:
            dmi[group] = values
    kind = read("chassis_type")
    if kind.isdigit() and 0 < int(kind) <= len(CHASSIS) and CHASSIS[int(kind) - 1]:
        dmi.setdefault("chassis", {})["type"] = CHASSIS[int(kind) - 1]
    if manufacturer := read("sys_vendor"):
        dmi["manufacturer"] = manufacturer
    return {"dmi": dmi} if dmi else {}

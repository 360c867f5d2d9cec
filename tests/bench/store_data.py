"""Commands of invented nodes, of any size: facts, catalogs and reports as a master sends them. The same node and round give the same."""

from __future__ import annotations

import random
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

CHANGED_RESOURCES = 5  # of a catalog that changed
EVENTS = 20  # of a report with changes
EXPORTED = 2  # of each catalog
TYPES = ("File", "Package", "Service", "Exec")
SITE = "/etc/puppetlabs/code/environments/production/manifests/site.pp"


def certname(number: int) -> str:
    return f"n{number:05d}.example.com"


def _now() -> str:
    return datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _uuid() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class SizedCommand:
    """A command with the payload that is sent as JSON."""

    name: str
    version: int
    payload: dict[str, Any]

    @property
    def certname(self) -> str:
        return str(self.payload["certname"])


def facts(number: int, round: int) -> SizedCommand:
    """
    Return the facts of a node, about 10 kB.

    From round to round there differ three: those that differ in each run of an agent.
    """
    invented = random.Random(number)
    name = certname(number)
    interfaces = {
        f"eth{i}": {"ip": f"10.1.{i}.{number & 255}", "mtu": 1500, "mac": f"02:00:00:00:{i:02x}:{number & 255:02x}"} for i in range(4)
    }
    values: dict[str, Any] = {f"fact_{i}": f"value {i % 7} {'x' * (i % 20)}" for i in range(80)}
    values |= {
        "kernel": "Linux",
        "kernelrelease": "6.1.0-18-amd64",
        "puppetversion": "7.23.0",
        "role": invented.choice(("web", "db", "mail")),
        "os": {"name": "Debian", "family": "Debian", "release": {"full": f"12.{number % 5}", "major": "12"}},
        "processors": {"count": 2 ** (number % 5), "models": ["Some processor"] * 4},
        "networking": {"hostname": name.partition(".")[0], "fqdn": name, "ip": f"10.{number >> 8 & 255}.{number & 255}.1"}
        | {"interfaces": interfaces},
        "mountpoints": {
            path: {"device": f"/dev/sda{i}", "filesystem": "ext4", "size_bytes": 2**34 + i}
            for i, path in enumerate(("/", "/var", "/srv", "/home"))
        },
        "trusted": {"certname": name, "authenticated": "remote", "extensions": {}, "domain": "example.com"},
        "system_uptime": {"seconds": 1_000_000 + round, "hours": 277 + round, "days": 11, "uptime": "11 days"},
        "load_averages": {"1m": round / 100, "5m": 0.5, "15m": 0.25},
        "memory": {"system": {"available_bytes": 2**33 - round, "total_bytes": 2**34, "used_bytes": 2**33 + round}},
    }
    payload = {"certname": name, "environment": "production", "producer_timestamp": _now(), "producer": "master", "values": values}
    return SizedCommand("replace facts", 5, payload)


def catalog(number: int, round: int, size: int) -> SizedCommand:
    """
    Return a catalog of `size` resources, each contained in a class, two of them exported.

    From round to round there differ the contents of five files.
    """
    name = certname(number)
    resources: list[dict[str, Any]] = [
        {"type": "Class", "title": title, "exported": False, "file": None, "line": None, "tags": ["class"], "parameters": {}}
        for title in ("main", "Bench")
    ]
    for i in range(size - len(resources) - EXPORTED):
        kind = TYPES[i % len(TYPES)]
        lines = f"line {i} " * 5 + (f"round {round}" if i < CHANGED_RESOURCES else "")
        parameters = {"ensure": "present", "mode": "0644", "content": lines, "owner": f"user{number % 3}"}
        resources.append(_resource(kind, f"/srv/bench/{i}", i + 1, ["bench", f"t{i % 10}"], parameters))
    key = {"ensure": "present", "type": "ssh-rsa", "key": f"AAAA{number}" * 20, "host_aliases": [name.partition(".")[0]]}
    check = {"check_command": "check_ping", "host_name": name, "target": f"/etc/nagios/{name}.cfg"}
    resources.append(_resource("Sshkey", name, size - 1, ["bench", "shared"], key) | {"exported": True})
    resources.append(_resource("Nagios_service", f"ping of {name}", size, ["bench", f"site{number % 10}"], check) | {"exported": True})
    edges = [
        {
            "source": {"type": "Class", "title": "main" if i == 0 else "Bench"},
            "target": {"type": resource["type"], "title": resource["title"]},
            "relationship": "contains",
        }
        for i, resource in enumerate(resources[1:])
    ]
    payload = {  # in the order in which a puppetserver sends it
        "version": str(int(time.time())),
        "code_id": None,
        "catalog_uuid": _uuid(),
        "resources": resources,
        "edges": edges,
        "job_id": None,
        "certname": name,
        "transaction_uuid": _uuid(),
        "environment": "production",
        "producer_timestamp": _now(),
        "producer": "master",
    }
    return SizedCommand("replace catalog", 9, payload)


def _resource(kind: str, title: str, line: int, tags: list[str], parameters: dict[str, Any]) -> dict[str, Any]:
    names = ["class", kind.lower(), *tags]
    return {"type": kind, "title": title, "exported": False, "file": SITE, "line": line, "tags": names, "parameters": parameters}


def report(number: int, events: int) -> SizedCommand:
    """Return the report of a run that changed so many files; with none it is that of an unchanged node."""
    at = _now()
    resources = [
        {
            "skipped": False,
            "timestamp": at,
            "resource_type": "File",
            "resource_title": f"/srv/bench/{4 * i}",
            "file": SITE,
            "line": 4 * i + 1,
            "containment_path": ["Stage[main]", "Bench", f"File[/srv/bench/{4 * i}]"],
            "corrective_change": False,
            "events": [
                {
                    "status": "success",
                    "timestamp": at,
                    "name": "content_changed",
                    "property": "content",
                    "old_value": "{sha256}" + "a" * 64,
                    "new_value": "{sha256}" + "b" * 64,
                    "message": "content changed from {sha256}a to {sha256}b",
                    "corrective_change": False,
                }
            ],
        }
        for i in range(events)
    ]
    logs = [
        {"file": None, "line": None, "level": "notice", "message": f"line {i}", "source": "Puppet", "tags": ["notice"], "time": at}
        for i in range(2 + events)
    ]
    metrics = [
        {"category": category, "name": name, "value": number % 100}
        for category in ("resources", "time", "changes", "events")
        for name in ("total", "changed", "failed", "restarted", "skipped", "scheduled")
    ]
    payload = {
        "certname": certname(number),
        "puppet_version": "7.23.0",
        "report_format": 12,
        "configuration_version": at,
        "start_time": at,
        "end_time": at,
        "producer_timestamp": at,
        "producer": "master",
        "corrective_change": False,
        "resources": resources,
        "noop": False,
        "noop_pending": False,
        "transaction_uuid": _uuid(),
        "catalog_uuid": _uuid(),
        "code_id": None,
        "job_id": None,
        "cached_catalog_status": "not_used",
        "metrics": metrics,
        "logs": logs,
        "environment": "production",
        "status": "changed" if events else "unchanged",
    }
    return SizedCommand("store report", 8, payload)

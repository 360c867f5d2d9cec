"""Whether a master has kept all that it said it had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import yaml

from ca.storage import inventory
from shared.data import plainyaml
from shared.errors import PuppetError
from tests.support.kept import issued, odd_of_ca, revoked, temporary_files
from tests.support.processes import MasterProcess
from tests.support.simulated_agents import Record


def read_reports(folder: Path) -> tuple[set[str], list[str]]:
    """The UUIDs of the reports of one agent, and what is wrong with others."""
    found, wrong = set(), []
    for path in folder.glob("*.yaml"):
        try:
            found.add(plainyaml.loads(path.read_bytes(), aliases=True)["transaction_uuid"])
        except (PuppetError, yaml.YAMLError, KeyError, TypeError, ValueError) as err:
            wrong.append(f"{folder.name}/{path.name} cannot be read: {err}")
    return found, wrong


def lost_reports(process: MasterProcess, *records: Record) -> Iterator[str]:
    """What is unreadable, and what the master took and has not."""
    sent: dict[str, set[str]] = {}
    for record in records:
        for name, numbers in record.reports.items():
            sent.setdefault(name, set()).update(numbers)
    with ProcessPoolExecutor(2) as pool:
        for name, (found, wrong) in zip(sent, pool.map(read_reports, [process.reports / name for name in sent]), strict=True):
            yield from wrong
            for number in sorted(sent[name] - found):
                yield f"the report {number} of {name} was taken and is not there"


def odd_certificates(ca: Path, signed: Mapping[str, int], cleaned: Mapping[str, int]) -> Iterator[str]:
    """What the CA's folder says otherwise than newcomers and an administrator were told, or otherwise than itself."""
    yield from odd_of_ca(ca)
    there, off = issued(ca), revoked(ca)
    recorded = {(record.name, record.serial) for record in inventory.inventory_entries((ca / "inventory.txt").read_text())}
    for name, serial in signed.items():
        if (name, serial) not in recorded:
            yield f"{name} was given the certificate {serial}, of which the inventory knows nothing"
        if name in cleaned:
            if serial not in off:
                yield f"the certificate {serial} of {name} was revoked and is not on the list"
            if name in there:
                yield f"the certificate of {name} was removed and is in signed/"
        elif there.get(name) != serial:
            yield f"{name} was given the certificate {serial}, and signed/ has {there.get(name)}"


def litter(*folders: Path) -> Iterator[str]:
    yield from (f"{path.relative_to(path.parents[2])} is left over" for path in temporary_files(*folders))


def complaints(log: str) -> Iterator[str]:
    """What no master may ever say."""
    for word in ("Traceback", "Incident", "never retrieved", "never awaited"):
        if (at := log.find(word)) >= 0:
            yield f"the log has {log.count(word)} × {word}, first: …{log[max(0, at - 300) : at + 1200]}…"

"""The commands that PuppetDB was sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from store.commands.commands import Command, StoreReport
from store.commands.payloads import parse_payload

DATASET = Path(__file__).parents[2] / "conformance" / "puppetdb" / "dataset.json"
RECEIVED = 1763000000000000


@pytest.fixture(scope="session")
def commands() -> list[Command | None]:
    """What the commands of the recorded data set say, in their order."""
    entries = json.loads(DATASET.read_text("utf-8"))
    return [parse_payload(entry["command"], entry["version"], json.dumps(entry["payload"]).encode(), RECEIVED) for entry in entries]


@pytest.fixture(scope="session")
def reports(commands: list[Command | None]) -> list[StoreReport]:
    """The reports among them."""
    return [command for command in commands if isinstance(command, StoreReport)]

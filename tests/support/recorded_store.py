"""The data set of the recorded answers of PuppetDB, as commands in their order."""

from __future__ import annotations

import json
from pathlib import Path

from store.commands.commands import ReceivedCommand
from store.commands.payloads import parse_payload
from store.timestamps import parse_timestamp

RECORDED = Path(__file__).parents[1] / "conformance" / "puppetdb"

RECEIVED = parse_timestamp("2026-11-22T13:04:45.010Z")
"""When the first command was received; each one comes a second after the one before."""


def recorded_commands() -> list[ReceivedCommand]:
    """Return the commands of the data set; stale ones and duplicates are among them."""
    commands = []
    for number, entry in enumerate(json.loads((RECORDED / "dataset.json").read_text())):
        received = RECEIVED + number * 1_000_000
        command = parse_payload(entry["command"], entry["version"], json.dumps(entry["payload"]).encode(), received)
        if command is not None:
            commands.append(ReceivedCommand(command, received))
    return commands

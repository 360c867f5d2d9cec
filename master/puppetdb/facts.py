"""A node's facts as a PuppetDB gets them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shared.data import plainjson
from shared.models.facts import Facts

from .commands import PuppetDbCommand, wire_time

NAME, VERSION = "replace facts", 5
INVENTORY = "_puppet_inventory_1"
"""The fact whose packages a PuppetDB keeps apart from the facts."""


def facts_command(facts: Facts, trusted: Mapping[str, Any], environment: str, producer: str, when: datetime) -> PuppetDbCommand:
    """
    Return the command that replaces a node's facts. Blocks for as long as it takes to write them: call it in a thread.

    Args:
        trusted: `$trusted` of the node, which is stored among its facts.
        environment: The one that the node asked for.
        producer: The master's certname.
    """
    rest: dict[str, Any] = {"environment": environment, "producer_timestamp": wire_time(when), "producer": producer}
    known = {name: value for name, value in facts.values.items() if name != INVENTORY}
    values = plainjson.dumps_pson({**known, "trusted": trusted})
    inventory = facts.values.get(INVENTORY)
    if inventory is not None:
        rest["package_inventory"] = inventory.get("packages") if isinstance(inventory, Mapping) else None
    head = plainjson.dumps({"certname": facts.name})
    payload = head[:-1] + b',"values":' + values + b"," + plainjson.dumps(rest)[1:]
    return PuppetDbCommand.create(NAME, VERSION, facts.name, payload, when)

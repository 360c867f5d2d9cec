"""The jobs that the pool of compiling processes takes, and the log entries that come back: plain data, sent over a pipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from shared.models.facts import Facts, permitted_facts
from shared.models.node import Node
from shared.wire.packed import LayeredValues, PackedValues


@dataclass(frozen=True, slots=True)
class CompileJob:
    """
    Everything that a compile depends on besides the environment's files, as plain data for a worker process.

    Attributes:
        code_id: The version of the code, when the listening process knows it; None: the worker reads it beside the code.
        pin: The version of the environment, when it is a link; '': the worker looks where it leads to.
        exported: Whether exported resources stay in the catalog; agents get it without them.
        is_stored: Whether a PuppetDB gets the catalog, too.
    """

    certname: str
    environment: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    classes: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    trusted: Mapping[str, Any] = field(default_factory=dict)
    server_facts: Mapping[str, Any] = field(default_factory=dict)
    code_id: str | None = None
    pin: str = ""
    exported: bool = False
    is_stored: bool = False

    @classmethod
    def of(
        cls,
        certname: str,
        node: Node,
        environment: str,
        facts: Facts | None,
        trusted: Mapping[str, Any],
        server_facts: Mapping[str, Any],
        *,
        code_id: str | None,
        pin: str = "",
        exported: bool = False,
        is_stored: bool = False,
        packs: bool = False,
    ) -> CompileJob:
        """
        Return the job for a node that has its facts among its parameters.

        Args:
            server_facts: They lack the environment's name.
            packs: Whether facts that are JSON already may stay so: for a job that goes to another process.
        """
        values, parameters = permitted_facts(facts), cast(Mapping[str, Any], node.parameters)
        if packs and facts is not None and (layers := node.layers) is not None and layers.facts == facts.exact_values():
            values = packed = PackedValues(layers.facts)
            parameters = LayeredValues(layers.own, packed)
        return cls(
            certname=certname,
            environment=environment,
            facts=values,
            parameters=parameters,
            classes=node.class_parameters(),
            trusted=trusted,
            server_facts=server_facts,
            code_id=code_id,
            pin=pin,
            exported=exported,
            is_stored=is_stored,
        )


@dataclass(frozen=True, slots=True)
class CompileLogEntry:
    """A log entry of a compile; `message` ends with its file and line, if it has them."""

    level: str
    message: str
    source: str
    file: str | None
    line: int | None
    time: datetime


@dataclass(frozen=True, slots=True)
class DefinitionsQuery:
    """A query for an environment's definitions: the one called `name`, or else those that match `pattern` and `kind` ('': any)."""

    environment: str
    name: str = ""
    pattern: str = "*"
    kind: str = ""

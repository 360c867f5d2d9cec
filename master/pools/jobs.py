"""The jobs that the pool of compiling processes takes, and the log entries that come back: plain data, sent over a pipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from operator import eq
from typing import Any

from shared.models.facts import Facts, permitted_facts
from shared.models.node import Node


@dataclass(frozen=True, slots=True)
class CompileJob:
    """
    All inputs of a compile other than the environment's files, as plain data for a worker process.

    Attributes:
        code_id: The version of the code, when the listening process knows it; None: the worker reads it from the code's folder.
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
    ) -> CompileJob:
        """
        Return the job for a node that has its facts among its parameters.

        Args:
            server_facts: They lack the environment's name.
        """
        return cls(
            certname=certname,
            environment=environment,
            facts=permitted_facts(facts),
            parameters=node.parameters,
            classes=node.class_parameters(),
            trusted=trusted,
            server_facts=server_facts,
            code_id=code_id,
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


def message_of(job: CompileJob | DefinitionsQuery) -> dict[str, Any]:
    """Return the fields of a job, with its facts once; `asdict` would copy all of them first."""
    message = {field.name: getattr(job, field.name) for field in fields(job)}
    if isinstance(job, CompileJob) and (own_parameters := _above(job.facts, job.parameters)) is not None:
        message |= {"parameters": own_parameters, "layered": True}
    return message


def _above(facts: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any] | None:
    """
    Return the values that turn `facts` into `parameters`, in the same order, when merged over them; None when there are none that do.

    Node.merged hands on the very values of the facts, so that they need not be compared.
    """
    if len(parameters) < len(facts) or not all(map(eq, parameters, facts)):
        return None
    return {name: value for name, value in parameters.items() if name not in facts or facts[name] is not value}

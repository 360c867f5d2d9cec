"""
The contents of commands, independent of the submitted version.

A payload of any version becomes one of these; their writer sees no other form. Times are microseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias

from ..jsontext import Json as Json

ResourceName: TypeAlias = tuple[str, str]
"""The type and the title of a resource."""

Relationship = Literal["contains", "before", "required-by", "notifies", "subscription-of"]
"""In the order of their numbers in the database."""


@dataclass(frozen=True, slots=True)
class ReplaceFacts:
    """The facts of a node. `packages` are distinct triples of name, version and provider, sorted; empty where none were sent."""

    certname: str
    environment: str | None
    producer: str | None
    producer_timestamp: int
    values: Mapping[str, Json]
    packages: tuple[tuple[str, str, str], ...] = ()


class ResourceEntry(NamedTuple):
    """
    A resource of a catalog. `tags` are distinct and sorted; `parameters` hold no sensitive values, for their sender has removed them.

    `sealed` are the true values of such parameters of an exported resource, which only masters can open; no query sees them.
    """

    type: str
    title: str
    exported: bool
    tags: tuple[str, ...]
    parameters: Mapping[str, Json]
    file: str | None = None
    line: int | None = None
    sealed: Mapping[str, Json] | None = None


class EdgeEntry(NamedTuple):
    """An edge between two resources of the same catalog."""

    source: ResourceName
    target: ResourceName
    relationship: Relationship


@dataclass(frozen=True, slots=True)
class ReplaceCatalog:
    """
    The catalog of a node. No two resources share type and title; the ends of every edge are among the resources; edges are distinct.

    `hash` is its `catalog_hash` where that is known already, `size` the bytes of its payload as JSON where it came as one.
    """

    certname: str
    version: str
    environment: str | None
    producer: str | None
    producer_timestamp: int
    transaction_uuid: str | None
    catalog_uuid: str | None
    code_id: str | None
    job_id: str | None
    resources: Sequence[ResourceEntry]
    edges: Sequence[EdgeEntry]
    hash: str | None = None
    size: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ReplaceCatalogInputs:
    """The inputs of a node's catalog. `inputs` are distinct pairs of a type and a name, sorted, and never empty."""

    certname: str
    producer_timestamp: int
    catalog_uuid: str
    inputs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ReportEvent:
    """An event of a resource in a run: reported by the agent, or the resource was skipped."""

    status: str
    timestamp: int
    resource_type: str
    resource_title: str
    property: str | None
    name: str | None
    new_value: Json
    old_value: Json
    message: str | None
    file: str | None
    line: int | None
    containment_path: tuple[str, ...] | None
    corrective_change: bool | None


def containing_class(event: ReportEvent) -> str | None:
    """Return the innermost class or define that contains the resource of an event; None where nothing does."""
    return next((name for name in reversed(event.containment_path or ()) if "[" not in name), None)


@dataclass(frozen=True, slots=True)
class StoreReport:
    """The report of a run. `events` are distinct. `logs` and `metrics` are lists of objects in the form of the command's newest version."""

    certname: str
    environment: str | None
    producer: str | None
    producer_timestamp: int
    type: str
    puppet_version: str
    report_format: int
    configuration_version: str
    start_time: int
    end_time: int
    status: str | None
    noop: bool | None
    noop_pending: bool | None
    corrective_change: bool | None
    transaction_uuid: str | None
    catalog_uuid: str | None
    code_id: str | None
    job_id: str | None
    cached_catalog_status: str | None
    events: Sequence[ReportEvent]
    logs: list[Json] | None
    metrics: list[Json] | None


@dataclass(frozen=True, slots=True)
class DeactivateNode:
    """A node to deactivate as of the producer's time."""

    certname: str
    producer_timestamp: int


@dataclass(frozen=True, slots=True)
class ConfigureExpiration:
    """The setting whether a node expires when it sends no more data."""

    certname: str
    producer_timestamp: int
    expires_facts: bool


Command: TypeAlias = ReplaceFacts | ReplaceCatalog | ReplaceCatalogInputs | StoreReport | DeactivateNode | ConfigureExpiration


@dataclass(frozen=True, slots=True)
class ReceivedCommand:
    """A command and the time at which it was accepted."""

    command: Command
    received: int


class CommandWriter(Protocol):
    """The interface that writes commands into the database."""

    async def write(self, commands: Sequence[ReceivedCommand]) -> None:
        """
        Carry out the commands in their order, all of them or none.

        Stale or already stored data change nothing and are not an error. DatabaseUnavailable means that a later attempt may succeed;
        any other error is a fault of one of the commands, and the caller finds out which by trying them one by one.

        Unfinished says that one of the commands is too large for one transaction. Given alone, again and again, it is carried out in parts,
        of which nobody sees anything before the last one. Commands of other nodes may be given in between.
        """
        ...


class DatabaseUnavailable(Exception):
    """The database cannot be reached, has no space left, is locked or ended the transaction: the same commands may be tried again."""


class Unfinished(Exception):
    """A command is too large for one transaction; a part of it has been written, or it must be passed alone."""


MAX_KEY = 16_384
"""Characters of a text by which rows are found. SQLite reads a long one whole at each comparison, and PostgreSQL refuses most of them."""


class PayloadRejected(Exception):
    """A command's payload is invalid for its version; repeating the command is useless. The text names the fault."""

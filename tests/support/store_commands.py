"""Small commands for tests of the store; what a test does not name is of no importance to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from store.commands.commands import (
    Command,
    EdgeEntry,
    Json,
    ReceivedCommand,
    ReplaceCatalog,
    ReplaceCatalogInputs,
    ReplaceFacts,
    ReportEvent,
    ResourceEntry,
    StoreReport,
)

NODE = "web1.example.com"


def received(*commands: Command) -> list[ReceivedCommand]:
    """Return commands as they are received, one microsecond after the other."""
    return [ReceivedCommand(command, 1000 + number) for number, command in enumerate(commands)]


def facts_command(
    at: int,
    values: Mapping[str, Json],
    *,
    node: str = NODE,
    environment: str | None = "production",
    packages: tuple[tuple[str, str, str], ...] = (),
) -> ReplaceFacts:
    """Return the facts of a node."""
    return ReplaceFacts(node, environment, "master1", at, values, packages)


def catalog_command(
    at: int,
    parameters: Mapping[str, Mapping[str, Json]],
    *,
    node: str = NODE,
    environment: str | None = "production",
    edges: Sequence[tuple[str, str]] = (),
) -> ReplaceCatalog:
    """Return a catalog of `File`s by their titles, with edges between these."""
    return ReplaceCatalog(
        certname=node,
        version=str(at),
        environment=environment,
        producer="master1",
        producer_timestamp=at,
        transaction_uuid=f"t{at}",
        catalog_uuid=f"c{at}",
        code_id=None,
        job_id=None,
        resources=[
            ResourceEntry("File", title, False, ("file", title.lower()), members, "/code/site.pp", 1)
            for title, members in parameters.items()
        ],
        edges=[EdgeEntry(("File", source), ("File", target), "before") for source, target in edges],
    )


def inputs_command(at: int, *names: str, node: str = NODE) -> ReplaceCatalogInputs:
    """Return what a catalog was compiled from."""
    return ReplaceCatalogInputs(node, at, f"c{at}", tuple(("hiera", name) for name in sorted(names)))


def report_command(
    at: int, *titles: str, node: str = NODE, type: str = "agent", status: str = "changed", environment: str | None = "production"
) -> StoreReport:
    """Return a report of a run that changed the files of these titles."""
    return StoreReport(
        certname=node,
        environment=environment,
        producer="master1",
        producer_timestamp=at,
        type=type,
        puppet_version="8.4.0",
        report_format=12,
        configuration_version=str(at),
        start_time=at,
        end_time=at + 5,
        status=status,
        noop=False,
        noop_pending=None,
        corrective_change=None,
        transaction_uuid=f"t{at}",
        catalog_uuid=f"c{at}",
        code_id=None,
        job_id=None,
        cached_catalog_status="not_used",
        events=[
            ReportEvent(
                status="success",
                timestamp=at,
                resource_type="File",
                resource_title=title,
                property="content",
                name="content_changed",
                new_value="new",
                old_value=None,
                message=None,
                file=None,
                line=None,
                containment_path=("Stage[main]", "App", f"File[{title}]"),
                corrective_change=None,
            )
            for title in titles
        ],
        logs=[{"level": "notice", "message": "done"}],
        metrics=None,
    )

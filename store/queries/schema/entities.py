"""The entities that can be queried, with their fields."""

from __future__ import annotations

from dataclasses import dataclass

from .fields import Field, Kind, MemberLink

_ROOT = "/pdb/query/v4"


@dataclass(frozen=True, slots=True)
class Entity:
    """
    A kind of rows that queries can ask for, such as `nodes` or `facts`.

    `is_active_only` and `is_active_only_at_root` say whether rows of inactive nodes are left out unless a query mentions the state of
    nodes: at the endpoint of the entity, and where the query begins with `from`.
    """

    name: str
    fields: tuple[Field, ...]
    is_active_only: bool = False
    is_active_only_at_root: bool = True
    order: tuple[str, ...] = ()
    """The fields that its rows are sorted by where a query does not say so."""
    has_node: bool = True
    """True: each row belongs to a node."""
    has_report_type: bool = False
    """True: only agents' reports are shown unless a query mentions the type."""

    def field(self, name: str) -> Field | None:
        """Return the field of that name, or None."""
        return next((field for field in self.fields if field.name == name), None)

    def queryable(self) -> list[str]:
        """Return the names of the fields that criteria may name, sorted."""
        return sorted(field.name for field in self.fields if field.is_queryable)

    def projectable(self) -> list[str]:
        """Return the names of the fields that a row has, in order."""
        return [field.name for field in self.fields if field.is_projectable]


def _texts(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name) for name in names)


def _times(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, Kind.TIME) for name in names)


def _booleans(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, Kind.BOOLEAN) for name in names)


def _certain(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, is_nullable=False) for name in names)


def _member(name: str, kind: Kind, collection: str, key: str, segment: str | None = None, *, is_queryable: bool = False) -> Field:
    return Field(name, kind, is_queryable=is_queryable, link=MemberLink(f"{_ROOT}/{collection}/{{}}/{segment or name}", key))


_LATEST_REPORT = Field("latest_report?", Kind.LATEST_REPORT, is_projectable=False)

EXPIRATION_FIELDS = (Field("expires_facts", Kind.BOOLEAN), Field("expires_facts_updated", Kind.TIME))
"""The fields that nodes have in addition when a query parameter requests them."""

_ENTITIES = (
    Entity(
        "nodes",
        (
            *_certain("certname"),
            Field("deactivated", Kind.STATE_TIME),
            Field("expired", Kind.STATE_TIME),
            *_times("catalog_timestamp", "facts_timestamp", "report_timestamp"),
            *_texts("catalog_environment", "facts_environment", "report_environment"),
            *_texts("latest_report_status", "latest_report_hash", "latest_report_job_id", "cached_catalog_status"),
            *_booleans("latest_report_noop", "latest_report_noop_pending", "latest_report_corrective_change"),
        ),
        is_active_only=True,
    ),
    Entity("facts", (*_certain("certname", "name"), *_texts("environment"), Field("value", Kind.JSON)), is_active_only=True),
    Entity("fact_names", _certain("name"), is_active_only_at_root=False, order=("name",), has_node=False),
    Entity(
        "fact_paths",
        (
            Field("path", Kind.PATH, is_nullable=False),
            *_certain("name", "type"),
            Field("depth", Kind.INTEGER, is_projectable=False, is_nullable=False),
        ),
        is_active_only_at_root=False,
        has_node=False,
    ),
    Entity(
        "fact_contents",
        (
            *_certain("certname", "name"),
            *_texts("environment"),
            Field("path", Kind.PATH, is_nullable=False),
            Field("value", Kind.JSON),
        ),
        is_active_only=True,
    ),
    Entity(
        "factsets",
        (
            *_certain("certname"),
            *_times("timestamp", "producer_timestamp"),
            *_texts("producer", "environment", "hash"),
            _member("facts", Kind.DOCUMENT, "factsets", "certname", is_queryable=True),
        ),
        is_active_only=True,
    ),
    Entity(
        "inventory",
        (
            *_certain("certname"),
            *_times("timestamp"),
            *_texts("environment"),
            Field("facts", Kind.DOCUMENT, has_dotted=True),
            Field("trusted", Kind.DOCUMENT, has_dotted=True),
        ),
        is_active_only=True,
    ),
    Entity(
        "catalogs",
        (
            *_certain("certname"),
            *_texts("version", "environment", "transaction_uuid", "catalog_uuid", "code_id", "job_id"),
            *_times("producer_timestamp"),
            *_texts("producer", "hash"),
            _member("resources", Kind.ROWS, "catalogs", "certname"),
            _member("edges", Kind.ROWS, "catalogs", "certname"),
        ),
    ),
    Entity(
        "catalog_inputs",
        (*_certain("certname"), *_times("producer_timestamp"), *_texts("catalog_uuid"), Field("inputs", Kind.SERIALIZED)),
        is_active_only=True,
    ),
    Entity(
        "catalog_input_contents",
        (*_certain("certname"), *_times("producer_timestamp"), *_texts("catalog_uuid"), *_certain("type", "name")),
        is_active_only=True,
    ),
    Entity(
        "resources",
        (
            *_certain("certname"),
            *_texts("environment", "resource"),
            *_certain("type", "title"),
            Field("tags", Kind.LIST),
            Field("tag", Kind.TAG, is_projectable=False),
            Field("exported", Kind.BOOLEAN),
            *_texts("file"),
            Field("line", Kind.INTEGER),
            Field("parameters", Kind.DOCUMENT, has_dotted=True),
        ),
        is_active_only=True,
    ),
    Entity(
        "edges",
        _certain("certname", "relationship", "source_type", "source_title", "target_type", "target_title"),
        is_active_only=True,
    ),
    Entity(
        "reports",
        (
            *_certain("hash", "certname", "type", "puppet_version"),
            Field("report_format", Kind.INTEGER),
            *_texts("configuration_version"),
            *_times("start_time", "end_time", "producer_timestamp", "receive_time"),
            *_texts("producer", "environment", "status"),
            *_booleans("noop", "noop_pending", "corrective_change"),
            *_texts("transaction_uuid", "catalog_uuid", "code_id", "job_id", "cached_catalog_status"),
            _member("logs", Kind.PACKED, "reports", "hash"),
            _member("metrics", Kind.PACKED, "reports", "hash"),
            _member("resource_events", Kind.ROWS, "reports", "hash", "events"),
            _LATEST_REPORT,
        ),
        has_report_type=True,
    ),
    Entity(
        "events",
        (
            *_certain("certname", "report", "status"),
            *_times("timestamp", "run_start_time", "run_end_time", "report_receive_time"),
            *_texts("configuration_version", "environment"),
            *_certain("resource_type", "resource_title"),
            *_texts("property", "name"),
            Field("old_value", Kind.SERIALIZED),
            Field("new_value", Kind.SERIALIZED),
            *_texts("message", "file"),
            Field("line", Kind.INTEGER),
            Field("containment_path", Kind.LIST),
            *_texts("containing_class"),
            *_booleans("corrective_change"),
            _LATEST_REPORT,
        ),
    ),
    Entity("environments", _certain("name"), is_active_only_at_root=False, has_node=False),
    Entity("producers", _certain("name"), is_active_only_at_root=False, has_node=False),
    Entity("packages", _certain("package_name", "version", "provider"), is_active_only_at_root=False, has_node=False),
    Entity("package_inventory", _certain("certname", "package_name", "version", "provider"), is_active_only=True),
)

ENTITIES = {entity.name: entity for entity in _ENTITIES}
"""All entities, by the name that stands after `from`."""

NODES_WITH_EXPIRATION = Entity("nodes", (*ENTITIES["nodes"].fields, *EXPIRATION_FIELDS), is_active_only=True)

"""The settings of a store that runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

from httpd.limits import ServerLimits

from ..jsontext import Json


@dataclass(frozen=True, slots=True)
class CheckedSettings:
    """
    The settings that a store reads, with their names, units and documentation.

    The class MasterSettings has checked them in the process that started the store, which does not load it.

    Attributes:
        limits: Those of its listeners.
    """

    ca: bool
    cadir: Path
    certname: str
    color: str
    daemonize: bool
    debug: bool
    dns_alt_names: tuple[str, ...]
    drain_timeout: float
    hostcert: Path
    hostcrl: Path
    hostprivkey: Path
    localcacert: Path
    log_level: str
    log_queue: int
    logdest: str
    max_request_body: int
    max_retry_delay: int
    store: str
    store_active_requests: int
    store_allowlist: str
    store_bindaddress: str
    store_dir: Path
    store_event_ttl: float
    store_gc_interval: float
    store_max_archive: int
    store_max_command: int
    store_max_query: int
    store_niceness: int
    store_node_purge_batch: int
    store_node_purge_ttl: float
    store_node_ttl: float
    store_plain_bindaddress: str
    store_plain_port: int
    store_port: int
    store_query_rows: int
    store_query_timeout: float
    store_queue_bytes: int
    store_queue_commands: int
    store_queued_requests: int
    store_readers: int
    store_report_ttl: float
    store_socket: Path
    store_writers: int
    syslogfacility: str
    trusted_oid_mapping_file: Path
    verbose: bool
    limits: ServerLimits

    @classmethod
    def of(cls, settings: Mapping[str, Json]) -> Self:
        """Return those among the settings of a master, as its class writes them as JSON."""
        values: dict[str, Any] = {field.name: settings[field.name] for field in fields(cls) if field.name != "limits"}
        values |= {field.name: Path(values[field.name]) for field in fields(cls) if field.type == "Path"}
        return cls(**values, limits=ServerLimits.of(SimpleNamespace(**settings)))

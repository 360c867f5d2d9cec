"""The settings of the store of facts, catalogs and reports."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from .common import CommonSettings
from .declarations import ValueReader, setting
from .values import Duration, Size

_KINDS = ("auto", "none", "sqlite", "puppetdb")
SERVING_DEFAULTS = {"store": "auto"}
"""The defaults of a master that serves; what only looks at its settings starts no store."""

_OTHER_PLACES = {"catalog_terminus": "compiler", "catalog_cache_terminus": "", "storeconfigs": "false"}  # unless they have these values
_DATABASE = re.compile(r"(sqlite:///|postgresql://)\S+")


def store_kind(value: Any) -> str:
    """Return a kind of store, or the address of a database; ValueError for anything else."""
    text = str(value).strip()
    if text not in _KINDS and not _DATABASE.fullmatch(text):
        raise ValueError(f"Invalid store '{text}'; write {', '.join(_KINDS)}, or postgresql://USER@HOST/DATABASE")
    return text


StoreKind = Annotated[str, ValueReader(store_kind)]


def state_place(value: Any) -> str:
    """Return `files`, or the address of a PostgreSQL database; ValueError for anything else."""
    text = str(value).strip()
    if text != "files" and not re.fullmatch(r"postgresql://\S+", text):
        raise ValueError(f"Invalid state '{text}'; write files, or postgresql://USER@HOST/DATABASE")
    return text


StatePlace = Annotated[str, ValueReader(state_place)]


class StoreSettings(CommonSettings):
    """The settings of the store: where facts, catalogs and reports are stored for queries, access, and limits."""

    store: StoreKind = setting(
        "none",
        secret=True,
        doc="Where facts, catalogs and reports are stored for queries: none; sqlite, in a process of the master; a database as "
        "postgresql://USER@HOST/DATABASE, which several masters may share; or puppetdb, a server that puppetdb.conf names. auto, the "
        "default of a running master: sqlite, but none where puppet.conf, puppetdb.conf or routes.yaml say already where these things go.",
    )
    store_dir: Path = setting("$vardir/store", doc="The directory of the store's SQLite database and pending commands.")
    store_socket: Path = setting("$rundir/store.sock", doc="The Unix socket of the store, for its own user only.")
    store_pidfile: Path = setting("$rundir/store.pid", doc="The process number of a store that runs by itself.")
    store_bindaddress: str = setting("$bindaddress", doc="The address that the store listens on over TLS.")
    store_port: int = setting(
        0, ge=0, le=65535, doc="The port of the store over TLS, 8081 by custom; 0: none, but 8081 for a store that runs by itself."
    )
    store_plain_bindaddress: str = setting("127.0.0.1", doc="The address that the store listens on without TLS.")
    store_plain_port: int = setting(
        0,
        ge=0,
        le=65535,
        doc="The port of the store without TLS, 8080 by custom; every client that reaches it may read and change everything. 0: none.",
    )
    store_allowlist: str = setting(
        "",
        doc="A file that lists the only certnames that may use the store over TLS, one per line; '': all certificates may query, "
        "and this host's own may change data.",
    )

    store_node_ttl: Duration = setting("7d", ge=0, doc="Seconds without news after which a node expires; 0: never.")
    store_node_purge_ttl: Duration = setting("14d", ge=0, doc="Seconds after which an expired or deactivated node is removed; 0: never.")
    store_node_purge_batch: int = setting(25, gt=0, doc="Nodes that are removed in one round.")
    store_report_ttl: Duration = setting("14d", gt=0, doc="Seconds before reports are removed; whole days are removed at once.")
    store_event_ttl: Duration = setting("$store_report_ttl", gt=0, doc="Seconds before the events of reports are removed.")
    store_gc_interval: Duration = setting("60m", ge=0, doc="Seconds between two removals of expired data; 0: never.")

    store_query_timeout: Duration = setting("10m", gt=0, doc="Seconds of a query.")
    store_query_rows: int = setting(0, ge=0, doc="Rows of the answer to a query; 0: any number.")
    store_max_query: Size = setting("16MiB", gt=0, doc="Bytes of a query that is posted.")
    store_max_command: Size = setting("128MiB", gt=0, doc="Bytes of a command, unpacked.")
    store_max_archive: Size = setting("16GiB", gt=0, doc="Bytes of an archive that is imported, packed.")
    store_queue_commands: int = setting(50_000, gt=0, doc="The most pending commands; further ones get 503 with Retry-After.")
    store_niceness: int = setting(
        10, ge=0, le=19, doc="How much the store in a master's service gives way to its other processes, when all are busy: see nice(1)."
    )
    store_undelivered_commands: int = setting(
        1000, gt=0, doc="The most commands of a master pending for its store; beyond that requests of agents wait."
    )
    store_queue_bytes: Size = setting("1GiB", gt=0, doc="The most bytes of all pending commands.")
    store_active_requests: int = setting(64, gt=0, doc="Commands that are received at the same time, and as many queries.")
    store_queued_requests: int = setting(1000, gt=0, doc="The most pending requests to the store; further ones get 503 with Retry-After.")
    store_readers: int = setting(4, gt=0, le=100, doc="Connections to the database for queries.")
    store_writers: int = setting(2, gt=0, le=100, doc="Connections to the database for commands; SQLite has one.")

    @property
    def runs_store(self) -> bool:
        """True if a master with these settings runs a store of its own."""
        return self.store not in ("none", "puppetdb")

    @property
    def export_keys(self) -> str:
        """The file of the keys that seal exported secrets, in a folder that manifests cannot read; '' without a store of its own."""
        return str(self.privatekeydir / "exported.key") if self.runs_store else ""

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the texts, with the store that `auto` selects."""
        if values.get("store") != "auto":
            return values
        return {**values, "store": "none" if other_place(values) else "sqlite"}


def other_place(values: Mapping[str, Any]) -> str:
    """
    Return the setting, or the path of the file, with which a site configures the place of these data, as for Puppet; '' when there is none.

    Then a default changes nothing.
    """
    for name, usual in _OTHER_PLACES.items():
        if str(values.get(name, usual)).strip().lower() != usual:
            return name
    if "puppetdb" in str(values.get("reports", "")):
        return "reports"
    files = (values.get("route_file"), Path(values["confdir"]) / "puppetdb.conf" if "confdir" in values else None)
    return next((str(file) for file in files if file is not None and Path(file).exists()), "")

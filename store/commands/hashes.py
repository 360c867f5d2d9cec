"""
The hashes of stored data: SHA-1 of compact JSON with sorted keys, as PuppetDB computes them.

A hash identifies equal data; it has no security purpose.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from operator import itemgetter

from ..jsontext import dump_json
from ..timestamps import format_timestamp
from .commands import Json, ReplaceCatalog, StoreReport

_TYPE_AND_TITLE = itemgetter(0, 1)


def json_hash(value: object) -> str:
    """Return the hash of a value as JSON."""
    return hashlib.sha1(dump_json(value), usedforsecurity=False).hexdigest()


def report_hash(report: StoreReport) -> str:
    """Return the identity of a report: what is stored once, however often it is sent."""
    return json_hash(
        {
            "certname": report.certname,
            "puppet_version": report.puppet_version,
            "report_format": report.report_format,
            "configuration_version": report.configuration_version,
            "start_time": format_timestamp(report.start_time),
            "end_time": format_timestamp(report.end_time),
            "producer_timestamp": format_timestamp(report.producer_timestamp),
            "transaction_uuid": report.transaction_uuid,
        }
    )


def resource_hash(type_name: str, title: str, parameters: Mapping[str, Json], sealed: Mapping[str, Json] | None = None) -> str:
    """Return the identity of a resource and its parameters, the same in every catalog; `sealed` ones are of one node."""
    return json_hash([type_name, title, parameters, sealed] if sealed else [type_name, title, parameters])


def factset_hash(certname: str, environment: str | None, values: Mapping[str, Json], packages: Iterable[tuple[str, str, str]] = ()) -> str:
    """Return the identity of a node's facts; `packages` are sorted."""
    content: dict[str, object] = {"certname": certname, "environment": environment, "values": values}
    if inventory := list(packages):
        content["package_inventory"] = inventory
    return json_hash(content)


def catalog_hash(catalog: ReplaceCatalog) -> str:
    """
    Return the hash of a catalog's content: its resources and edges, in any order, without its version and times.

    PuppetDB's own value depends on the order of the JVM's sets, so that it cannot be reproduced; ours serves for comparisons as well.
    """
    # orjson writes plain tuples only. Type and title say which resource it is.
    resources = sorted((tuple(each if each.sealed else each[:-1]) for each in catalog.resources), key=_TYPE_AND_TITLE)
    return json_hash([catalog.certname, resources, sorted(map(tuple, catalog.edges))])

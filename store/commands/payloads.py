"""Makes commands of payloads, whichever version of a command was sent."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Literal

from shared.errors import PuppetError
from shared.wire.packed_catalogs import PackedCatalog

from ..jsontext import load_json
from .catalog_payloads import parse_catalog, read_catalog, read_packed
from .checked_catalogs import CheckedCatalogs
from .commands import (
    Command,
    ConfigureExpiration,
    DeactivateNode,
    Json,
    PayloadRejected,
    ReplaceCatalog,
    ReplaceCatalogInputs,
    ReplaceFacts,
)
from .fields import Fields
from .report_payloads import parse_report

Coding = Literal["identity", "gzip", "packed"]
"""The coding of a payload's bytes; `packed` is a packed catalog, as a master sends it to its own store."""

PACKED_COMMAND = "replace catalog"
"""The command whose payload may be packed."""

VERSIONS: Mapping[str, range] = {
    "configure expiration": range(1, 2),
    "deactivate node": range(3, 4),
    "replace catalog": range(6, 10),
    "replace catalog inputs": range(1, 2),
    "replace facts": range(4, 6),
    "store report": range(5, 9),
}
"""The commands with the versions of each that are accepted."""

MAX_FACTS = 20_000
"""Facts of a node, at the top level."""

MAX_PACKAGES = 30_000
"""Packages of a node."""

MAX_BYTES: Mapping[str, int] = {"replace facts": 32 * 2**20, "replace catalog inputs": 16 * 2**20, "store report": 32 * 2**20}
"""Bytes of the payloads that SQLite, on which all others wait, stores in one transaction."""

_GZIP = 16 + zlib.MAX_WBITS

_FACTS_4 = frozenset({"certname", "environment", "producer_timestamp", "values"})


def decode_payload(payload: bytes, coding: str, limit: int) -> bytes:
    """Return the JSON text of a payload; raise PayloadRejected when it is longer than `limit` bytes or does not match its coding."""
    if coding == "identity":
        if len(payload) > limit:
            raise PayloadRejected(f"the payload is longer than {limit} bytes")
        return payload
    if coding == "packed":
        try:
            return PackedCatalog.unpack(payload).text(limit)
        except PuppetError as err:
            raise PayloadRejected(err.message) from err
    decoder = zlib.decompressobj(_GZIP)
    try:
        text = decoder.decompress(payload, limit + 1)
    except zlib.error as err:
        raise PayloadRejected(f"the payload is not gzip: {err}") from err
    if len(text) > limit:
        raise PayloadRejected(f"the payload is longer than {limit} bytes")
    if not decoder.eof:
        raise PayloadRejected("the payload's gzip data are truncated")
    return text


def parse_payload(
    command: str, version: int, payload: bytes, received: int, checked_catalogs: CheckedCatalogs | None = None
) -> Command | None:
    """
    Return the content of a payload; None if it has no effect, such as catalog inputs without inputs.

    Args:
        command: The name of the command, its words separated by spaces.
        version: The version of the command.
        payload: The payload, a JSON text.
        received: The time of receipt in microseconds; it stands in for a missing producer_timestamp.
        checked_catalogs: Knows what need not be checked again.
    Raises:
        PayloadRejected: The payload is not what the version of the command says; the text says why.
    """
    if version not in VERSIONS.get(command, ()):
        raise PayloadRejected(f"Unsupported command {command} version {version}")
    if len(payload) > (most := MAX_BYTES.get(command, len(payload))):
        raise PayloadRejected(f"the payload has {len(payload)} bytes; at most {most} are allowed for '{command}'")
    try:
        if command == "replace catalog" and checked_catalogs is not None:
            return read_catalog(payload, version, checked_catalogs)
        value = load_json(payload)
    except ValueError as err:
        raise PayloadRejected(f"the payload is not JSON: {err}") from err
    if command == "replace catalog":
        return parse_catalog(value, version)
    return _PARSERS[command](value, version, received)


def parse_packed(version: int, payload: bytes, limit: int, checked_catalogs: CheckedCatalogs) -> ReplaceCatalog:
    """
    Return the content of a packed catalog, which is parsed now or when its resources are read.

    Args:
        limit: The most bytes of the payload, unpacked.
    Raises:
        PayloadRejected: As by `parse_payload`.
    """
    try:
        return read_packed(PackedCatalog.unpack(payload), version, limit, checked_catalogs)
    except PuppetError as err:
        raise PayloadRejected(err.message) from err
    except ValueError as err:
        raise PayloadRejected(f"the payload is not JSON: {err}") from err


def _parse_facts(value: Json, version: int, _: int) -> ReplaceFacts:
    facts = Fields(value, "the factset")
    if version == 4:
        facts.check_names(_FACTS_4, frozenset())
    else:
        facts.check_names(_FACTS_4 | {"producer"}, frozenset({"package_inventory"}))
    packages = (
        {(name, number, provider) for name, number, provider in facts.tuples("package_inventory", 3)}
        if facts.has("package_inventory")
        else ()
    )
    values = facts.object("values")
    for what, count, most in (("facts", len(values), MAX_FACTS), ("packages", len(packages), MAX_PACKAGES)):
        if count > most:
            raise PayloadRejected(f"the factset has {count} {what}; at most {most} are allowed")
    return ReplaceFacts(
        certname=facts.certname(),
        environment=facts.optional_text("environment"),
        producer=facts.optional_text("producer"),
        producer_timestamp=facts.time("producer_timestamp"),
        values=values,
        packages=tuple(sorted(packages)),
    )


def _producer_timestamp(fields: Fields, received: int) -> int:
    return fields.time("producer_timestamp") if fields.has("producer_timestamp") else received


def _parse_inputs(value: Json, _: int, received: int) -> ReplaceCatalogInputs | None:
    fields = Fields(value, "the catalog inputs")
    certname = fields.certname()
    inputs = {(kind, name) for kind, name in fields.tuples("inputs", 2)} if fields.has("inputs") else ()
    if not inputs:
        return None
    return ReplaceCatalogInputs(
        certname=certname,
        producer_timestamp=_producer_timestamp(fields, received),
        catalog_uuid=fields.text("catalog_uuid"),
        inputs=tuple(sorted(inputs)),
    )


def _parse_deactivation(value: Json, _: int, received: int) -> DeactivateNode:
    fields = Fields(value, "the payload")
    return DeactivateNode(certname=fields.certname(), producer_timestamp=_producer_timestamp(fields, received))


def _parse_expiration(value: Json, _: int, received: int) -> ConfigureExpiration:
    fields = Fields(value, "the payload")
    return ConfigureExpiration(
        certname=fields.certname(),
        producer_timestamp=_producer_timestamp(fields, received),
        expires_facts=Fields(fields.object("expire"), "expire").boolean("facts"),
    )


_PARSERS: Mapping[str, Callable[[Json, int, int], Command | None]] = {
    "configure expiration": _parse_expiration,
    "deactivate node": _parse_deactivation,
    "replace catalog inputs": _parse_inputs,
    "replace facts": _parse_facts,
    "store report": parse_report,
}

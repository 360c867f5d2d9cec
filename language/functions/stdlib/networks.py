"""Addresses and interfaces: enclose_ipv6, stdlib::ip_in_range, has_interface_with and its kin."""

from __future__ import annotations

import ipaddress
from typing import TypeAlias

from shared.errors import EvaluationError

from ...types.notation.operands import flatten_arrays
from ...values.core import Value
from ...values.labels import ruby_class
from ..api import Context, function, legacy_function

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def parse_network(text: str) -> Network:
    """Return the network of an address with or without a mask; raise ValueError for any other text."""
    address = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    return ipaddress.ip_network(address, strict=False)


@legacy_function("enclose_ipv6", -1)
def enclose_ipv6(context: Context, *arguments: Value) -> list[str]:
    """Return addresses without repetitions, those of IPv6 in brackets; '*' stays as it is."""
    if len(arguments) != 1:
        raise EvaluationError(f"enclose_ipv6(): Wrong number of arguments given {len(arguments)} for 1")
    value = arguments[0]
    if not isinstance(value, str | list):
        raise EvaluationError(f"enclose_ipv6(): Wrong argument type given {ruby_class(value)} expected String or Array")
    addresses: dict[str, None] = {}
    for text in flatten_arrays([value]):
        if text is None:
            continue
        if not isinstance(text, str):
            raise EvaluationError(f"enclose_ipv6(): Wrong argument given {text} is not an ip address.")
        if text == "*":
            addresses[text] = None
            continue
        try:
            address = parse_network(text)
        except ValueError as error:
            raise EvaluationError(f"enclose_ipv6(): Wrong argument given {text} is not an ip address.") from error
        addresses[text if address.version == 4 else f"[{address.network_address}]"] = None
    return list(addresses)


@function("stdlib::ip_in_range", "String ipaddress", "Variant[String, Array] range", returns="Boolean")
def ip_in_range(context: Context, address: str, range_: Value) -> bool:
    """Return whether an address is in a network, or in one of several."""
    inner = _require_network(address)
    networks = [_require_network(outer) for outer in (range_ if isinstance(range_, list) else [range_])]
    return any(
        inner.version == outer.version
        and int(outer.network_address) <= int(inner.network_address)
        and int(inner.broadcast_address) <= int(outer.broadcast_address)
        for outer in networks
    )


def _require_network(text: Value) -> Network:
    try:
        if isinstance(text, str):
            return parse_network(text)
    except ValueError as error:
        raise EvaluationError(f"invalid address: {text}") from error
    raise EvaluationError(f"invalid address: {text}")


# --- interfaces ---------------------------------------------------------------------------------------------------


def _interfaces(context: Context) -> dict[str, Value]:
    networking = context.fact("networking")
    interfaces = networking.get("interfaces") if isinstance(networking, dict) else None
    return interfaces if isinstance(interfaces, dict) else {}


def _has_interface(context: Context, kind: str, value: str) -> bool:
    return any(isinstance(interface, dict) and interface.get(kind) == value for interface in _interfaces(context).values())


@function("stdlib::has_interface_with", "String[1] interface", returns="Boolean")
def has_interface_with(context: Context, interface: str) -> bool:
    """Return whether the node has an interface of that name, or one with this address, MAC address, netmask or network."""
    return interface in _interfaces(context)


@has_interface_with.also("Enum['macaddress','netmask','ipaddress','network','ip','mac'] kind", "String[1] value", returns="Boolean")
def has_interface_with_value(context: Context, kind: str, value: str) -> bool:
    return _has_interface(context, {"ipaddress": "ip", "macaddress": "mac"}.get(kind, kind), value)


@function("stdlib::has_ip_address", "String[1] ip_address", returns="Boolean")
def has_ip_address(context: Context, ip_address: str) -> bool:
    """Return whether the node has this address on some interface."""
    return _has_interface(context, "ip", ip_address)


@function("stdlib::has_ip_network", "String[1] ip_network", returns="Boolean")
def has_ip_network(context: Context, ip_network: str) -> bool:
    """Return whether the node has an interface in this network."""
    return _has_interface(context, "network", ip_network)

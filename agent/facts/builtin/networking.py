"""The fact networking: names, interfaces, and the addresses of the primary interface."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from ipaddress import ip_interface, ip_network
from typing import Any

from . import netlink
from .host import Host
from .netlink import Address, Link


def parse_names(hostname: str, canonical: str, resolv_conf: str) -> dict[str, str]:
    """
    Return hostname, domain and fqdn.

    `canonical` is the resolver's name of this host; it counts when it begins with the host's name and a dot. Without a domain from either,
    `domain` or the first of `search` in resolv.conf. Source: facts reference 2.3.
    """
    host, _, domain = hostname.partition(".")
    if not domain and canonical.startswith(f"{host}."):
        domain = canonical[len(host) + 1 :]
    if not domain:
        settings = dict(re.findall(r"^\s*(domain|search)\s+(\S+)", resolv_conf, re.M))
        domain = settings.get("domain") or settings.get("search", "")
    domain = domain.strip(".")
    names = {"hostname": host, "fqdn": f"{host}.{domain}" if domain else host}
    return names | ({"domain": domain} if domain else {})


def _binding(address: Address) -> dict[str, Any]:
    interface = ip_interface(f"{address.text}/{address.prefix}")
    binding: dict[str, Any] = {
        "address": address.text,
        "netmask": str(interface.netmask),
        "network": str(interface.network.network_address),
    }
    if address.version == 6:
        binding |= {"scope6": address.scope, "flags": list(address.flags)}
    return binding


_IGNORED = [ip_network(text) for text in ("127.0.0.0/8", "169.254.0.0/16", "::1/128", "fe80::/10")]


def _usable(text: str) -> bool:
    address = ip_interface(text).ip
    return not any(address in network for network in _IGNORED)


def interface_of(link: Link, addresses: Sequence[Address]) -> dict[str, Any]:
    """Return one entry of networking.interfaces. The main binding is the first that is reachable from outside, else the first."""
    interface: dict[str, Any] = {}
    for version, key, suffix in ((4, "bindings", ""), (6, "bindings6", "6")):
        bindings = [_binding(address) for address in addresses if address.version == version]
        if not bindings:
            continue
        main = next((binding for binding in bindings if _usable(binding["address"])), bindings[0])
        interface[key] = bindings
        interface |= {f"ip{suffix}": main["address"], f"netmask{suffix}": main["netmask"], f"network{suffix}": main["network"]}
        if suffix:
            interface["scope6"] = main["scope6"]
    if link.mac:
        interface["mac"] = link.mac
    if link.mtu is not None:
        interface["mtu"] = link.mtu
    return interface


def primary_of(route: str, interfaces: dict[str, dict[str, Any]]) -> str:
    """Return the interface of the default route, else the first with a usable address, else ''."""
    if route in interfaces:
        return route
    usable = (name for name, interface in interfaces.items() if any(key in interface and _usable(interface[key]) for key in ("ip", "ip6")))
    return next(usable, "")


def networking(
    names: dict[str, str], links: Sequence[Link], addresses: Sequence[Address], default_route: str, dhcp: dict[str, str]
) -> dict[str, Any]:
    """Return the whole fact. Pure. `dhcp` maps an interface's name to the server that its lease came from."""
    interfaces = {link.name: interface_of(link, [address for address in addresses if address.index == link.index]) for link in links}
    for name, server in dhcp.items():
        if name in interfaces:
            interfaces[name]["dhcp"] = server
    primary = primary_of(default_route, interfaces)
    fact: dict[str, Any] = {**names, "interfaces": interfaces}
    if primary:
        copied = ("ip", "ip6", "mac", "mtu", "netmask", "netmask6", "network", "network6", "scope6", "dhcp")
        fact |= {"primary": primary} | {key: interfaces[primary][key] for key in copied if key in interfaces[primary]}
    return fact


def parse_lease(text: str) -> str:
    """Return the server in a lease of systemd-networkd or dhclient, '' without one; the last lease counts."""
    servers = re.findall(r"(?:^SERVER_ADDRESS=|dhcp-server-identifier )([\d.]+)", text, re.M)
    return servers[-1] if servers else ""


def _leases(host: Host, links: Sequence[Link]) -> dict[str, str]:
    servers = {}
    for link in links:
        for path in (f"/run/systemd/netif/leases/{link.index}", f"/var/lib/dhcp/dhclient.{link.name}.leases"):
            if server := parse_lease(host.read(path)):
                servers[link.name] = server
    return servers


def _canonical(hostname: str) -> str:
    try:
        answers = socket.getaddrinfo(hostname, None, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
    except OSError:
        return ""
    return answers[0][3] if answers else ""


def host_names(host: Host) -> dict[str, str]:
    """Return hostname, domain and fqdn of this machine; the resolver is asked when the host's name has no domain."""
    hostname = host.uname().nodename
    return parse_names(hostname, "" if "." in hostname else _canonical(hostname), host.read("/etc/resolv.conf"))


def resolve_networking(host: Host) -> dict[str, Any]:
    """Return the fact networking."""
    names = host_names(host)
    try:
        links, addresses = netlink.links(), netlink.addresses()
    except OSError:
        return {"networking": names}  # a sandbox without rtnetlink still has its names
    route = netlink.parse_default_route(host.read("/proc/net/route"))
    return {"networking": networking(names, links, addresses, route, _leases(host, links))}

"""Links, addresses and routes, as the kernel reports them (rtnetlink); the functions `parse_*` are pure."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address

_HEADER = struct.Struct("=IHHII")
_GETLINK, _GETADDR, _GETROUTE = 18, 22, 26
_DONE, _ERROR = 3, 2
_REQUEST_DUMP = 0x1 | 0x300
_MAX_MESSAGES = 100_000

SCOPES = {0: "global", 200: "site", 253: "link", 254: "host"}
# IFA_F_* in the order in which Facter lists them.
_FLAGS = (
    (0x01, "temporary"),
    (0x02, "noad"),
    (0x04, "optimistic"),
    (0x08, "dadfailed"),
    (0x10, "homeaddress"),
    (0x20, "deprecated"),
    (0x40, "tentative"),
    (0x80, "permanent"),
)


@dataclass(frozen=True, slots=True)
class Link:
    index: int
    name: str
    mtu: int | None
    mac: str  # '' when it has none
    state: str


@dataclass(frozen=True, slots=True)
class Address:
    index: int
    text: str
    prefix: int
    scope: str
    flags: tuple[str, ...]

    @property
    def version(self) -> int:
        return 6 if ":" in self.text else 4


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (type, payload) of each netlink message in `data`."""
    while len(data) >= _HEADER.size:
        length, kind, _, _, _ = _HEADER.unpack_from(data)
        if length < _HEADER.size or length > len(data):
            return
        yield kind, data[_HEADER.size : length]
        data = data[(length + 3) & ~3 :]


def attributes(data: bytes) -> dict[int, bytes]:
    """Return the attributes (rtattr) at the end of a message: type → payload."""
    payloads: dict[int, bytes] = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4 or length > len(data):
            break
        payloads[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return payloads


_STATES = ("unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up")


def parse_link(payload: bytes) -> Link | None:
    """Return the link that one RTM_NEWLINK describes; None when it has no name."""
    if len(payload) < 16:
        return None
    index = struct.unpack_from("=i", payload, 4)[0]
    fields = attributes(payload[16:])
    name = fields.get(3, b"").rstrip(b"\0").decode("utf-8", "replace")
    hardware = fields.get(1, b"")
    mac = ":".join(f"{octet:02x}" for octet in hardware) if len(hardware) == 6 and any(hardware) else ""
    mtu = struct.unpack("=I", fields[4])[0] if len(fields.get(4, b"")) == 4 else None
    operational = fields.get(16, b"\0")[0]
    return Link(index, name, mtu, mac, _STATES[operational] if operational < len(_STATES) else "unknown") if name else None


def parse_address(payload: bytes) -> Address | None:
    """Return the address that one RTM_NEWADDR describes; None for families other than IP."""
    if len(payload) < 8:
        return None
    family, prefix, flags, scope, index = struct.unpack_from("=BBBBI", payload)
    fields = attributes(payload[8:])
    raw = fields.get(2) or fields.get(1)  # the local address; IFA_ADDRESS is the peer's on a point-to-point link
    if family not in (socket.AF_INET, socket.AF_INET6) or raw is None:
        return None
    if len(fields.get(8, b"")) == 4:
        flags = struct.unpack("=I", fields[8])[0]
    names = tuple(name for bit, name in _FLAGS if flags & bit)
    return Address(index, str(ip_address(raw)), prefix, SCOPES.get(scope, str(scope)), names)


def parse_default_route(text: str) -> str:
    """Return the interface of the default route in /proc/net/route, the one of the least metric; '' without one."""
    best: tuple[int, str] | None = None
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7 and fields[1] == "00000000" and fields[7] == "00000000" and int(fields[3], 16) & 1:
            candidate = (int(fields[6]), fields[0])
            best = min(best, candidate, key=lambda route: route[0]) if best else candidate
    return best[1] if best else ""


def dump(kind: int) -> list[bytes]:
    """Return the payloads of all messages of an rtnetlink dump; OSError when the kernel refuses."""
    payloads: list[bytes] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE) as channel:
        channel.settimeout(5)
        body = struct.pack("=Bxxx", socket.AF_UNSPEC) + bytes(12)
        channel.send(_HEADER.pack(_HEADER.size + len(body), kind, _REQUEST_DUMP, 1, 0) + body)
        while len(payloads) < _MAX_MESSAGES:
            for number, payload in messages(channel.recv(1 << 18)):
                if number == _DONE:
                    return payloads
                if number == _ERROR:
                    code = -struct.unpack_from("=i", payload)[0]
                    raise OSError(code, "rtnetlink")
                payloads.append(payload)
    return payloads


def links() -> list[Link]:
    return [link for payload in dump(_GETLINK) if (link := parse_link(payload))]


def addresses() -> list[Address]:
    return [address for payload in dump(_GETADDR) if (address := parse_address(payload))]

"""A small DNS server on this machine that knows SRV records, for masters that DNS names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import dns.asyncresolver
import dns.message
import dns.rcode
import dns.rrset

from agent.servers.srv import SrvLookup

DOMAIN = "example.test"


@dataclass
class Dns(asyncio.DatagramProtocol):
    """Answers SRV questions from `records`: name → (priority, weight, port, target); `asked` are the names of all questions."""

    records: dict[str, list[tuple[int, int, int, str]]] = field(default_factory=dict)
    ttl: int = 60
    silent: bool = False
    asked: list[str] = field(default_factory=list)
    port: int = 0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        name = query.question[0].name.to_text()
        self.asked.append(name)
        if self.silent:
            return
        answer = dns.message.make_response(query)
        if name in self.records:
            texts = [f"{priority} {weight} {port} {target}" for priority, weight, port, target in self.records[name]]
            answer.answer.append(dns.rrset.from_text(name, self.ttl, "IN", "SRV", *texts))
        else:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        self.transport.sendto(answer.to_wire(), address)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Dns]:
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        self.port = transport.get_extra_info("sockname")[1]
        try:
            yield self
        finally:
            transport.close()

    def resolver(self) -> dns.asyncresolver.Resolver:
        made = dns.asyncresolver.Resolver(configure=False)
        made.nameservers, made.port = ["127.0.0.1"], self.port
        return made

    def srv(self, **more: Any) -> SrvLookup:
        return SrvLookup(DOMAIN, self.resolver, **more)

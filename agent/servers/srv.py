"""Servers by SRV records in DNS (RFC 2782): `_x-puppet._tcp.<domain>`, and their like for the CA and for reports."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .sites import Site

if TYPE_CHECKING:
    from dns.asyncresolver import Resolver

log = logging.getLogger("puppet.agent")

MAX_RECORDS = 100
MAX_TTL = 3600.0  # seconds
LOOKUP_SECONDS = 10.0
NONE_SECONDS = 60.0  # for which it is believed that there are none


@dataclass(frozen=True, slots=True)
class SrvRecord:
    """One SRV record."""

    priority: int
    weight: int
    site: Site


def sites_in_order(records: Sequence[SrvRecord], chance: Callable[[int, int], int] = random.randint) -> list[Site]:
    """
    The sites in the order in which to try them: by priority, within one at random by weight.

    Args:
        chance: a number from its first to its second argument, both included.
    Source: RFC 2782, "Usage rules".
    """
    sites: list[Site] = []
    for priority in sorted({record.priority for record in records}):
        remaining = sorted((record for record in records if record.priority == priority), key=lambda record: record.weight != 0)
        while remaining:
            mark = chance(0, sum(record.weight for record in remaining))
            running = 0
            for record in remaining:
                running += record.weight
                if running >= mark:
                    break
            remaining.remove(record)
            sites.append(record.site)
    return list(dict.fromkeys(sites))


def own_domain() -> str:
    """The domain of this host's full name; '' without one. Blocks: the system may ask DNS."""
    return socket.getfqdn().rstrip(".").partition(".")[2]


def system_resolver() -> Resolver:
    """What /etc/resolv.conf says. Blocks."""
    from dns.asyncresolver import Resolver

    return Resolver()


@dataclass
class Srv:
    """
    The records of one domain, kept as long as they may be.

    Args:
        domain: '' for this host's own. resolver: makes what asks; may raise what dnspython raises.
    """

    domain: str = ""
    resolver: Callable[[], Resolver] = system_resolver
    chance: Callable[[int, int], int] = random.randint
    clock: Callable[[], float] = time.monotonic
    _known: dict[str, tuple[float, list[SrvRecord]]] = field(default_factory=dict)

    async def sites(self, service: str) -> list[Site]:
        """Where a service (`puppet`, `ca`, `report`) is, to be tried in this order; one of no records is where `puppet` is."""
        domain = (self.domain or await asyncio.to_thread(own_domain)).strip(".")
        if not domain:
            log.debug("Domain not known; skipping SRV lookup")
            return []
        label = "_x-puppet" if service == "puppet" else f"_x-puppet-{service}"
        records = await self._records(f"{label}._tcp.{domain}.")
        if not records and service != "puppet":
            return await self.sites("puppet")
        return sites_in_order(records, self.chance)

    async def _records(self, name: str) -> list[SrvRecord]:
        until, known_records = self._known.get(name, (0.0, []))
        if self.clock() < until:
            return known_records
        seconds, records = await self._query(name)
        log.debug("Found %d SRV records for: %s", len(records), name)
        self._known[name] = (self.clock() + seconds, records)
        return records

    async def _query(self, name: str) -> tuple[float, list[SrvRecord]]:
        """The seconds that an answer holds, and its records: none when there are none, or nobody answers, which is said."""
        from dns.exception import DNSException
        from dns.resolver import NXDOMAIN, NoAnswer

        try:
            resolver = await asyncio.to_thread(self.resolver)
            answer = await resolver.resolve(name, "SRV", lifetime=LOOKUP_SECONDS, search=False)
        except (NXDOMAIN, NoAnswer):
            return NONE_SECONDS, []
        except (DNSException, OSError) as err:
            log.warning("Could not look up the SRV records %s: %s", name, err)
            return NONE_SECONDS, []
        records = []
        for answer_record in list(answer)[:MAX_RECORDS]:
            target = answer_record.target.to_text(omit_final_dot=True).lower()
            if target and target != "." and answer_record.port:  # a lone dot: the service is decidedly not there
                records.append(SrvRecord(answer_record.priority, answer_record.weight, Site(target, answer_record.port)))
        return min(float(answer.rrset.ttl if answer.rrset is not None else 0), MAX_TTL), records

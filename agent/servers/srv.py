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
NONE_SECONDS = 60.0  # how long the answer that there are no records is cached


@dataclass(frozen=True, slots=True)
class SrvRecord:
    """One SRV record."""

    priority: int
    weight: int
    site: Site


def sites_in_order(records: Sequence[SrvRecord], chance: Callable[[int, int], int] = random.randint) -> list[Site]:
    """
    Return the sites in the order in which to try them: by priority, and within one priority at random by weight.

    Args:
        chance: Returns a random number from its first to its second argument, both included.
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
    """Return the domain of this host's full name; '' when it has none. Blocks: the system may query DNS."""
    return socket.getfqdn().rstrip(".").partition(".")[2]


def system_resolver() -> Resolver:
    """Return a resolver for the servers of /etc/resolv.conf. Blocks."""
    from dns.asyncresolver import Resolver

    return Resolver()


@dataclass
class SrvLookup:
    """
    A look-up of the SRV records of one domain, which caches them for their time to live.

    Args:
        domain: The domain; '' for this host's own.
        resolver: Makes a resolver; may raise the errors of dnspython.
    """

    domain: str = ""
    resolver: Callable[[], Resolver] = system_resolver
    chance: Callable[[int, int], int] = random.randint
    clock: Callable[[], float] = time.monotonic
    _known: dict[str, tuple[float, list[SrvRecord]]] = field(default_factory=dict)

    async def sites(self, service: str) -> list[Site]:
        """Return the sites of a service (`puppet`, `ca`, `report`) in the order to try them; those of `puppet` when it has no records."""
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
        """Return how many seconds an answer holds, and its records; none, with a warning in the log, when DNS does not answer."""
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
            if target and target != "." and answer_record.port:  # a lone dot says that the service is not available
                records.append(SrvRecord(answer_record.priority, answer_record.weight, Site(target, answer_record.port)))
        return min(float(answer.rrset.ttl if answer.rrset is not None else 0), MAX_TTL), records

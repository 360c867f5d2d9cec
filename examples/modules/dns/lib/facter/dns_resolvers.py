"""The fact dns_resolvers: the addresses of the name servers that this machine asks."""

from __future__ import annotations

from agent.facts import Host, Known, fact


@fact(confine={"kernel": "Linux"})
def dns_resolvers(host: Host, known: Known) -> list[str]:
    lines = (line.split() for line in host.read("/etc/resolv.conf").splitlines())
    return [words[1] for words in lines if len(words) > 1 and words[0] == "nameserver"]

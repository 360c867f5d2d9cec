"""The facts that an agent adds to those of its machine: which node it is, and which Puppet."""

from __future__ import annotations

from typing import Any


def puppet_facts(version: str) -> dict[str, Any]:
    """Return the facts about Puppet itself, which modules compare; `version` is the one that this agent speaks."""
    return {"puppetversion": version}


def own_facts(certname: str, version: str, *, noop: bool, environment: str = "") -> dict[str, Any]:
    """
    Return the facts that go to the master, or to the compiler, with those of the machine.

    Args:
        environment: the one that this agent asks for; '' when it leaves that to the master.
    """
    facts = {"clientcert": certname, "clientversion": version, "clientnoop": noop, **puppet_facts(version)}
    return facts | {"agent_specified_environment": environment} if environment else facts

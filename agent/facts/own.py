"""The facts that an agent adds to those of its machine: which node it is, and which Puppet."""

from __future__ import annotations

from typing import Any

from shared import __version__


def puppet_facts(version: str) -> dict[str, Any]:
    """Return the version of Puppet that this agent speaks, which modules compare, and its own, as facts."""
    return {"puppetversion": version, "bunrakuversion": __version__}


def own_facts(certname: str, version: str, *, noop: bool, environment: str = "") -> dict[str, Any]:
    """
    Return the facts that go to the master, or to the compiler, with those of the machine.

    Args:
        environment: the one that this agent asks for; '' when it leaves that to the master.
    """
    facts = {"clientcert": certname, "clientversion": version, "clientnoop": noop, **puppet_facts(version)}
    return facts | {"agent_specified_environment": environment} if environment else facts

"""A custom fact, brought to every agent by plugin sync."""

from agent.facts import Host, Known, fact


@fact(confine={"kernel": "Linux"})
def demo_stage(host: Host, known: Known) -> str:
    """Whether the stage is set: it is when this machine can read its own hosts file."""
    return "set" if host.read("/etc/hosts") else "bare"

"""A custom fact in Python, which agents fetch with the module."""

from agent.facts import Host, Known, fact


@fact(confine={"kernel": "Linux"})
def login_accounts(host: Host, known: Known) -> int:
    """Return how many accounts have a shell."""
    return sum(line.endswith("sh") for line in (host.read("/etc/passwd") or "").splitlines())

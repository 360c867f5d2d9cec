"""
Facts, and the API with which a module adds its own in Python (`lib/facter/<name>.py`).

    from agent.facts import Host, Known, fact

    @fact(confine={"kernel": "Linux"})
    def rack(host: Host, known: Known) -> str | None:
        return host.read("/etc/rack").strip() or None

The function's name is the fact's name; None means that there is no such fact.
"""

from .builtin.host import Host
from .declarations import Declaration, fact
from .known import Known

__all__ = ["Declaration", "Host", "Known", "fact"]

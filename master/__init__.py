"""The master: it listens, authorizes, compiles, answers and stores."""

__all__ = [
    "authorization",
    "bindings",
    "checks",
    "cli",
    "deploy",
    "moving",
    "pools",
    "preview",
    "process",
    "puppetdb",
    "reports",
    "rollouts",
    "termini",
]

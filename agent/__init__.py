"""The agent: bootstrap, run, plugin sync, facts, providers, transaction."""

__all__ = ["bootstrap", "cli", "facts", "plugins", "process", "providers", "ruby", "run", "servers", "state", "transaction"]

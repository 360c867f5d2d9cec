"""The agent: bootstrap, run, plugin sync, facts, providers, transaction."""

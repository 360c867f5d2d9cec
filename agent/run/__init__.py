"""One run of the agent, from its lock to its report."""

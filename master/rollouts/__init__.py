"""Rollouts: deployments that reach the nodes in waves, are watched, and stop by themselves."""

"""Listings of an environment for tools: classes, defined types, tasks, plans."""

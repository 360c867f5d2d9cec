"""The facts that are built in, by topic."""

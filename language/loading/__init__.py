"""The definitions of an environment, found by name and loaded."""

"""A release of a module: its version, its metadata, its files and their sums, and its archive."""

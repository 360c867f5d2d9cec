"""Previews: what the catalogs of many nodes have otherwise when they are compiled from another state of the code."""

"""Previews: the differences between the catalogs of many nodes when they are compiled from another state of the code."""

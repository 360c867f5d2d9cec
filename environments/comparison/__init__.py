"""The comparison of two catalogs of one node, compiled from two states of the code."""

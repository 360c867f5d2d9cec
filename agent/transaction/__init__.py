"""Applying a catalog: the order, one resource at a time, events, and the report."""

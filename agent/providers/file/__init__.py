"""Providers of the type `file`."""

"""Providers of the type `exec`."""

"""Providers of the type `group`."""

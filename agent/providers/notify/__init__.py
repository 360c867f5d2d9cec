"""Providers of the type `notify`."""

"""Providers of the type `package`."""

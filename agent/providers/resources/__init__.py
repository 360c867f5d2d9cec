"""Providers of the type `resources`."""

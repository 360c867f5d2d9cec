"""Providers of `host`."""

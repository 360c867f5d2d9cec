"""Providers of `mount`."""

"""Providers of `k5login`."""

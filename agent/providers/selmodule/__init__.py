"""Providers of `selmodule`."""

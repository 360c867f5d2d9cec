"""Providers of `selboolean`."""

"""Providers of `file_line`."""

"""Providers of `concat_file`."""

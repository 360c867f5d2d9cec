"""Providers of the type `tidy`."""

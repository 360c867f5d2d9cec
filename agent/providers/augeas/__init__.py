"""Providers of `augeas`."""
